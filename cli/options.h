/* options.h - the options that all subcommands share (design: section 7), parsed by argp. */
#ifndef GMD_CLI_OPTIONS_H
#define GMD_CLI_OPTIONS_H

#include "gmd_command.h"
#include "reading.h"

#include "gmd_contract.h"
#include "gmd_driver.h"

#include <argp.h>
#include <stdbool.h>

#define CLI_EXIT_OK      0
#define CLI_EXIT_FINDING 1 /* a defect, regression or finding */
#define CLI_EXIT_USAGE   2 /* bad usage or unreadable input */
#define CLI_EXIT_FAILURE 3 /* gmd itself failed */

typedef struct cli_options {
    gmd_run_options run;
    bool has_capacity, has_devices, has_allocator;
    bool runs_nothing; /* set by a command that may not run anything: then nothing is needed for it
                        */
    const char *json_path, *junit_path, *markdown_path, *sarif_path, *openmetrics_path,
        *perfetto_path, *snapshot_path, *html_path;
    const char *store_path; /* --store: the run is added to this file */
    bool quiet, verbose;
    cli_reading reading; /* --max-memory, of commands that read a file */
    gmd_known known;
    const char *known_path, *promises; /* --known, --promise as given; NULL: not */
    const char *profile, *beyond;      /* --profile, --beyond, likewise */
    gmd_contract contract;             /* --profile */
    const char *schedule_text, *interleave_text, *placement_text; /* likewise */
    gmd_schedule schedule;                                        /* --schedule */
    gmd_schedule interleave;                                      /* --interleave */
    char lib_directory[4096];
    const char *torch_directory; /* --torch-dir; NULL: looked for */
    char torch_adapter[4096];
    bool needs_torch; /* set while parsing, where another option than --allocator names it */
} cli_options;

/* gmd's own libraries lie beside the program, in the build tree as in an installation. */
void cli_find_lib_directory(char *out, size_t size);

void cli_options_init(cli_options *options);
void cli_options_free(cli_options *options);

/* The common options as an argp child; its input is the cli_options. The basic ones are those of
 * commands whose result is no report. */
extern const struct argp cli_common_argp, cli_basic_argp;

/* Runs argp with gmd's exit status for bad usage. `options` is passed to the common options through
 * the child inputs that the caller's parser sets. */
/* What a command that is printed needs beside --allocator, to mean the same allocator and to judge
 * it by the same. */
void cli_command_subject(gmd_command *command, const cli_options *options);
/* The same with --allocator and the device, as words of their own. */
void cli_word_subject(const cli_options *options, char *text, size_t size);

int cli_parse(const struct argp *argp, int argc, char **argv, void *input);

/* "90", "90s", "10m", "8h", in seconds. */
bool cli_parse_time(const char *text, double *seconds);

/* --perfetto and --snapshot show a run: for commands that make very many. */
void cli_refuse_views(struct argp_state *state, const cli_options *options);

/* Whether any report is asked for. */
bool cli_has_reports(const cli_options *options);

/* No report may replace a file that the command reads; NULL: there is none. */
void cli_refuse_overwriting(struct argp_state *state, const cli_options *options,
                            const char *input);

/* How many reports go to standard output ("-"); more than one is refused by cli_parse. */
int cli_stdout_reports(const cli_options *options);

int cli_exit_status(gmd_status status); /* of an error that ends the program */

#endif
