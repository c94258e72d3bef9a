#include "findings.h"

#include "gmd_min.h"
#include "gmd_size.h"
#include "gmd_text.h"
#include "gmd_utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BLOCKS = 1000, MOST_OOMS = 8, TITLE_TEXT = 900, LABEL_TEXT = PLACE_TEXT + 120 };

/* What each class means, as the beginning of a sentence. */
static const char *const class_titles[] = {
    [GMD_FINDING_GRADIENT_ACCUMULATION] = "Gradients are kept from iteration to iteration",
    [GMD_FINDING_RETAINED_GRAPH] = "Each iteration keeps the graph of its computation",
    [GMD_FINDING_HIDDEN_STATE] = "A state that goes on keeps the graphs of earlier iterations",
    [GMD_FINDING_EVAL_GRAPH] = "An evaluation keeps graphs that no backward() uses",
    [GMD_FINDING_REFERENCE_CYCLE] = "Reference cycles keep memory until Python collects them",
    [GMD_FINDING_CHECKPOINT_CACHE] = "What checkpoints recompute is kept",
    [GMD_FINDING_FRAGMENTATION] = "Free memory lies in parts that do not serve",
    [GMD_FINDING_CACHED_NOT_RELEASED] = "Reserved memory is idle and not given back",
    [GMD_FINDING_CROSS_STREAM_PENDING] = "Freed memory waits for other streams",
    [GMD_FINDING_TRUE_CAPACITY] = "The job needs more memory than it may have",
};
_Static_assert(sizeof class_titles / sizeof *class_titles == GMD_FINDING_CLASS_COUNT,
               "each class has a title");

const char *place_text(const gmd_places *places, uint32_t frame, char text[PLACE_TEXT])
{
    char name[PLACE_TEXT / 2], function[PLACE_TEXT / 2 - 24];
    if (frame == GMD_NO_PLACE) {
        snprintf(text, PLACE_TEXT, "no recorded line");
        return text;
    }
    gmd_place place = gmd_places_get(places, frame);
    gmd_utf8_copy_short(name, sizeof name, gmd_file_name(place.file));
    gmd_utf8_copy_short(function, sizeof function, place.function);
    snprintf(text, PLACE_TEXT, "%s:%" PRIu32 "%s%s", name, place.line, *function ? " in " : "",
             function);
    return text;
}

gmd_json *finding_begin(document *to, uint32_t input, const char *title, const char *kind)
{
    char id[16];
    uint32_t number;
    gmd_json *json = document_add(to, DOCUMENT_FINDINGS, &number);
    snprintf(id, sizeof id, "f%" PRIu32, number);
    gmd_json_string(json, "id", id);
    gmd_json_u64(json, "input", input);
    gmd_json_string(json, "title", title);
    gmd_json_string(json, "kind", kind);
    return json;
}

/* --- evidence -------------------------------------------------------------------------------- */

/* Which blocks of a moment are meant: those of a line, or those without frames that it led to. */
typedef struct wanted {
    uint32_t moment, frame;
    bool is_inferred;
    uint8_t blamed; /* of gmd_job_findings: only those that the finding counts; 0: all */
} wanted;

typedef struct block_sum {
    uint64_t bytes;
    size_t count;
} block_sum;

/* At whatever moment. */
static bool is_meant(const history *h, size_t lifetime, const wanted *w)
{
    const gmd_facts *f = h->facts;
    const gmd_lifetime *l = &f->recording.lifetimes[lifetime];
    uint32_t frame = gmd_places_frame(&f->places, l->origin);
    bool is_of_line = w->is_inferred ? frame == GMD_NO_PLACE : frame == w->frame;
    return is_of_line && (!w->blamed || h->device->findings.blamed[lifetime] == w->blamed);
}

static bool is_wanted(const history *h, size_t lifetime, const wanted *w)
{
    return gmd_is_active_at(&h->facts->recording.lifetimes[lifetime], w->moment) &&
           is_meant(h, lifetime, w);
}

static block_sum sum_wanted(const history *h, const wanted *w)
{
    block_sum sum = {0};
    for (size_t i = 0; i < h->facts->recording.lifetime_count; i++) {
        if (is_wanted(h, i, w)) {
            sum.bytes += h->facts->recording.lifetimes[i].size;
            sum.count++;
        }
    }
    return sum;
}

/* The peak, or the end where the line holds more there. */
static uint32_t telling_moment(const history *h, wanted w)
{
    const gmd_recording *r = &h->facts->recording;
    w.moment = r->peak.allocated_at;
    uint64_t at_peak = sum_wanted(h, &w).bytes;
    w.moment = r->last;
    return sum_wanted(h, &w).bytes > at_peak ? r->last : r->peak.allocated_at;
}

