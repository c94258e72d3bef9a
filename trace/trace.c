#include "gmd_trace.h"

#include "gmd_grow.h"

#include <stdlib.h>
#include <string.h>

const char *const gmd_pool_option_words[GMD_POOL_OPTION_COUNT] = {"no_split", "use_on_oom",
                                                                  "own_memory"};

gmd_status gmd_names_add(gmd_names *names, const char *name, uint32_t *index, gmd_error *error)
{
    if (names->count == names->capacity) {
        if (names->count >= GMD_MAX_TRACE_LEN) {
            return gmd_fail(error, GMD_BAD_INPUT, "a trace has at most %zu names",
                            GMD_MAX_TRACE_LEN);
        }
        if (!GMD_GROW(&names->items, &names->capacity, names->count + 1)) {
            return gmd_fail(error, GMD_NO_MEMORY, "no host memory for %u names", names->count + 1);
        }
    }
    char *copy = name ? strdup(name) : NULL;
    if (name && !copy) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for a name");
    }
    *index = names->count;
    names->items[names->count++] = copy;
    return GMD_OK;
}

/* Where memory for the two entries is wanting, the lists stay empty and the first append says so.
 */
void gmd_trace_init(gmd_trace *trace)
{
    uint32_t index;
    *trace = (gmd_trace){0};
    gmd_names_add(&trace->streams, NULL, &index, NULL);
    gmd_names_add(&trace->threads, "main", &index, NULL);
}

static void free_names(gmd_names *names)
{
    for (uint32_t i = 0; i < names->count; i++) {
        free(names->items[i]);
    }
    free(names->items);
    *names = (gmd_names){0};
}

void gmd_trace_free(gmd_trace *trace)
{
    free(trace->requests);
    free(trace->stream_handles);
    gmd_conditions_free(&trace->conditions);
    free_names(&trace->blocks);
    free_names(&trace->streams);
    free_names(&trace->threads);
    free_names(&trace->functions);
    free_names(&trace->pools);
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
