#include "gmd_ooms.h"

#include "gmd_min.h"
#include "gmd_recorded_settings.h"
#include "gmd_size.h"

#include <stdio.h>
#include <stdlib.h>

/* Each is looked at by itself, at the cost of a pass over all blocks; that which ended the job is
 * so always. */
enum { MOST_LOOKED_AT = 64 };

typedef struct autopsy {
    const gmd_facts *facts;
    gmd_recorded_settings settings;
    uint64_t highest_reserved; /* that the job ever had: what it was allowed at least */
} autopsy;

static autopsy autopsy_of(const gmd_facts *facts)
{
    autopsy a = {.facts = facts,
                 .settings = gmd_recorded_settings_of(facts->snapshot),
                 .highest_reserved = facts->recording.peak.amount.reserved};
    if (a.settings.is_expandable) { /* pages beyond the limit are mapped with a request below it */
        a.highest_reserved -= gmd_min(a.highest_reserved, a.settings.large_segment_bytes);
    }
    return a;
}

/* --- the cause ------------------------------------------------------------------------------- */

/* What a correct allocator could still have taken from the device: the job was allowed at least
 * what it once had. */
static uint64_t headroom(const autopsy *a, const gmd_oom *oom)
{
    uint64_t allowed = a->highest_reserved > oom->free.amount.reserved
                           ? a->highest_reserved - oom->free.amount.reserved
                           : 0;
    return oom->device_free == GMD_NOT_KNOWN ? allowed : gmd_min(allowed, oom->device_free);
}

uint64_t gmd_oom_scattered(const gmd_oom *oom)
{
    const uint64_t *by = oom->free.by_cause;
    return by[GMD_FREE_TOO_SMALL] + by[GMD_FREE_OVERSIZE] + by[GMD_FREE_OTHER_STREAM] +
           by[GMD_FREE_OTHER_POOL];
}

static bool would_serve_in_one_piece(const gmd_oom *oom)
{
    return gmd_oom_scattered(oom) > 0 && gmd_oom_scattered(oom) + oom->headroom >= oom->needed;
}

/* A little is scattered in each job that is full: the next request would have failed. */
static bool is_fragmented(const gmd_oom *oom)
{
    enum { LEAST_PERCENT = 25 }; /* of reserved */
    return would_serve_in_one_piece(oom) &&
           gmd_oom_scattered(oom) * 100 >= oom->free.amount.reserved * LEAST_PERCENT;
}

/* Where events are missing, a block that seems free may be in use. */
static bool has_fitting(const autopsy *a, const gmd_oom *oom)
{
    const gmd_recording *r = &a->facts->recording;
    return oom->free.by_cause[GMD_FREE_FITTING] && !r->ends_early && !r->contradictions;
}

static bool device_had(const gmd_oom *oom)
{
    return oom->device_free != GMD_NOT_KNOWN && oom->device_free >= oom->needed;
}

bool gmd_oom_is_limited(const gmd_oom *oom, uint64_t *least, uint64_t *below)
{
    *below = oom->free.amount.reserved + oom->needed;
    *least = oom->allowed < *below ? oom->allowed : 0;
    return oom->cause != GMD_OOM_ALLOCATOR && device_had(oom);
}

static gmd_oom_cause judge(const autopsy *a, const gmd_oom *oom)
{
    if (has_fitting(a, oom)) {
        return GMD_OOM_ALLOCATOR;
    }
    if (oom->leaked > 0 && oom->leaked + oom->headroom >= oom->needed) {
        return GMD_OOM_LEAK;
    }
    if (is_fragmented(oom)) {
        return GMD_OOM_FRAGMENTATION;
    }
    return device_had(oom) ? GMD_OOM_LIMIT : GMD_OOM_CAPACITY;
}

/* --- the change ------------------------------------------------------------------------------ */

static void suggest_one_piece(gmd_oom *oom, const autopsy *a)
{
    char scattered[24];
    snprintf(oom->change, sizeof oom->change, "%s: %s are free, in several places",
             a->settings.is_expandable ? "fewer different sizes"
                                       : "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
             gmd_format_size(gmd_oom_scattered(oom), scattered));
}

