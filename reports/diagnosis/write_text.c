/* write_text.c - a diagnosis on a screen: what is wrong, then its evidence. */
#include "gmd_diagnosis_report.h"

#include "curve.h"

#include "gmd_report_text.h"
#include "gmd_size.h"
#include "gmd_unused.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct page {
    const gmd_diagnosis *diagnosis;
    const gmd_diagnosis_view *view;
    const gmd_facts *facts; /* of the device that is told of */
    FILE *out;
    gmd_error *error;
} page;

/* --- text ------------------------------------------------------------------------------------ */

static const char *file_name(const char *path, bool whole)
{
    const char *slash = whole ? NULL : strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* "train.py:37 in train" */
static void put_place(const page *p, uint32_t frame)
{
    gmd_place place = gmd_places_get(&p->facts->places, frame);
    if (frame == GMD_NO_PLACE) {
        fputs("no frames were recorded", p->out);
        return;
    }
    gmd_put_line_text(file_name(place.file, p->view->all_frames), p->out);
    fprintf(p->out, ":%" PRIu32, place.line);
    if (*place.function) {
        fputs(" in ", p->out);
        gmd_put_line_text(place.function, p->out);
    }
}

/* "event 9,312, iteration 3 of 6" */
static void put_moment(const page *p, uint32_t moment)
{
    char number[32];
    const gmd_iterations *it = &p->facts->iterations;
    uint32_t iteration = gmd_iteration_of(it, moment);
    if (moment == GMD_BEFORE) {
        fputs("before the first event", p->out);
        return;
    }
    fprintf(p->out, "event %s", gmd_format_count(moment - 1, number));
    if (it->count && iteration == GMD_SET_UP) {
        fputs(", before the first iteration", p->out);
    } else if (it->count && iteration < it->count) {
        fprintf(p->out, ", iteration %" PRIu32 " of %" PRIu32, iteration + 1, it->count);
    }
}

/* --- what is wrong --------------------------------------------------------------------------- */

static void put_finding(page *p, const gmd_ranked_finding *ranked)
{
    const gmd_job_finding *finding = ranked->finding;
    char bytes[24], rate[24];
    const char *bold = p->view->terminal.color ? "\033[1m" : "";
    const char *plain = p->view->terminal.color ? "\033[0m" : "";
    fprintf(p->out, "%s%s%s: %s", bold, gmd_finding_class_name(finding->class), plain,
            gmd_format_size(finding->bytes, bytes));
    p->facts = &ranked->device->facts;
    if (p->diagnosis->device_count > 1) {
        fprintf(p->out, " on device %u", p->facts->recording.device);
    }
    if (finding->bytes_per_iteration) {
        fprintf(p->out, ", %s more in each iteration",
                gmd_format_size(finding->bytes_per_iteration, rate));
    }
    fprintf(p->out, " (confidence %.0f %%)\n", finding->confidence * 100);
    for (size_t i = 0; i < finding->where_count; i++) {
        fprintf(p->out, "  %10s  ", gmd_format_size(finding->where[i].bytes, bytes));
        put_place(p, finding->where[i].frame);
        fputs(finding->where[i].is_inferred ? ", the last line before it\n" : "\n", p->out);
    }
    gmd_put_wrapped(p->out, p->view->columns, 2, finding->evidence);
    fputs("  Fix:\n", p->out);
    gmd_put_wrapped(p->out, p->view->columns, 4, finding->fix);
    fputc('\n', p->out);
}

static void put_completeness(const page *p)
{
    const gmd_recording *r = &p->facts->recording;
    char count[32];
    if (r->begins_late) {
        gmd_put_wrapped(p->out, p->view->columns, 0,
                        "The recording begins late: memory was there before its first event. What "
                        "is told of it is since then; the job's own peak may have been earlier.");
    }
    if (r->ends_early) {
        gmd_put_wrapped(p->out, p->view->columns, 0,
                        "The snapshot's segments are of a later moment than its last event: the "
                        "events that led there are missing, so that the peak is a lower bound.");
    }
    if (r->contradictions) {
        fprintf(p->out, "%s events contradict others and were left out.\n",
                gmd_format_count(r->contradictions, count));
    }
}

/* --- who holds the memory -------------------------------------------------------------------- */

static gmd_holder_facts holder_facts(const gmd_facts *facts)
{
    return (gmd_holder_facts){&facts->recording, &facts->places, &facts->iterations,
                              &facts->categories};
}

static gmd_status put_lines(const page *p, uint32_t moment, uint32_t rows)
{
    const gmd_holder_facts of = holder_facts(p->facts);
    gmd_holders holders;
    char bytes[24], count[32];
    gmd_status status = gmd_holders_find(&holders, &of, GMD_BY_LINE, moment, p->error);
    if (status != GMD_OK) {
        return status;
    }
    size_t shown = holders.count < rows ? holders.count : rows;
    for (size_t i = 0; i < shown; i++) {
        const gmd_holder *h = &holders.items[i];
        fprintf(p->out, "  %10s %7s blocks  ", gmd_format_size(h->bytes, bytes),
                gmd_format_count(h->blocks, count));
        put_place(p, (uint32_t)h->key);
        fputc('\n', p->out);
    }
    if (shown < holders.count) {
        fprintf(p->out, "  and %s lines more\n", gmd_format_count(holders.count - shown, count));
    }
    gmd_holders_free(&holders);
    return GMD_OK;
}

static gmd_status put_categories(const page *p, uint32_t moment)
{
    const gmd_holder_facts of = holder_facts(p->facts);
    gmd_holders holders;
    char text[400] = "", bytes[24];
    size_t length = 0;
    gmd_status status = gmd_holders_find(&holders, &of, GMD_BY_CATEGORY, moment, p->error);
    if (status != GMD_OK) {
        return status;
    }
    for (size_t i = 0; i < holders.count && length < sizeof text; i++) {
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%s %s", i ? ", " : "",
                                   gmd_category_name((gmd_category)holders.items[i].key),
                                   gmd_format_size(holders.items[i].bytes, bytes));
    }
    if (*text) {
        gmd_put_wrapped(p->out, p->view->columns, 2, text);
    }
    gmd_holders_free(&holders);
    return GMD_OK;
}