/* `*at`: the iteration that the moment before was in. */
static bool is_end_of_iteration(const gmd_iterations *it, uint32_t moment, uint32_t *at)
{
    while (*at < it->count && it->starts[*at + 1] <= moment) {
        ++*at;
    }
    return *at < it->count && it->starts[*at + 1] == moment + 1;
}

/* When most of what is meant was there, where the finding counts it. False: nothing is meant. */
static bool find_fullest(const history *h, const gmd_job_finding *f, wanted *w)
{
    uint32_t iteration = 0;
    const gmd_recording *r = &h->facts->recording;
    int64_t held = 0, most = 0;
    int64_t *change = calloc((size_t)r->last + 2, sizeof *change);
    h->to->has_failed = h->to->has_failed || !change;
    for (size_t i = 0; change && i < r->lifetime_count; i++) {
        const gmd_lifetime *l = &r->lifetimes[i];
        if (is_meant(h, i, w) && l->born <= r->last) {
            change[l->born] += (int64_t)l->size;
            change[gmd_min(l->released, r->last + 1)] -= (int64_t)l->size;
        }
    }
    for (uint32_t moment = 0; change && moment <= r->last; moment++) {
        held += change[moment];
        bool is_counted = !f->is_of_ends || moment == r->last ||
                          is_end_of_iteration(&h->facts->iterations, moment, &iteration);
        if (is_counted && held > most) {
            most = held;
            w->moment = moment;
        }
    }
    free(change);
    return most > 0;
}

static void put_blocks(gmd_json *json, const history *h, const wanted *w)
{
    size_t shown = 0;
    gmd_json_array(json, "blocks");
    for (size_t i = 0; i < h->facts->recording.lifetime_count && shown < MOST_BLOCKS; i++) {
        if (is_wanted(h, i, w)) {
            gmd_json_u64(json, NULL, h->block_of[i]);
            shown++;
        }
    }
    gmd_json_end(json);
}

static void begin_evidence(gmd_json *json, const history *h, const char *view, uint32_t moment,
                           const char *label)
{
    gmd_json_row(json, NULL);
    gmd_json_string(json, "view", view);
    gmd_json_u64(json, "history", h->number);
    gmd_json_u64(json, "event", h->event_of[moment]);
    gmd_json_string(json, "label", label);
}

/* "FILE:LINE", whole, and its number among the history's lines. */
static void put_line(gmd_json *json, history *h, uint32_t frame)
{
    uint32_t line = stacks_line_of_frame(&h->stacks, frame);
    if (!line) {
        return;
    }
    gmd_place place = gmd_places_get(&h->facts->places, frame);
    size_t size = strlen(place.file) + sizeof ":4294967295";
    char *text = malloc(size);
    if (text) {
        snprintf(text, size, "%s:%" PRIu32, place.file, place.line);
        gmd_json_string(json, "line", text);
        gmd_json_u64(json, "line_number", line - 1);
    }
    h->to->has_failed = h->to->has_failed || !text;
    free(text);
}

/* "104.0 MiB in 13 blocks": what the page then shows. */
static void put_sum(const history *h, const wanted *w, char label[LABEL_TEXT])
{
    char bytes[24];
    const block_sum sum = sum_wanted(h, w);
    int used = snprintf(label, LABEL_TEXT, "%s in %zu block%s", gmd_format_size(sum.bytes, bytes),
                        sum.count, sum.count == 1 ? "" : "s");
    if (sum.count > MOST_BLOCKS) {
        snprintf(label + used, LABEL_TEXT - (size_t)used, " (%d shown)", MOST_BLOCKS);
    }
}

static void put_place(gmd_json *json, history *h, const gmd_job_finding *f,
                      const gmd_finding_place *place)
{
    char label[LABEL_TEXT], where[PLACE_TEXT];
    wanted w = {.frame = place->frame,
                .is_inferred = place->is_inferred,
                .blamed = (uint8_t)(f->class + 1)};
    if (!find_fullest(h, f, &w)) { /* a class that counts no blocks */
        w.blamed = 0;
        w.moment = telling_moment(h, w);
    }
    put_sum(h, &w, label);
    const char *kind = !place->is_inferred ? " of"
                       : f->is_of_ends     ? " without a stack that stay, allocated after"
                                           : " without a stack that are added to, allocated after";
    size_t used = strlen(label);
    snprintf(label + used, sizeof label - used, "%s %s", kind,
             place_text(&h->facts->places, place->frame, where));
    begin_evidence(json, h, "timeline", w.moment, label);
    put_line(json, h, place->frame);
    put_blocks(json, h, &w);
    gmd_json_end(json);
}

typedef struct pending_peak {
    uint64_t bytes;
    uint32_t moment;
} pending_peak;

static void note_pending(void *context, uint32_t moment, const gmd_amount *amount)
{
    pending_peak *peak = context;
    if (amount->active - amount->allocated > peak->bytes) {
        *peak = (pending_peak){amount->active - amount->allocated, moment};
    }
}

