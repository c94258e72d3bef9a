#include "play.h"

#include "run_workload.h"
#include "smallest.h"

#include "gmd_scenario_inspect.h"
#include "gmd_session.h"

#include <stdio.h>
#include <string.h>

typedef struct scenario_run {
    gmd_scenario *scenario;
    gmd_param params[CLI_PARAM_MAX];
    size_t param_count;
    uint64_t seed;
    bool tells_lines;
    bool is_quiet; /* print() does nothing */
} scenario_run;

static gmd_served sink_request(void *context, const gmd_request *request)
{
    return gmd_session_request(context, request);
}

static void sink_phase(void *context, const char *label)
{
    gmd_session_phase(context, label);
}

static void sink_bound(void *context, const gmd_bound *bound)
{
    gmd_session_bound(context, bound);
}

static void sink_reset_peaks(void *context)
{
    gmd_session_reset_peaks(context, 0);
}

static void sink_place(void *context, const char *file, int line)
{
    gmd_session_place(context, file, line);
}

static void sink_workspaces(void *context, const gmd_workspace_use *use)
{
    gmd_session_workspaces(context, use);
}

static bool sink_memory(void *context, gmd_sink_memory *memory)
{
    return gmd_session_memory(context, memory);
}

static gmd_status play(void *context, gmd_session *session, gmd_error *error)
{
    const scenario_run *run = context;
    gmd_sink sink = {.context = session,
                     .request = sink_request,
                     .phase = sink_phase,
                     .memory = sink_memory,
                     .bound = sink_bound,
                     .workspaces = sink_workspaces,
                     .reset_peaks = sink_reset_peaks,
                     .place = sink_place,
                     .tells_lines = run->tells_lines};
    bool out_of_memory = false;
    gmd_scenario_mute(run->scenario, run->is_quiet || gmd_session_is_repetition(session));
    gmd_status status = gmd_scenario_run(run->scenario, run->params, run->param_count, run->seed,
                                         &sink, &out_of_memory, error);
    if (status == GMD_OK && out_of_memory) {
        gmd_session_fail(
            session, GMD_KIND(expect, script_ended), GMD_NO_PARTIES,
            gmd_session_last_refused(session),
            "the job ran out of memory: this allocation was refused and the script does "
            "not handle that");
    }
    return status;
}

/* Run number `i` of several. A seed in the schedule differs from run to run, too. The first run of
 * placements is the one without a seed. */
static gmd_run_options options_of(const cli_plan *plan, const gmd_run_options *options, uint64_t i)
{
    gmd_run_options one = *options;
    if (!plan->placement_seeds) {
        one.seed += i;
        if (one.conditions.schedule.kind == GMD_SCHEDULE_SEEDED) {
            one.conditions.schedule.seed += i;
        }
    } else if (i > 0) {
        one.conditions.placement = (gmd_placement){GMD_PLACEMENT_SEEDED, options->seed + i - 1};
    }
    return one;
}

/* As often as the plan says. `seed`: of the body, or NULL. */
static gmd_status repeat(const cli_plan *plan, const gmd_run_options *options,
                         const gmd_workload *workload, uint64_t *seed, cli_results *results,
                         gmd_error *error)
{
    gmd_status status = GMD_OK;
    size_t first = results->count;
    uint64_t runs = plan->placement_seeds ? plan->placement_seeds + 1 : plan->repeat;
    for (uint64_t i = 0; i < runs && status == GMD_OK; i++) {
        const gmd_run_options one = options_of(plan, options, i);
        if (seed) {
            *seed = one.seed;
        }
        status = cli_run_workload(results, &one, workload, error);
        if (status == GMD_OK || status == GMD_INTERRUPTED) {
            cli_results_done(results);
        }
    }
    if (runs > 1 && results->count > first) {
        gmd_status noted = cli_results_repeated(results, first, plan->placement_seeds > 0, error);
        status = status == GMD_OK ? noted : status;
    }
    return status;
}