static gmd_status put_holders(const page *p, uint32_t moment, uint32_t rows)
{
    gmd_status status = put_lines(p, moment, rows);
    return status == GMD_OK ? put_categories(p, moment) : status;
}

static gmd_status put_amount(const page *p, const char *title, const gmd_amount *amount,
                             uint32_t moment)
{
    char allocated[24], reserved[24];
    fprintf(p->out, "%s: %s allocated of %s reserved, ", title,
            gmd_format_size(amount->allocated, allocated),
            gmd_format_size(amount->reserved, reserved));
    put_moment(p, moment);
    fputc('\n', p->out);
    return put_holders(p, moment, p->view->rows);
}

/* --- memory that is free and does not serve -------------------------------------------------- */

static void put_causes(const page *p, const gmd_free_memory *free_memory)
{
    char bytes[24];
    for (int cause = 0; cause < GMD_FREE_CAUSE_COUNT; cause++) {
        if (free_memory->by_cause[cause]) {
            fprintf(p->out, "  %10s  %s\n", gmd_format_size(free_memory->by_cause[cause], bytes),
                    gmd_free_cause_sentence((gmd_free_cause)cause));
        }
    }
}

static bool has_free(const gmd_free_memory *free_memory)
{
    for (int cause = 0; cause < GMD_FREE_CAUSE_COUNT; cause++) {
        if (free_memory->by_cause[cause]) {
            return true;
        }
    }
    return false;
}

static void put_keepers(const page *p, const gmd_free_memory *free_memory)
{
    enum { SHOWN = 3 };
    char bytes[24];
    if (free_memory->keeper_count == 0 || free_memory->by_cause[GMD_FREE_SPLIT] == 0) {
        return;
    }
    fputs("  Kept by blocks of\n", p->out);
    for (size_t i = 0; i < free_memory->keeper_count && i < SHOWN; i++) {
        fprintf(p->out, "  %10s  ", gmd_format_size(free_memory->keepers[i].bytes, bytes));
        put_place(p, free_memory->keepers[i].frame);
        fputc('\n', p->out);
    }
}