/* What a finding about the allocator's memory is best seen in: its state when that was most. */
static void put_state(gmd_json *json, const history *h, const gmd_job_finding *f)
{
    const gmd_recording *r = &h->facts->recording;
    pending_peak pending = {.moment = r->peak.reserved_at};
    const char *label = "The allocator when most was reserved";
    if (f->class == GMD_FINDING_CROSS_STREAM_PENDING) {
        label = "The allocator when most was freed and waited";
        gmd_recording_walk(r, note_pending, &pending);
    } else if (f->class == GMD_FINDING_CACHED_NOT_RELEASED) {
        label = "The allocator at the end";
        pending.moment = r->last;
    }
    begin_evidence(json, h, "state", pending.moment, label);
    gmd_json_end(json);
}

/* The last one that was found goes on to the recording's end, and with it what the job gives back
 * then; where a rest follows, that is the rest. */
static uint32_t complete_iterations(const gmd_iterations *it)
{
    return it->count ? it->count - 1 : 0;
}

static void put_span(gmd_json *json, const history *h)
{
    const gmd_iterations *it = &h->facts->iterations;
    uint32_t complete = complete_iterations(it);
    if (complete > it->warm_up) {
        uint32_t last = it->starts[complete] - 1;
        begin_evidence(json, h, "timeline", last, "The complete iterations after the warm-up");
        gmd_json_array(json, "span");
        gmd_json_u64(json, NULL, h->event_of[it->starts[it->warm_up]]);
        gmd_json_u64(json, NULL, h->event_of[last]);
        gmd_json_end(json);
        gmd_json_end(json);
    }
}

static void put_evidence(gmd_json *json, history *h, const gmd_job_finding *f)
{
    gmd_json_array(json, "evidence");
    for (size_t i = 0; i < f->where_count; i++) {
        put_place(json, h, f, &f->where[i]);
    }
    if (gmd_finding_is_leak(f->class)) {
        put_span(json, h);
        begin_evidence(json, h, "flame", h->facts->recording.peak.allocated_at,
                       "Who holds the memory at the peak");
        gmd_json_end(json);
    } else {
        put_state(json, h, f);
    }
    gmd_json_end(json);
}

/* --- findings of a diagnosis ----------------------------------------------------------------- */

static void put_detail(gmd_json *json, const gmd_job_finding *f)
{
    char text[64];
    gmd_json_array(json, "detail");
    gmd_json_string(json, NULL, f->evidence);
    snprintf(text, sizeof text, "Confidence: %.0f %%.", f->confidence * 100);
    gmd_json_string(json, NULL, text);
    gmd_json_end(json);
}

static void put_finding(history *h, const gmd_job_finding *f, uint32_t input, bool names_device)
{
    char title[TITLE_TEXT], where[PLACE_TEXT], bytes[24], rate[24];
    int used = snprintf(title, sizeof title, "%s: %s", class_titles[f->class],
                        gmd_format_size(f->bytes, bytes));
    if (f->bytes_per_iteration) {
        used += snprintf(title + used, sizeof title - (size_t)used, ", %s per iteration",
                         gmd_format_size(f->bytes_per_iteration, rate));
    }
    if (f->where_count && f->where[0].frame != GMD_NO_PLACE) {
        used += snprintf(title + used, sizeof title - (size_t)used, ", %s",
                         place_text(&h->facts->places, f->where[0].frame, where));
    }
    if (names_device) {
        snprintf(title + used, sizeof title - (size_t)used, ", device %u",
                 h->facts->recording.device);
    }
    gmd_json *json = finding_begin(h->to, input, title, "diagnosis");
    gmd_json_string(json, "class", gmd_finding_class_name(f->class));
    gmd_json_u64(json, "bytes", f->bytes);
    gmd_json_u64(json, "bytes_per_iteration", f->bytes_per_iteration);
    put_detail(json, f);
    gmd_json_string(json, "fix", f->fix);
    gmd_json_null(json, "case");
    put_evidence(json, h, f);
    gmd_json_end(json);
}

/* --- out of memory --------------------------------------------------------------------------- */

static void put_limit(gmd_json *json, const gmd_oom *oom)
{
    char text[300], from[40] = "", least_text[24], below_text[24];
    uint64_t least, below;
    if (gmd_oom_is_limited(oom, &least, &below)) {
        if (least) {
            snprintf(from, sizeof from, "at least %s and ", gmd_format_size(least, least_text));
        }
        snprintf(text, sizeof text,
                 "A memory limit was reached (torch.cuda.set_per_process_memory_fraction): it is "
                 "%sless than %s of reserved memory.",
                 from, gmd_format_size(below, below_text));
        gmd_json_string(json, NULL, text);
    }
}