/* What a CUDA graph has freed, only the graphs of its pool may use. */
static void suggest_pool(gmd_oom *oom)
{
    char idle[24];
    snprintf(oom->change, sizeof oom->change,
             "torch.cuda.graph(g, pool=...): %s are free in private pools of CUDA graphs; one pool "
             "for all of them, or a graph less, leaves more of it to others",
             gmd_format_size(oom->free.by_cause[GMD_FREE_PRIVATE], idle));
}

/* Whether they keep a good part of what is missing: what a limit leaves beside is not known. */
static bool would_serve_from_pools(const gmd_oom *oom)
{
    uint64_t idle = oom->free.by_cause[GMD_FREE_PRIVATE];
    return idle > 0 && 2 * idle + oom->headroom >= oom->needed;
}

static void suggest_memory(gmd_oom *oom)
{
    char missing[24];
    gmd_format_size(oom->missing, missing);
    if (oom->cause == GMD_OOM_CAPACITY && oom->device_free != GMD_NOT_KNOWN) {
        snprintf(oom->change, sizeof oom->change,
                 "%s more memory on the device, or that much less held", missing);
    } else if (oom->missing == 0) { /* the job once had what it is refused now */
        snprintf(oom->change, sizeof oom->change,
                 "more memory, or less held; how much does not follow from the recording");
    } else if (oom->cause == GMD_OOM_LIMIT) {
        snprintf(oom->change, sizeof oom->change,
                 "a memory limit that is up to %s higher (set_per_process_memory_fraction)",
                 missing);
    } else {
        snprintf(oom->change, sizeof oom->change, "up to %s more memory, or that much less held",
                 missing);
    }
}

static void suggest(gmd_oom *oom, const autopsy *a)
{
    switch (oom->cause) {
    case GMD_OOM_LEAK:
        snprintf(oom->change, sizeof oom->change, "mend the leak: it held more than was missing");
        break;
    case GMD_OOM_ALLOCATOR:
        snprintf(oom->change, sizeof oom->change,
                 "none in the job: a free block was large enough (pytorch#189504); the same "
                 "request again is served");
        break;
    case GMD_OOM_FRAGMENTATION:
        suggest_one_piece(oom, a);
        break;
    default:
        if (would_serve_in_one_piece(oom) && !a->settings.is_expandable) {
            suggest_one_piece(oom, a);
        } else if (would_serve_from_pools(oom)) {
            suggest_pool(oom);
        } else {
            suggest_memory(oom);
        }
        break;
    }
}

/* What the device lacks is known where it said what it had; what a limit allows is not. */
static uint64_t missing_of(const gmd_oom *oom)
{
    bool is_of_device = oom->cause == GMD_OOM_CAPACITY && oom->device_free != GMD_NOT_KNOWN;
    uint64_t had = is_of_device ? oom->device_free : oom->headroom;
    return oom->needed > had ? oom->needed - had : 0;
}

static void conclude(const autopsy *a, gmd_oom *oom)
{
    oom->cause = judge(a, oom);
    oom->missing = missing_of(oom);
    suggest(oom, a);
}

/* --- one OOM --------------------------------------------------------------------------------- */

static gmd_status look_at(const autopsy *a, gmd_oom *oom, gmd_error *error)
{
    const gmd_facts *f = a->facts;
    const gmd_asked asked = {oom->requested, oom->stream};
    gmd_status status =
        gmd_free_memory_find(&oom->free, &f->recording, &f->places, oom->moment, &asked, error);
    if (status != GMD_OK) {
        return status;
    }
    oom->needed = gmd_recorded_segment_size(&a->settings, oom->requested);
    oom->allowed = a->highest_reserved;
    oom->headroom = headroom(a, oom);
    oom->largest = gmd_max(oom->free.largest_part, oom->headroom / (2 * GMD_MIB) * (2 * GMD_MIB));
    conclude(a, oom);
    return GMD_OK;
}

/* --- all ------------------------------------------------------------------------------------- */