/* "20.0 MiB for train.py:37 in train" */
static void put_request(const page *p, uint64_t requested, uint32_t origin)
{
    char bytes[24];
    uint32_t frame = gmd_places_frame(&p->facts->places, origin);
    fputs(gmd_format_size(requested, bytes), p->out);
    if (frame != GMD_NO_PLACE) {
        fputs(" for ", p->out);
        put_place(p, frame);
    }
}

static gmd_status put_unused(const page *p)
{
    const gmd_recording *r = &p->facts->recording;
    gmd_unused unused;
    char bytes[24];
    gmd_status status = gmd_unused_find(&unused, p->facts, p->error);
    if (status != GMD_OK) {
        return status;
    }
    fprintf(p->out, "Most reserved: %s, ", gmd_format_size(r->peak.amount.reserved, bytes));
    put_moment(p, r->peak.reserved_at);
    fputs(", of it not allocated\n", p->out);
    put_causes(p, &unused.free);
    if (unused.free.rounding) {
        fprintf(p->out, "  %10s  in blocks, beyond what was asked for: not in the sum\n",
                gmd_format_size(unused.free.rounding, bytes));
    }
    put_keepers(p, &unused.free);
    if (unused.has_request && has_free(&unused.refused)) {
        fputs("  The last request that took memory: ", p->out);
        put_request(p, unused.requested, unused.origin);
        fputs("; free then\n", p->out);
        put_causes(p, &unused.refused);
    }
    gmd_unused_release(&unused);
    return GMD_OK;
}

/* --- out of memory --------------------------------------------------------------------------- */

static void put_oom_amounts(const page *p, const gmd_oom *oom)
{
    char allocated[24], reserved[24], other[24];
    fprintf(p->out, "  %s allocated of %s reserved",
            gmd_format_size(oom->amount.allocated, allocated),
            gmd_format_size(oom->amount.reserved, reserved));
    if (oom->device_free != GMD_NOT_KNOWN) {
        fprintf(p->out, ", %s free on the device", gmd_format_size(oom->device_free, other));
    }
    fputc('\n', p->out);
    if (oom->beside != GMD_NOT_KNOWN) {
        fprintf(p->out, "  %s held beside PyTorch: by the driver, libraries and other processes\n",
                gmd_format_size(oom->beside, other));
    }
}

static void put_oom_title(const page *p, const gmd_oom *oom)
{
    static const char *const titles[] = {
        [GMD_OOM_SURVIVED] = "Out of memory, which the job survived: ",
        [GMD_OOM_LOST] = "Out of memory, which cost an iteration: ",
        [GMD_OOM_ENDED] = "Out of memory, which ended the job: "};
    fputs(titles[oom->outcome], p->out);
    put_request(p, oom->requested, oom->origin);
    fputs("\n  at ", p->out);
    put_moment(p, oom->moment);
    if (oom->repeats) {
        fprintf(p->out, ", and %" PRIu32 " times more", oom->repeats);
    }
    fputc('\n', p->out);
}

static gmd_status put_oom(const page *p, const gmd_oom *oom)
{
    enum { ROWS = 3 };
    char bytes[24];
    put_oom_title(p, oom);
    put_oom_amounts(p, oom);
    put_causes(p, &oom->free);
    fprintf(p->out, "  The largest request that would have been served: %s\n",
            gmd_format_size(oom->largest, bytes));
    fprintf(p->out, "  Cause: %s. Change:\n", gmd_oom_cause_name(oom->cause));
    gmd_put_wrapped(p->out, p->view->columns, 4, oom->change);
    fputs("  Held then\n", p->out);
    return put_holders(p, oom->moment, ROWS);
}

/* Those of an outcome, as many as there is room for; `*room` is what is left of it. */
static gmd_status put_ooms_of(const page *p, const gmd_ooms *ooms, gmd_oom_outcome outcome,
                              size_t *room)
{
    gmd_status status = GMD_OK;
    for (size_t i = 0; status == GMD_OK && i < ooms->count && *room; i++) {
        if (ooms->items[i].outcome == outcome) {
            status = put_oom(p, &ooms->items[i]);
            (*room)--;
        }
    }
    return status;
}