/* An inspection at a phase that the run did not reach is an error. */
static gmd_status check_phase(const cli_plan *plan, const gmd_inspection *inspection,
                              const gmd_outcome *outcome, gmd_error *error)
{
    bool at_phase = plan->at && (plan->inspect & (GMD_INSPECT_TENSORS | GMD_INSPECT_RETENTION));
    if (!at_phase || inspection->was_reached || outcome->verdict != GMD_PASS) {
        return GMD_OK;
    }
    char known[300] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < outcome->phase_count && used < 200; i++) {
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%.60s", i ? ", " : "",
                                 outcome->phases[i].label);
    }
    return gmd_fail(error, GMD_BAD_INPUT, "--at %.60s: %.80s has no such phase; there are: %s%s",
                    plan->at, outcome->name, *known ? known : "none", used < 200 ? "" : ", ...");
}

/* One run that is inspected. */
static gmd_status inspect(const cli_plan *plan, const gmd_workload *workload, scenario_run *run,
                          cli_results *results, gmd_error *error)
{
    gmd_inspection *inspection = gmd_inspection_open(plan->inspect, plan->at, error);
    if (!inspection) {
        return GMD_NO_MEMORY;
    }
    gmd_scenario_inspect(run->scenario, inspection);
    gmd_status status = cli_run_workload(results, &plan->options->run, workload, error);
    gmd_scenario_inspect(run->scenario, NULL);
    if (status != GMD_OK && status != GMD_INTERRUPTED) {
        gmd_inspection_close(inspection);
        return status;
    }
    cli_results_inspected(results, inspection);
    cli_results_done(results);
    if (status == GMD_INTERRUPTED) {
        return status;
    }
    return check_phase(plan, inspection, results->items[results->count - 1], error);
}

gmd_status cli_play_scenario(const cli_plan *plan, const char *name, bool is_of_group,
                             cli_results *results, gmd_error *error)
{
    char variant[128];
    scenario_run run = {.tells_lines = results->keeps_journals || results->keeps_timelines,
                        .is_quiet = plan->options->quiet};
    cli_variants declared;
    const cli_variants *variants = plan->variants;
    if (gmd_schedule_is_stated(&plan->options->run.conditions.interleave)) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "a scenario has one thread: --interleave needs a trace with more");
    }
    gmd_status status = gmd_scenario_open(&run.scenario, name, plan->directory, error);
    if (status == GMD_OK) {
        gmd_scenario_use_workspaces(run.scenario, plan->workspaces);
        gmd_scenario_list_unrecorded(run.scenario, plan->unrecorded);
    }
    if (status == GMD_OK && is_of_group) {
        cli_variants_declared(plan->variants, run.scenario, &declared);
        variants = &declared;
    }
    bool is_file = strlen(name) > 4 && strcmp(name + strlen(name) - 4, ".lua") == 0;
    size_t combinations = cli_variants_combinations(variants);
    for (size_t choice = 0; status == GMD_OK && choice < combinations; choice++) {
        cli_variants_choose(variants, choice, run.params, variant, sizeof variant);
        run.param_count = variants->count;
        gmd_workload workload = {.name = gmd_scenario_name(run.scenario),
                                 .path = is_file ? name : NULL,
                                 .kind = "scenario",
                                 .variant = variant,
                                 .body = play,
                                 .context = &run};
        run.seed = plan->options->run.seed;
        status = plan->inspect ? inspect(plan, &workload, &run, results, error)
                 : plan->finds_smallest_limit
                     ? cli_smallest_run(results, &plan->options->run, &workload, error)
                     : repeat(plan, &plan->options->run, &workload, &run.seed, results, error);
    }
    gmd_scenario_close(run.scenario);
    return status;
}

gmd_status cli_play_trace(const cli_plan *plan, const char *path, const gmd_run_options *options,
                          const gmd_trace *trace, cli_results *results, gmd_error *error)
{
    if (plan->inspect) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "%.200s: a trace has no tensors and no lines: --lines, --tensors, "
                        "--retention, --timeline and --inspect are for scenarios",
                        path);
    }
    gmd_workload workload = {
        .name = path, .path = path, .kind = "trace", .trace = trace, .body = gmd_play_trace};
    return repeat(plan, options, &workload, NULL, results, error);
}
