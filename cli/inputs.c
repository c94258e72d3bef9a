#include "inputs.h"

#include "gmd_text.h"

#include <stdlib.h>
#include <string.h>

static bool overrides_conditions(const cli_options *given)
{
    const gmd_conditions *c = &given->run.conditions;
    return given->has_devices || given->has_capacity || c->limit_bytes || c->conf ||
           gmd_schedule_is_stated(&c->schedule) || gmd_schedule_is_stated(&c->interleave) ||
           given->run.interleave_seeds;
}

/* What the command line says wins over the trace; its defaults do not. */
static void take_conditions(const cli_options *given, const gmd_conditions *stated,
                            gmd_run_options *options)
{
    gmd_conditions taken = *stated;
    if (given->has_devices) {
        taken.device_count = 0;
    }
    if (given->has_capacity) {
        taken.capacity_bytes = 0;
    }
    if (given->run.conditions.conf) {
        taken.conf = NULL;
    }
    if (gmd_placement_is_stated(&given->run.conditions.placement)) {
        taken.placement = (gmd_placement){0};
    }
    if (gmd_schedule_is_stated(&given->run.conditions.schedule)) {
        taken.schedule = (gmd_schedule){0};
    }
    options->cases.file_says_all = !overrides_conditions(given);
    options->conditions = gmd_conditions_in_force(&taken, &options->conditions);
    gmd_options_limit_for(options, stated->capacity_bytes);
}

gmd_status cli_read_trace(gmd_trace *trace, const char *path, const cli_options *given,
                          gmd_run_options *options, gmd_error *error)
{
    cli_read read;
    cli_read_begin(&read, &given->reading, path);
    gmd_status status = cli_read_end(&read, gmd_trace_read(trace, path, error), error);
    if (status != GMD_OK) {
        return status;
    }
    if (gmd_schedule_is_stated(&given->run.conditions.interleave) && trace->threads.count < 2) {
        return gmd_fail(error, GMD_BAD_INPUT, "%s: has one thread: --interleave needs more", path);
    }
    take_conditions(given, &trace->conditions, options);
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

void cli_refuse_trace(struct argp_state *state, const char *input)
{
    if (gmd_text_ends_with(input, ".gmd")) {
        argp_error(state, "%s: is a trace of requests, and no recorded job; 'gmd run %s' runs it",
                   input, input);
    }
}

void cli_refuse_argument(struct argp_state *state, const char *text)
{
    bool is_library = strstr(text, ".so") != NULL;
    argp_error(state, "expected no arguments, found '%s'%s%s%s", text,
               is_library ? "; the allocator is named by --allocator " : "",
               is_library && !strchr(text, '/') ? "./" : "", is_library ? text : "");
}
