/* write_text.c - a diagnosis on a screen: what is wrong, then its evidence. */
#include "gmd_diagnosis_report.h"

#include "curve.h"

#include "gmd_report_text.h"
#include "gmd_size.h"

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

/* Others tell nothing of reserved memory, and not of what PyTorch does with it. */
static bool is_of_pytorch(const page *p)
{
    return p->diagnosis->snapshot.recorder == GMD_RECORDER_PYTORCH;
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

static void put_finding(const page *p, const gmd_job_finding *finding)
{
    char bytes[24], rate[24];
    const char *bold = p->view->terminal.color ? "\033[1m" : "";
    const char *plain = p->view->terminal.color ? "\033[0m" : "";
    fprintf(p->out, "%s%s%s: %s", bold, gmd_finding_class_name(finding->class), plain,
            gmd_format_size(finding->bytes, bytes));
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

static gmd_status put_lines(const page *p, uint32_t moment)
{
    const gmd_holder_facts of = holder_facts(p->facts);
    gmd_holders holders;
    char bytes[24], count[32];
    gmd_status status = gmd_holders_find(&holders, &of, GMD_BY_LINE, moment, p->error);
    if (status != GMD_OK) {
        return status;
    }
    size_t shown = holders.count < p->view->rows ? holders.count : p->view->rows;
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

static gmd_status put_amount(const page *p, const char *title, const gmd_amount *amount,
                             uint32_t moment)
{
    char allocated[24], reserved[24];
    fprintf(p->out, "%s: %s allocated", title, gmd_format_size(amount->allocated, allocated));
    if (is_of_pytorch(p)) {
        fprintf(p->out, " of %s reserved", gmd_format_size(amount->reserved, reserved));
    }
    if (p->diagnosis->snapshot.has_events || is_of_pytorch(p)) {
        fputs(", ", p->out);
        put_moment(p, moment);
    }
    fputc('\n', p->out);
    gmd_status status = put_lines(p, moment);
    return status == GMD_OK && is_of_pytorch(p) ? put_categories(p, moment) : status;
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

static gmd_status put_unused(const page *p)
{
    const gmd_recording *r = &p->facts->recording;
    gmd_free_memory unused;
    char bytes[24];
    gmd_status status =
        gmd_free_memory_find(&unused, r, &p->facts->places, r->peak.reserved_at, NULL, p->error);
    if (status != GMD_OK) {
        return status;
    }
    fprintf(p->out, "Most reserved: %s, ", gmd_format_size(r->peak.amount.reserved, bytes));
    put_moment(p, r->peak.reserved_at);
    fputs(", of it not allocated\n", p->out);
    put_causes(p, &unused);
    put_keepers(p, &unused);
    gmd_free_memory_release(&unused);
    return GMD_OK;
}

static void put_oom(const page *p, const gmd_oom *oom)
{
    char bytes[24], other[24];
    uint32_t frame = gmd_places_frame(&p->facts->places, oom->origin);
    fprintf(p->out, "Out of memory: %s asked for", gmd_format_size(oom->requested, bytes));
    if (frame != GMD_NO_PLACE) {
        fputs(" in ", p->out);
        put_place(p, frame);
    }
    fputs(", ", p->out);
    put_moment(p, oom->moment);
    if (oom->repeats) {
        fprintf(p->out, ", and %" PRIu32 " times more", oom->repeats);
    }
    fprintf(p->out, "\n  Cause: %s; %s allocated of %s reserved", gmd_oom_cause_name(oom->cause),
            gmd_format_size(oom->amount.allocated, bytes),
            gmd_format_size(oom->amount.reserved, other));
    if (oom->device_free != UINT64_MAX) {
        fprintf(p->out, ", %s free on the device", gmd_format_size(oom->device_free, bytes));
    }
    fputc('\n', p->out);
    put_causes(p, &oom->free);
    fprintf(p->out, "  The largest request that would have been served: %s\n  Change:\n",
            gmd_format_size(oom->largest, bytes));
    gmd_put_wrapped(p->out, p->view->columns, 4, oom->change);
}

static void put_ooms(const page *p, const gmd_ooms *ooms)
{
    char count[32];
    size_t shown = ooms->count < p->view->rows ? ooms->count : p->view->rows;
    for (size_t i = 0; i < shown; i++) {
        put_oom(p, &ooms->items[i]);
    }
    uint64_t more = ooms->count - shown + ooms->left_out;
    if (more) {
        fprintf(p->out, "Out of memory for %s lines and sizes more\n",
                gmd_format_count(more, count));
    }
    if (ooms->count) {
        fputc('\n', p->out);
    }
}

/* --- the whole ------------------------------------------------------------------------------- */

static void put_title(const page *p, const gmd_device_diagnosis *device)
{
    const gmd_recording *r = &device->facts.recording;
    char events[32];
    gmd_put_line_text(p->diagnosis->name, p->out);
    if (p->diagnosis->device_count > 1) {
        fprintf(p->out, ", device %u", r->device);
    }
    if (is_of_pytorch(p) || p->diagnosis->snapshot.has_events) {
        fprintf(p->out, ": %s events", gmd_format_count(r->event_count, events));
    }
    if (device->facts.iterations.count) {
        fprintf(p->out, ", %" PRIu32 " iterations", device->facts.iterations.count);
    }
    bool is_healthy =
        is_of_pytorch(p) && device->findings.count == 0 && device->ooms.count == 0;
    fputs(is_healthy ? ", healthy\n\n" : "\n\n", p->out);
}

/* What another recorder's file has: who holds the memory, and how it went. */
static gmd_status put_other(const page *p)
{
    const gmd_recording *r = &p->facts->recording;
    char count[32];
    if (!p->diagnosis->snapshot.has_events) {
        return put_amount(p, "Held", &r->peak.amount, r->peak.allocated_at);
    }
    put_completeness(p);
    if (r->oom_count) {
        fprintf(p->out, "Out of memory: %s times\n\n", gmd_format_count(r->oom_count, count));
    }
    gmd_status status = curve_put(p->facts, p->view, p->out, p->error);
    if (status == GMD_OK) {
        status = put_amount(p, "Peak", &r->peak.amount, r->peak.allocated_at);
    }
    return status == GMD_OK ? put_amount(p, "End", &r->at_end, r->last) : status;
}

static gmd_status put_device(page *p, const gmd_device_diagnosis *device)
{
    const gmd_recording *r = &device->facts.recording;
    p->facts = &device->facts;
    put_title(p, device);
    if (!is_of_pytorch(p)) {
        return put_other(p);
    }
    for (size_t i = 0; i < device->findings.count; i++) {
        put_finding(p, &device->findings.items[i]);
    }
    put_ooms(p, &device->ooms);
    put_completeness(p);
    gmd_status status = curve_put(p->facts, p->view, p->out, p->error);
    if (status == GMD_OK) {
        status = put_amount(p, "Peak", &r->peak.amount, r->peak.allocated_at);
    }
    if (status == GMD_OK) {
        status = put_amount(p, "End", &r->at_end, r->last);
    }
    return status == GMD_OK ? put_unused(p) : status;
}

gmd_status gmd_diagnosis_write_text(const gmd_diagnosis *diagnosis, const gmd_diagnosis_view *view,
                                    FILE *out, gmd_error *error)
{
    page p = {.diagnosis = diagnosis, .view = view, .out = out, .error = error};
    gmd_status status = GMD_OK;
    for (size_t i = 0; status == GMD_OK && i < diagnosis->device_count; i++) {
        if (i) {
            fputc('\n', out);
        }
        status = put_device(&p, &diagnosis->devices[i]);
    }
    if (diagnosis->device_count == 0) {
        gmd_put_line_text(diagnosis->name, out);
        fputs(": nothing is in it: neither events nor segments\n", out);
    }
    return status == GMD_OK ? gmd_finish_writing(out, "the diagnosis", error) : status;
}
