#include "inputs.h"

#include "gmd_file.h"
#include "gmd_text.h"

#include <stdlib.h>

gmd_status cli_read_trace(gmd_trace *trace, const char *path, const cli_options *given,
                          gmd_run_options *options, gmd_error *error)
{
    uint8_t *text = NULL;
    size_t size = 0;
    gmd_status status = gmd_file_read(path, &text, &size, error);
    if (status == GMD_OK) {
        status = gmd_trace_parse(trace, (const char *)text, size, path, error);
    }
    free(text);
    if (status != GMD_OK) {
        return status;
    }
    if (trace->device_count && !given->has_devices) {
        options->device_count = trace->device_count;
    }
    if (trace->capacity_bytes && !given->has_capacity) {
        options->capacity_bytes = trace->capacity_bytes;
    }
    /* A real device has the memory it has: there the limit stands in for the stated capacity. */
    if (trace->capacity_bytes && options->device == GMD_DEVICE_CUDA && !options->limit_bytes) {
        options->limit_bytes = trace->capacity_bytes;
        options->limit_is_optional = true;
    }
    if (!given->run.schedule) {
        options->schedule = &trace->schedule;
    }
    if (given->run.interleave && trace->threads.count < 2) {
        return gmd_fail(error, GMD_BAD_INPUT, "%s: has one thread: --interleave needs more", path);
    }
    if (trace->conf && !given->run.conf) {
        options->conf = trace->conf;
    }
    return GMD_OK;
}

bool cli_is_result(const char *input)
{
    return gmd_text_ends_with(input, ".json") || gmd_text_ends_with(input, ".json.gz");
}

void cli_refuse_result(struct argp_state *state, const char *input)
{
    if (cli_is_result(input)) {
        argp_error(state,
                   "%s: cannot be run; a result that --json wrote is read by 'gmd report %s -o "
                   "FILE'",
                   input, input);
    }
}