static void put_oom_detail(gmd_json *json, const gmd_oom *oom)
{
    char text[400], bytes[24], other[24];
    gmd_json_array(json, "detail");
    snprintf(text, sizeof text, "Cause: %s: %s.", gmd_oom_cause_name(oom->cause),
             gmd_oom_cause_sentence(oom->cause));
    gmd_json_string(json, NULL, text);
    snprintf(text, sizeof text, "%s were allocated of %s reserved.",
             gmd_format_size(oom->free.amount.allocated, bytes),
             gmd_format_size(oom->free.amount.reserved, other));
    gmd_json_string(json, NULL, text);
    put_limit(json, oom);
    if (oom->device_free != GMD_NOT_KNOWN) {
        snprintf(text, sizeof text, "%s were free on the device.",
                 gmd_format_size(oom->device_free, bytes));
        gmd_json_string(json, NULL, text);
    }
    for (int cause = 0; cause < GMD_FREE_CAUSE_COUNT; cause++) {
        if (oom->free.by_cause[cause]) {
            snprintf(text, sizeof text, "Free in the cache, %s: %s.",
                     gmd_format_size(oom->free.by_cause[cause], bytes),
                     gmd_free_cause_sentence(&oom->free, (gmd_free_cause)cause));
            gmd_json_string(json, NULL, text);
        }
    }
    snprintf(text, sizeof text, "The largest request that would have been served: at least %s.",
             gmd_format_size(oom->largest, bytes));
    gmd_json_string(json, NULL, text);
    gmd_json_end(json);
}

static void put_oom(history *h, const gmd_oom *oom, uint32_t input)
{
    char title[TITLE_TEXT], where[PLACE_TEXT], bytes[24];
    uint32_t frame = gmd_places_frame(&h->facts->places, oom->origin);
    int used = snprintf(title, sizeof title, "%s: %s", gmd_oom_outcome_title(oom->outcome),
                        gmd_format_size(oom->requested, bytes));
    if (frame != GMD_NO_PLACE) {
        used += snprintf(title + used, sizeof title - (size_t)used, " for %s",
                         place_text(&h->facts->places, frame, where));
    }
    if (oom->repeats) {
        snprintf(title + used, sizeof title - (size_t)used, ", and %" PRIu32 " more like it",
                 oom->repeats);
    }
    gmd_json *json = finding_begin(h->to, input, title, "oom");
    gmd_json_string(json, "class", gmd_oom_cause_name(oom->cause));
    gmd_json_u64(json, "bytes", oom->requested);
    put_oom_detail(json, oom);
    gmd_json_string(json, "fix", oom->change);
    gmd_json_null(json, "case");
    gmd_json_array(json, "evidence");
    begin_evidence(json, h, "state", oom->moment, "The allocator when the request was refused");
    gmd_json_end(json);
    begin_evidence(json, h, "flame", oom->moment, "Who held the memory then");
    gmd_json_end(json);
    gmd_json_end(json);
    gmd_json_end(json);
}

static void put_left_out(history *h, uint64_t count, uint32_t input)
{
    char title[120];
    snprintf(title, sizeof title, "%" PRIu64 " more lines and sizes ran out of memory", count);
    gmd_json *json = finding_begin(h->to, input, title, "note");
    gmd_json_null(json, "class");
    gmd_json_null(json, "bytes");
    gmd_json_array(json, "detail");
    gmd_json_end(json);
    gmd_json_null(json, "fix");
    gmd_json_null(json, "case");
    gmd_json_array(json, "evidence");
    begin_evidence(json, h, "timeline", h->device->ooms.items[0].moment,
                   "The timeline has all of them");
    gmd_json_end(json);
    gmd_json_end(json);
    gmd_json_end(json);
}

/* What cost most first. */
static void put_ooms(history *h, uint32_t input)
{
    const gmd_ooms *ooms = &h->device->ooms;
    size_t shown = 0;
    for (int outcome = GMD_OOM_OUTCOME_COUNT; outcome-- > 0;) {
        for (size_t i = 0; i < ooms->count && shown < MOST_OOMS; i++) {
            if ((int)ooms->items[i].outcome == outcome) {
                put_oom(h, &ooms->items[i], input);
                shown++;
            }
        }
    }
    if (shown < ooms->count) {
        put_left_out(h, ooms->count - shown, input);
    }
}

void findings_of_diagnosis(history *histories, const gmd_diagnosis *diagnosis, uint32_t input)
{
    for (size_t i = 0; i < diagnosis->finding_count; i++) {
        const gmd_ranked_finding *ranked = &diagnosis->findings[i];
        put_finding(&histories[ranked->device - diagnosis->devices], ranked->finding, input,
                    diagnosis->device_count > 1);
    }
    for (size_t i = 0; i < diagnosis->device_count; i++) {
        put_ooms(&histories[i], input);
    }
}