static gmd_oom *find_same(const gmd_ooms *ooms, const gmd_snapshot_event *e,
                          gmd_oom_outcome outcome)
{
    for (size_t i = ooms->count; i-- > 0;) {
        gmd_oom *oom = &ooms->items[i];
        if (oom->requested == e->size && oom->origin == e->origin && oom->stream == e->stream &&
            oom->outcome == outcome) {
            return oom;
        }
    }
    return NULL;
}

static gmd_status note(gmd_ooms *ooms, const autopsy *a, uint32_t moment, gmd_oom_outcome outcome,
                       gmd_error *error)
{
    const gmd_snapshot_event *e = gmd_event_at(&a->facts->recording, moment);
    gmd_oom *same = find_same(ooms, e, outcome);
    gmd_oom_event *noted = &ooms->events[ooms->event_count++];
    *noted = (gmd_oom_event){moment, GMD_NO_OOM};
    ooms->lost += outcome == GMD_OOM_LOST;
    if (same) {
        same->repeats++;
        noted->item = (uint32_t)(same - ooms->items);
        return GMD_OK;
    }
    if (ooms->count >= MOST_LOOKED_AT && outcome != GMD_OOM_ENDED) {
        ooms->left_out++;
        return GMD_OK;
    }
    noted->item = (uint32_t)ooms->count;
    gmd_oom *oom = &ooms->items[ooms->count++];
    *oom = (gmd_oom){.moment = moment,
                     .origin = e->origin,
                     .requested = e->size,
                     .stream = e->stream,
                     .device_free = e->address,
                     .beside = GMD_NOT_KNOWN,
                     .outcome = outcome};
    return look_at(a, oom, error);
}

static gmd_status note_all(gmd_ooms *ooms, const gmd_facts *facts, const gmd_oom_outcome *outcomes,
                           gmd_error *error)
{
    const gmd_recording *r = &facts->recording;
    const autopsy a = autopsy_of(facts);
    gmd_status status = GMD_OK;
    for (uint32_t moment = r->first; status == GMD_OK && moment <= r->last; moment++) {
        const gmd_snapshot_event *e = gmd_event_at(r, moment);
        if (e->device == r->device && e->action == GMD_ACTION_OOM) {
            status = note(ooms, &a, moment, *outcomes++, error);
        }
    }
    return status;
}

gmd_status gmd_ooms_find(gmd_ooms *ooms, const gmd_facts *facts, gmd_error *error)
{
    const uint64_t count = facts->recording.oom_count;
    *ooms = (gmd_ooms){0};
    if (count == 0) {
        return GMD_OK;
    }
    ooms->items = calloc(MOST_LOOKED_AT + 1, sizeof *ooms->items);
    ooms->events = malloc(count * sizeof *ooms->events);
    gmd_oom_outcome *outcomes = malloc(count * sizeof *outcomes);
    gmd_status status = GMD_OK;
    if (ooms->items && ooms->events && outcomes) {
        gmd_oom_outcomes_find(outcomes, facts);
        status = note_all(ooms, facts, outcomes, error);
    } else {
        status = gmd_fail(error, GMD_NO_MEMORY, "no host memory for the out-of-memories");
    }
    free(outcomes);
    if (status != GMD_OK) {
        gmd_ooms_free(ooms);
    }
    return status;
}

void gmd_ooms_free(gmd_ooms *ooms)
{
    for (size_t i = 0; i < ooms->count; i++) {
        gmd_free_memory_release(&ooms->items[i].free);
    }
    free(ooms->items);
    free(ooms->events);
    *ooms = (gmd_ooms){0};
}

/* --- what is known from elsewhere ------------------------------------------------------------ */

size_t gmd_leak_of(const gmd_job_finding *leaks, size_t leak_count, uint32_t frame)
{
    for (size_t i = 0; i < leak_count; i++) {
        const gmd_job_finding *leak = &leaks[i];
        if (leak->where_count == 0 && frame == GMD_NO_PLACE) {
            return i;
        }
        for (size_t k = 0; k < leak->where_count; k++) {
            if (frame == (leak->where[k].is_inferred ? GMD_NO_PLACE : leak->where[k].frame)) {
                return i;
            }
        }
    }
    return leak_count;
}

