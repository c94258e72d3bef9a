/* probe.c - gmd probe: an allocator's contract, found out by trying, as a profile. */
#include "commands.h"
#include "interruption.h"
#include "options.h"
#include "writable.h"

#include "gmd_contract_probe.h"
#include "gmd_output.h"

#include <stdio.h>
#include <string.h>

#define TIMEOUT_SECONDS 1 /* a correct allocator answers in microseconds */

typedef struct probe_arguments {
    cli_options common;
    const char *output;
} probe_arguments;

static const struct argp_option probe_options[] = {
    {"output", 'o', "FILE", 0, "where to (-: standard output, as without it)", 1},
    {0},
};

static void check_arguments(struct argp_state *state, const probe_arguments *a)
{
    const cli_options *c = &a->common;
    gmd_error error = {""};
    if (c->run.device.kind != GMD_DEVICE_SIM) {
        argp_error(state, "a contract is found out on the simulated device");
    }
    if (c->profile) {
        argp_error(state, "--profile %s: a profile is what comes of it", c->profile);
    }
    if (strcmp(a->output, "-") != 0 && cli_probe_file(a->output, &error) != GMD_OK) {
        argp_error(state, "-o %s", error.text);
    }
}

static error_t parse_probe(int key, char *text, struct argp_state *state)
{
    probe_arguments *a = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->common;
        return 0;
    case 'o':
        a->output = text;
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "'%s': expected options only", text);
        return 0;
    case ARGP_KEY_END:
        check_arguments(state, a);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_child probe_children[] = {{&cli_basic_argp, 0, NULL, 0}, {0}};

static const struct argp probe_argp = {
    .options = probe_options,
    .parser = parse_probe,
    .doc = "Finds out what an allocator's contract is, by short sequences that tell the terms of "
           "each clause apart, and writes a profile to start from (--profile)."
           "\vExit status: 0 done, 1 requests that any contract allows show something, 2 bad usage "
           "or an allocator that cannot be loaded, 3 gmd failed or was interrupted. As to the "
           "common options, --timeout is 1 unless given.",
    .children = probe_children,
};

static gmd_status write_profile(const probe_arguments *a, const gmd_contract_probe *probe,
                                gmd_error *error)
{
    gmd_output out;
    gmd_status status = gmd_output_open(&out, a->output, error);
    if (status == GMD_OK) {
        gmd_contract_probe_write(probe, a->common.run.subject.allocator, out.stream);
        status = gmd_output_close(&out, GMD_OK, error);
    }
    return status;
}

int cli_probe(int argc, char **argv)
{
    gmd_contract_probe probe;
    probe_arguments a = {.output = "-"};
    gmd_error error = {""};
    cli_options_init(&a.common);
    a.common.run.process.call_budget_s = TIMEOUT_SECONDS;
    int usage = cli_parse(&probe_argp, argc, argv, &a);
    if (usage != CLI_EXIT_OK) {
        return usage;
    }
    a.common.run.process.is_interrupted = cli_interruption_awaited();
    gmd_status status = gmd_contract_probe_run(&a.common.run, &probe, &error);
    if (status == GMD_OK) {
        status = write_profile(&a, &probe, &error);
    }
    if (status != GMD_OK) {
        fprintf(stderr, "gmd probe: %s\n", error.text);
    }
    cli_options_free(&a.common);
    return status != GMD_OK ? cli_exit_status(status)
                            : (probe.defect_count ? CLI_EXIT_FINDING : CLI_EXIT_OK);
}
