#include "gmd_trace.h"

#include "names.h"

#include "gmd_grow.h"

#include <stdlib.h>

/* Where memory for the two entries is wanting, the lists stay empty and the first append says so.
 */
void gmd_trace_init(gmd_trace *trace)
{
    uint32_t index;
    *trace = (gmd_trace){0};
    gmd_names_add(&trace->streams, NULL, &index, NULL);
    gmd_names_add(&trace->threads, "main", &index, NULL);
}

void gmd_trace_free(gmd_trace *trace)
{
    free(trace->requests);
    free(trace->stream_handles);
    gmd_conditions_free(&trace->conditions);
    gmd_names_free(&trace->blocks);
    gmd_names_free(&trace->streams);
    gmd_names_free(&trace->threads);
    gmd_names_free(&trace->functions);
    gmd_names_free(&trace->pools);
    *trace = (gmd_trace){0};
}

static gmd_status grow(gmd_trace *trace, gmd_error *error)
{
    if (trace->count >= GMD_MAX_TRACE_LEN) {
        return gmd_fail(error, GMD_BAD_INPUT, "a trace has at most %zu requests",
                        GMD_MAX_TRACE_LEN);
    }
    return GMD_GROW(&trace->requests, &trace->capacity, trace->count + 1)
               ? GMD_OK
               : gmd_fail(error, GMD_NO_MEMORY, "no host memory for more than %zu requests",
                          trace->count);
}

gmd_status gmd_trace_append(gmd_trace *trace, const gmd_request *request, gmd_error *error)
{
    if (!trace->streams.count || !trace->threads.count) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for a trace");
    }
    gmd_status status = trace->count < trace->capacity ? GMD_OK : grow(trace, error);
    if (status == GMD_OK) {
        trace->requests[trace->count++] = *request;
    }
    return status;
}
