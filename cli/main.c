#include "commands.h"
#include "gmd_log.h"
#include "gmd_report_text.h"
#include "gmd_spelling.h"
#include "interruption.h"
#include "options.h"
#include "version.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

typedef struct subcommand {
    const char *name, *summary;
    int (*main)(int argc, char **argv);
} subcommand;

static const subcommand subcommands[] = {
    {"run", "scripted workloads and traces, oracles on", cli_run},
    {"replay", "a recorded history; --check: the allocator must do the same", cli_replay},
    {"fuzz", "a search for defects; each comes with a minimised case", cli_fuzz},
    {"minimize", "the smallest sequence with the same verdict", cli_minimize},
    {"gate", "a fixed battery with a verdict, for a CI", cli_gate},
    {"probe", "what an allocator's contract is, found out by trying: a profile", cli_probe},
    {"diagnose", "what is wrong in a recorded job, where, why, and the fix", cli_diagnose},
    {"advise", "which allocator settings a recorded job needs least memory with", cli_advise},
    {"diff", "what grew between two snapshots, by line; --threshold for a CI", cli_diff},
    {"report", "a run in another form: Markdown, JUnit...; a case as a program", cli_report},
    {"bench", "speed, side by side with --versus SPEC", cli_bench},
};

#define SUBCOMMAND_COUNT (sizeof subcommands / sizeof *subcommands)

static void print_help(FILE *out)
{
    const gmd_terminal terminal = gmd_terminal_for(out, false);
    int columns = terminal.columns && terminal.columns < 78 ? terminal.columns : 78;
    gmd_put_wrapped(out, columns, 0,
                    "gmd " GMD_VERSION
                    " - GPU memory diagnosis: a test suite for GPU memory allocators");
    fputs("\nusage: gmd COMMAND [ARGUMENTS]\n\n", out);
    for (size_t i = 0; i < SUBCOMMAND_COUNT; i++) {
        int column = fprintf(out, "  gmd %-8s ", subcommands[i].name), at = column;
        gmd_put_flowing(out, terminal, column, &at, subcommands[i].summary);
        putc('\n', out);
    }
    putc('\n', out);
    gmd_put_wrapped(out, columns, 0,
                    "'gmd COMMAND --help' lists a command's arguments and options.");
    gmd_put_wrapped(out, columns, 0,
                    "Exit status: 0 nothing wrong found, 1 a finding, 2 bad usage or unreadable "
                    "input, 3 gmd failed or was interrupted.");
}

/* At the end of any command, and of argp's --help, which ends the program itself. */
static pid_t main_process;

static void finish_stdout(void)
{
    if (getpid() != main_process) {
        return; /* of a process for an allocator, whose end says something else */
    }
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "gmd: standard output: writing failed\n");
        _exit(CLI_EXIT_FAILURE);
    }
}

#define STACK_LEAST ((rlim_t)256 << 10)

/* A process that overran its stack would blame the allocator. */
static bool has_stack(void)
{
    struct rlimit stack;
    if (getrlimit(RLIMIT_STACK, &stack) != 0 || stack.rlim_cur >= STACK_LEAST) {
        return true;
    }
    fprintf(stderr, "gmd: the stack is limited to %llu KiB (ulimit -s), and %llu are needed\n",
            (unsigned long long)stack.rlim_cur >> 10, (unsigned long long)STACK_LEAST >> 10);
    return false;
}

static int tell_unknown_command(const char *name)
{
    gmd_near near;
    gmd_near_begin(&near, name);
    for (size_t i = 0; i < SUBCOMMAND_COUNT; i++) {
        gmd_near_offer(&near, subcommands[i].name);
    }
    fprintf(stderr, "gmd: '%s' is not a command%s; 'gmd --help' lists them\n", name,
            gmd_near_text(&near));
    return CLI_EXIT_USAGE;
}

static int run_subcommand(int argc, char **argv)
{
    static char help[] = "--help";
    gmd_error error;
    cli_signals_begin();
    main_process = getpid();
    atexit(finish_stdout);
    if (gmd_log_begin(getenv("GMD_LOG"), &error) != GMD_OK) {
        fprintf(stderr, "gmd: %s\n", error.text);
        return CLI_EXIT_USAGE;
    }
    const char *name = argc > 1 ? argv[1] : "--help";
    if (strcmp(name, "help") == 0 && argc == 3) { /* gmd help COMMAND */
        argv[1] = argv[2];
        argv[2] = help;
        name = argv[1];
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "help") == 0 || strcmp(name, "-h") == 0) {
        print_help(argc > 1 ? stdout : stderr);
        return argc > 1 ? CLI_EXIT_OK : CLI_EXIT_USAGE;
    }
    if (strcmp(name, "--version") == 0) {
        printf("gmd %s\n", GMD_VERSION);
        return CLI_EXIT_OK;
    }
    for (size_t i = 0; i < SUBCOMMAND_COUNT; i++) {
        if (strcmp(name, subcommands[i].name) == 0) {
            char command[64]; /* argp prints argv[0] before its messages */
            snprintf(command, sizeof command, "gmd %s", name);
            argv[1] = command;
            return subcommands[i].main(argc - 1, argv + 1);
        }
    }
    return tell_unknown_command(name);
}

int main(int argc, char **argv)
{
    return has_stack() ? run_subcommand(argc, argv) : CLI_EXIT_FAILURE;
}
