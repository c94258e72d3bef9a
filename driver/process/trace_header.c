#include "gmd_trace_header.h"

#include "gmd_text.h"

#include <string.h>

gmd_status gmd_trace_copy_header(gmd_trace *to, const gmd_trace *from, gmd_error *error)
{
    *to = (gmd_trace){.device_count = from->device_count, .capacity_bytes = from->capacity_bytes};
    gmd_status status = GMD_OK;
    if (from->conf && !(to->conf = gmd_text_copy(from->conf, strlen(from->conf)))) {
        status = gmd_fail(error, GMD_NO_MEMORY, "no host memory for a trace");
    }
    if (status == GMD_OK) {
        status = gmd_schedule_copy(&to->schedule, &from->schedule, error);
    }
    if (status == GMD_OK) {
        status = gmd_schedule_copy(&to->interleave, &from->interleave, error);
    }
    if (status != GMD_OK) {
        gmd_trace_free(to);
    }
    return status;
}

static bool schedules_equal(const gmd_schedule *a, const gmd_schedule *b)
{
    return a->kind == b->kind && a->seed == b->seed && a->choice_count == b->choice_count &&
           (!a->choice_count || memcmp(a->choices, b->choices, a->choice_count) == 0);
}

bool gmd_trace_has_header_of(const gmd_trace *a, const gmd_trace *b)
{
    return a->device_count == b->device_count && a->capacity_bytes == b->capacity_bytes &&
           strcmp(a->conf ? a->conf : "", b->conf ? b->conf : "") == 0 &&
           schedules_equal(&a->schedule, &b->schedule);
}

gmd_trace header_in_force(const gmd_trace *trace, const gmd_run_options *given)
{
    gmd_trace h = {
        .device_count = trace->device_count ? trace->device_count : given->device_count,
        .capacity_bytes = trace->capacity_bytes ? trace->capacity_bytes : given->capacity_bytes,
        .conf = trace->conf ? trace->conf : (char *)(uintptr_t)given->conf, /* only read */
        .schedule = trace->schedule};
    if (h.schedule.kind == GMD_SCHEDULE_UNSTATED && given->schedule) {
        h.schedule = *given->schedule;
    }
    return h;
}

void gmd_options_of_header(gmd_run_options *options, const gmd_run_options *given,
                           const gmd_trace *header)
{
    *options = *given;
    options->case_directory = NULL;
    options->shows_progress = false;
    if (header->device_count) {
        options->device_count = header->device_count;
    }
    if (header->capacity_bytes) {
        options->capacity_bytes = header->capacity_bytes;
    }
    /* A real device has the memory it has: there the limit stands in for the stated capacity. */
    if (header->capacity_bytes && options->device == GMD_DEVICE_CUDA && !options->limit_bytes) {
        options->limit_bytes = header->capacity_bytes;
        options->limit_is_optional = true;
    }
    if (header->conf) {
        options->conf = header->conf;
    }
    if (header->schedule.kind != GMD_SCHEDULE_UNSTATED) {
        options->schedule = &header->schedule;
    }
}