/* What cost most first. */
static gmd_status put_ooms(const page *p, const gmd_ooms *ooms)
{
    enum { SHOWN = 3 };
    char count[32];
    size_t room = p->view->rows < SHOWN ? p->view->rows : SHOWN, shown = room;
    gmd_status status = GMD_OK;
    for (int outcome = GMD_OOM_OUTCOME_COUNT; status == GMD_OK && outcome-- > 0;) {
        status = put_ooms_of(p, ooms, (gmd_oom_outcome)outcome, &room);
    }
    uint64_t more = ooms->count - (shown - room) + ooms->left_out;
    if (more) {
        fprintf(p->out, "Out of memory for %s lines and sizes more (all: --json)\n",
                gmd_format_count(more, count));
    }
    if (ooms->count) {
        fputc('\n', p->out);
    }
    return status;
}

/* --- the whole ------------------------------------------------------------------------------- */

static void put_iterations(const page *p, const gmd_facts *facts)
{
    if (facts->iterations.count) {
        fprintf(p->out, ", %" PRIu32 " iterations", facts->iterations.count);
    }
}

/* An out-of-memory that cost nothing is no finding, and is told all the same. */
static void put_verdict(const page *p)
{
    uint64_t ooms = gmd_diagnosis_oom_count(p->diagnosis);
    char count[32];
    if (p->diagnosis->finding_count == 0) {
        fputs(", healthy", p->out);
    }
    if (p->diagnosis->finding_count == 0 && ooms) {
        fprintf(p->out, "; it survived %s out-of-memor%s", gmd_format_count(ooms, count),
                ooms == 1 ? "y" : "ies");
    }
    fputs("\n\n", p->out);
}

static void put_title(const page *p)
{
    const gmd_diagnosis *d = p->diagnosis;
    char events[32];
    gmd_put_line_text(d->name, p->out);
    fprintf(p->out, ": %s events", gmd_format_count(d->snapshot.event_count, events));
    if (d->device_count > 1) {
        fprintf(p->out, ", %zu devices", d->device_count);
    } else {
        put_iterations(p, &d->devices[0].facts);
    }
    put_verdict(p);
}

static void put_device_title(const page *p)
{
    char events[32];
    fprintf(p->out, "Device %u: %s events", p->facts->recording.device,
            gmd_format_count(p->facts->recording.event_count, events));
    put_iterations(p, p->facts);
    fputs("\n\n", p->out);
}

static gmd_status put_device(page *p, const gmd_device_diagnosis *device)
{
    const gmd_recording *r = &device->facts.recording;
    p->facts = &device->facts;
    if (p->diagnosis->device_count > 1) {
        put_device_title(p);
    }
    gmd_status status = put_ooms(p, &device->ooms);
    put_completeness(p);
    if (status == GMD_OK) {
        status = curve_put(p->facts, p->view, p->out, p->error);
    }
    if (status == GMD_OK) {
        status = put_amount(p, "Peak", &r->peak.amount, r->peak.allocated_at);
    }
    if (status == GMD_OK) {
        status = put_amount(p, "End", &r->at_end, r->last);
    }
    return status == GMD_OK ? put_unused(p) : status;
}

static gmd_status put_diagnosis(page *p)
{
    const gmd_diagnosis *d = p->diagnosis;
    gmd_status status = GMD_OK;
    put_title(p);
    for (size_t i = 0; i < d->finding_count; i++) {
        put_finding(p, &d->findings[i]);
    }
    for (size_t i = 0; status == GMD_OK && i < d->device_count; i++) {
        fputs(i ? "\n" : "", p->out);
        status = put_device(p, &d->devices[i]);
    }
    return status;
}

gmd_status gmd_diagnosis_write_text(const gmd_diagnosis *diagnosis, const gmd_diagnosis_view *view,
                                    FILE *out, gmd_error *error)
{
    page p = {.diagnosis = diagnosis, .view = view, .out = out, .error = error};
    gmd_status status = GMD_OK;
    if (diagnosis->device_count) {
        status = put_diagnosis(&p);
    } else {
        gmd_put_line_text(diagnosis->name, out);
        fputs(": nothing is in it: neither events nor segments\n", out);
    }
    return status == GMD_OK ? gmd_finish_writing(out, "the diagnosis", error) : status;
}
