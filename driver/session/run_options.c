#include "gmd_run_options.h"

#include <math.h>

double fraction_for(uint64_t limit, uint64_t total)
{
    double fraction = (double)limit / (double)total;
    while (fraction < 1 && (uint64_t)(fraction * (double)total) < limit) {
        fraction = nextafter(fraction, 1);
    }
    return fraction;
}

gmd_subject_source session_source(const gmd_run_options *options)
{
    return (gmd_subject_source){.spec = options->allocator,
                                .lib_directory = options->lib_directory,
                                .torch_adapter = options->torch_adapter,
                                .conf = options->conf};
}

const gmd_schedule *interleaving_of(const gmd_run_options *options, const gmd_trace *trace)
{
    if (!trace || trace->threads.count < 2) {
        return NULL;
    }
    const gmd_schedule *which = options->interleave ? options->interleave : &trace->interleave;
    return which->kind == GMD_SCHEDULE_UNSTATED ? NULL : which;
}
