#include "gmd_run_options.h"

#include "gmd_contract.h"

#include <math.h>

double fraction_for(uint64_t limit, uint64_t total)
{
    double fraction = (double)limit / (double)total;
    while (fraction < 1 && (uint64_t)(fraction * (double)total) < limit) {
        fraction = nextafter(fraction, 1);
    }
    return fraction;
}

void gmd_options_limit_for(gmd_run_options *options, uint64_t stated_capacity_bytes)
{
    if (stated_capacity_bytes && options->device.kind == GMD_DEVICE_CUDA &&
        !options->conditions.limit_bytes) {
        options->conditions.limit_bytes = stated_capacity_bytes;
        options->device.limit_is_optional = true;
    }
}

gmd_run_options gmd_options_under(const gmd_run_options *given, const gmd_conditions *stated)
{
    gmd_run_options options = *given;
    options.cases.directory = NULL;
    options.process.shows_progress = false;
    options.conditions = gmd_conditions_in_force(stated, &given->conditions);
    gmd_options_limit_for(&options, stated->capacity_bytes);
    return options;
}

void gmd_options_leave_to_traces(gmd_run_options *options)
{
    const gmd_conditions *given = &options->conditions;
    options->conditions = (gmd_conditions){.device_count = given->device_count,
                                           .capacity_bytes = given->capacity_bytes};
}

gmd_run_options gmd_options_hurried(const gmd_run_options *given, double call_budget_s)
{
    gmd_run_options options = *given;
    if (options.process.call_budget_s > call_budget_s) {
        if (!(options.process.load_budget_s > 0)) {
            options.process.load_budget_s = options.process.call_budget_s;
        }
        options.process.call_budget_s = call_budget_s;
    }
    return options;
}

gmd_run_options gmd_options_unjudged(const gmd_run_options *given)
{
    gmd_run_options options = *given;
    options.judging.oracles_off = true;
    return options;
}

gmd_subject_source session_source(const gmd_run_options *options)
{
    return (gmd_subject_source){.spec = options->subject.allocator,
                                .lib_directory = options->subject.lib_directory,
                                .torch_adapter = options->subject.torch_adapter,
                                .conf = options->conditions.conf};
}

const gmd_schedule *interleaving_of(const gmd_run_options *options, const gmd_trace *trace)
{
    if (!trace || trace->threads.count < 2 ||
        gmd_contract_has(options->judging.contract, GMD_CLAUSE_THREADS, GMD_THREADS_ONE)) {
        return NULL;
    }
    const gmd_schedule *given = &options->conditions.interleave;
    const gmd_schedule *which =
        gmd_schedule_is_stated(given) ? given : &trace->conditions.interleave;
    return which->kind == GMD_SCHEDULE_UNSTATED ? NULL : which;
}