/* A line may hold more than what leaks there. */
static uint64_t sum_leaked(const gmd_facts *facts, uint32_t moment, const gmd_job_finding *leaks,
                           size_t leak_count)
{
    uint64_t held[GMD_FINDING_CLASS_COUNT + 1] = {0}, leaked = 0;
    for (size_t i = 0; i < facts->recording.lifetime_count; i++) {
        const gmd_lifetime *l = &facts->recording.lifetimes[i];
        if (gmd_is_allocated_at(l, moment)) {
            uint32_t frame = gmd_places_frame(&facts->places, l->origin);
            held[gmd_leak_of(leaks, leak_count, frame)] += l->size;
        }
    }
    for (size_t i = 0; i < leak_count; i++) {
        leaked += gmd_min(held[i], leaks[i].bytes);
    }
    return leaked;
}

void gmd_ooms_know_leaks(gmd_ooms *ooms, const gmd_facts *facts, const gmd_job_finding *leaks,
                         size_t leak_count)
{
    const autopsy a = autopsy_of(facts);
    for (size_t i = 0; leak_count && i < ooms->count; i++) {
        gmd_oom *oom = &ooms->items[i];
        oom->leaked = sum_leaked(facts, oom->moment, leaks, leak_count);
        conclude(&a, oom);
    }
}

gmd_status gmd_ooms_know_capacity(gmd_ooms *ooms, uint64_t capacity, gmd_error *error)
{
    for (size_t i = 0; i < ooms->count; i++) {
        gmd_oom *oom = &ooms->items[i];
        char free_text[24], reserved[24];
        if (oom->device_free == GMD_NOT_KNOWN) {
            continue;
        }
        if (oom->device_free > capacity ||
            oom->free.amount.reserved > capacity - oom->device_free) {
            return gmd_fail(error, GMD_BAD_INPUT,
                            "the device has more than the capacity that was given: %s were free on "
                            "it and %s reserved at once",
                            gmd_format_size(oom->device_free, free_text),
                            gmd_format_size(oom->free.amount.reserved, reserved));
        }
        oom->beside = capacity - oom->device_free - oom->free.amount.reserved;
    }
    return GMD_OK;
}

/* The first that cost an iteration and has the cause that most of those have. */
static const gmd_oom *typical_lost(const gmd_ooms *ooms)
{
    uint64_t times[GMD_OOM_CAUSE_COUNT] = {0};
    const gmd_oom *typical = NULL;
    for (size_t i = 0; i < ooms->count; i++) {
        const gmd_oom *oom = &ooms->items[i];
        times[oom->cause] += oom->outcome == GMD_OOM_LOST ? 1 + (uint64_t)oom->repeats : 0;
    }
    for (size_t i = 0; i < ooms->count; i++) {
        const gmd_oom *oom = &ooms->items[i];
        if (oom->outcome == GMD_OOM_LOST &&
            (!typical || times[oom->cause] > times[typical->cause])) {
            typical = oom;
        }
    }
    return typical;
}

const gmd_oom *gmd_ooms_costly(const gmd_ooms *ooms)
{
    enum { LEAST_LOST = 2 }; /* iterations: one may be a batch that was far too long */
    for (size_t i = 0; i < ooms->count; i++) {
        if (ooms->items[i].outcome == GMD_OOM_ENDED) {
            return &ooms->items[i];
        }
    }
    return ooms->lost >= LEAST_LOST ? typical_lost(ooms) : NULL;
}

/* --- names ----------------------------------------------------------------------------------- */

const char *gmd_oom_cause_name(gmd_oom_cause cause)
{
    static const char *const names[] = {
#define GMD_OOM_CAUSE_NAME(name, text, sentence) text,
        GMD_OOM_CAUSES(GMD_OOM_CAUSE_NAME)
#undef GMD_OOM_CAUSE_NAME
    };
    return names[cause];
}

const char *gmd_oom_cause_sentence(gmd_oom_cause cause)
{
    static const char *const sentences[] = {
#define GMD_OOM_CAUSE_SENTENCE(name, text, sentence) sentence,
        GMD_OOM_CAUSES(GMD_OOM_CAUSE_SENTENCE)
#undef GMD_OOM_CAUSE_SENTENCE
    };
    return sentences[cause];
}
