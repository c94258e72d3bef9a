#include "options.h"

#include "unknown_option.h"
#include "values.h"
#include "writable.h"

#include "gmd_promises.h"
#include "gmd_size.h"
#include "gmd_store.h"
#include "gmd_terminal.h"
#include "gmd_torch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { /* keys of options without a letter */
       KEY_ALLOCATOR = 0x100,
       KEY_DEVICE,
       KEY_DEVICES,
       KEY_CAPACITY,
       KEY_LIMIT,
       KEY_CONF,
       KEY_KNOWN,
       KEY_SEED,
       KEY_JSON,
       KEY_JUNIT,
       KEY_MARKDOWN,
       KEY_SARIF,
       KEY_OPENMETRICS,
       KEY_PERFETTO,
       KEY_SNAPSHOT,
       KEY_HTML,
       KEY_STORE,
       KEY_CASES,
       KEY_TIMEOUT,
       KEY_TORCH_DIR,
       KEY_SCHEDULE,
       KEY_VERBOSE,
       KEY_INTERLEAVE,
       KEY_PROMISE,
       KEY_PROFILE,
       KEY_BEYOND,
};

enum { REPORT_MAX = 9 };

typedef struct report_file {
    const char *option, *path;
} report_file;

static const struct argp_option common_options[] = {
    {NULL, 0, NULL, 0, "Common options (sizes take KiB, MiB, GiB):", 10},
    {"allocator", KEY_ALLOCATOR, "SPEC", 0,
     "reference (default), cudamalloc, cudamallocasync, torch, PATH.so, or PATH.so:MALLOC,FREE",
     10},
    {"torch-dir", KEY_TORCH_DIR, "DIR", 0,
     "the PyTorch package for --allocator torch (GMD_TORCH_DIR, else that of python3)", 10},
    {"device", KEY_DEVICE, "sim|cuda", 0, "simulated device (default) or a real GPU", 10},
    {"devices", KEY_DEVICES, "N", 0, "number of simulated devices (1)", 10},
    {"capacity", KEY_CAPACITY, "SIZE", 0, "memory of each simulated device (140GiB)", 10},
    {"limit", KEY_LIMIT, "SIZE", 0, "limit of reserved memory, set as the memory fraction", 10},
    {"conf", KEY_CONF, "STRING", 0, "allocator settings, as PYTORCH_CUDA_ALLOC_CONF", 10},
    {"promise", KEY_PROMISE, "NAMES", 0,
     "what the allocator promises, beside what it says itself (gmd_promises), and is judged by: "
     "misuse, determinism, pytorch, coalescing, alignment512, "
     "prompt, throws",
     10},
    {"profile", KEY_PROFILE, "NAME|FILE", 0,
     "the contract of the allocator: what it promises, and what its callers must do, to which the "
     "run keeps",
     10},
    {"beyond", KEY_BEYOND, "CLAUSES", 0,
     "clauses of the profile that are not kept to (all, or names with commas): what the contract "
     "leaves out is tried, too",
     10},
    {"known", KEY_KNOWN, "FILE", 0,
     "known defects, a line each: ORACLE, or ORACLE.KIND NAME=VALUE...", 10},
    {"seed", KEY_SEED, "N", 0, "seed of every random choice (0)", 10},
    {"schedule", KEY_SCHEDULE, "SPEC", 0,
     "when the simulated device's work completes: timed (default), eager, lazy, 'seed N', "
     "'explicit C...'",
     10},
    {"interleave", KEY_INTERLEAVE, "SPEC", 0,
     "run the threads of a trace at the same time, interleaved as 'seed N', 'bounded C steps K "
     "seed "
     "N', 'pct D steps K seed N' or 'explicit C...' says; 'seeds N' for the seed tries N of them, "
     "from --seed on, until one finds something",
     10},
    {"timeout", KEY_TIMEOUT, "SECONDS", 0, "a request that takes longer is a hang (20)", 10},
    {"cases", KEY_CASES, "DIR", 0, "where a failing case is written (gmd-cases); none: nowhere",
     10},
    {"quiet", 'q', NULL, 0, "print nothing but errors", 10},
    {"verbose", KEY_VERBOSE, NULL, 0, "print why something was skipped, one by one", 10},
    {0},
};

static const struct argp_option report_options[] = {
    {"json", KEY_JSON, "FILE", 0, "write the result as JSON; -: to standard output, alone", 10},
    {"junit", KEY_JUNIT, "FILE", 0, "write the result as JUnit XML", 10},
    {"markdown", KEY_MARKDOWN, "FILE", 0, "write a summary in Markdown", 10},
    {"sarif", KEY_SARIF, "FILE", 0, "write the findings as SARIF 2.1.0", 10},
    {"openmetrics", KEY_OPENMETRICS, "FILE", 0, "write the figures as OpenMetrics text", 10},
    {"perfetto", KEY_PERFETTO, "FILE", 0,
     "write memory and allocations over the requests, for ui.perfetto.dev (run, replay)", 10},
    {"snapshot", KEY_SNAPSHOT, "FILE", 0,
     "write what torch.cuda.memory._snapshot() would give, as a pickle, for "
     "pytorch.org/memory_viz (run, replay: one run; .gz: compressed)",
     10},
    {"html", KEY_HTML, "FILE", 0,
     "write the result as a page for a browser, with the histories of the runs", 10},
    {"store", KEY_STORE, "FILE", 0, "add the run to a SQLite file, for 'gmd report --history FILE'",
     10},
    {0},
};

void cli_find_lib_directory(char *out, size_t size)
{
    const char *given = getenv("GMD_LIB_DIR");
    if (given && *given) {
        snprintf(out, size, "%s", given);
        return;
    }
    char path[2048];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    path[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(path, '/');
    if (slash) {
        *slash = '\0';
    }
    snprintf(out, size, "%s/../lib/gmd", path);
}

void cli_options_init(cli_options *options)
{
    *options = (cli_options){.run = {.subject.allocator = "reference",
                                     .cases.directory = "gmd-cases",
                                     .device.kind = GMD_DEVICE_SIM,
                                     .conditions.device_count = 1,
                                     .conditions.capacity_bytes = 140 * GMD_GIB,
                                     .process.call_budget_s = 20}};
    cli_find_lib_directory(options->lib_directory, sizeof options->lib_directory);
    options->run.subject.lib_directory = options->lib_directory;
    options->run.judging.known = &options->known;
    options->run.process.shows_progress = true;
    options->reading.shows_progress = isatty(STDERR_FILENO);
}

void cli_options_free(cli_options *options)
{
    gmd_known_free(&options->known);
    gmd_schedule_free(&options->schedule);
    gmd_schedule_free(&options->interleave);
}

static void need_device(struct argp_state *state, const char *text, gmd_device_kind *out)
{
    if (strcmp(text, "sim") == 0) {
        *out = GMD_DEVICE_SIM;
    } else if (strcmp(text, "cuda") == 0) {
        *out = GMD_DEVICE_CUDA;
    } else {
        argp_error(state, "--device %s: expected sim or cuda", text);
    }
}

static void need_promises(struct argp_state *state, const char *text, unsigned *promises)
{
    gmd_error error = {""};
    if (gmd_promises_parse(text, promises, &error) != GMD_OK) {
        argp_error(state, "--promise %s", error.text);
    }
}

/* Once both options are known: what the contract does not promise is known, and what it does is
 * promised. */
static void need_profile(struct argp_state *state, cli_options *o)
{
    char folder[sizeof o->lib_directory + 16];
    gmd_error error = {""};
    snprintf(folder, sizeof folder, "%s/profiles", o->lib_directory);
    if (gmd_contract_read(&o->contract, o->profile, folder, &error) != GMD_OK) {
        argp_error(state, "--profile %s", error.text);
    }
    if (o->beyond && gmd_contract_go_beyond(&o->contract, o->beyond, &error) != GMD_OK) {
        argp_error(state, "--beyond %s", error.text);
    }
    const char *line;
    for (uint32_t i = 0; (line = gmd_contract_known(&o->contract, i)) != NULL; i++) {
        if (known_add(&o->known, line, o->profile, &error) != GMD_OK) {
            argp_failure(state, CLI_EXIT_FAILURE, 0, "--profile %s: %s", o->profile, error.text);
        }
    }
    o->run.subject.promises |= gmd_contract_promises(&o->contract);
    o->run.judging.contract = &o->contract;
}

static void check_profile(struct argp_state *state, cli_options *o)
{
    if (o->profile) {
        need_profile(state, o);
    } else if (o->beyond) {
        argp_error(state, "--beyond %s: needs --profile, whose clauses these are", o->beyond);
    }
}

static void need_known(struct argp_state *state, const char *path, gmd_known *known)
{
    gmd_error error = {""};
    if (gmd_known_read(known, path, &error) != GMD_OK) {
        argp_error(state, "--known: %s", error.text);
    }
}

/* Once --quiet is known, wherever it stands. */
static void note_words(const struct argp_state *state, const cli_options *o)
{
    size_t count = gmd_known_count_words(&o->known);
    if (count && !o->quiet) {
        fprintf(stderr,
                "%s: note: --known: %zu of %zu entries go by words of messages (ORACLE: WORDS), "
                "which may change; a violation's line 'for --known' is what stays\n",
                state->name, count, o->known.count);
    }
}

static void need_schedule(struct argp_state *state, const char *text, cli_options *o)
{
    gmd_error error = {""};
    gmd_schedule_free(&o->schedule);
    if (gmd_schedule_parse(&o->schedule, text, strlen(text), &error) != GMD_OK) {
        argp_error(state, "--schedule: %s", error.text);
    }
    o->run.conditions.schedule = o->schedule;
}

/* What the header line of a trace says, or the same with "seeds N" in place of the seed. */
static void need_interleaving(struct argp_state *state, const char *text, cli_options *o)
{
    static const char seeds[] = "seeds ", first[] = "seed 0";
    char one[80];
    gmd_error error = {""};
    const char *at = strstr(text, seeds);
    gmd_schedule_free(&o->interleave);
    o->run.interleave_seeds = 0;
    if (at && (size_t)(at - text) < sizeof one - sizeof first) {
        cli_need_number(state, "--interleave seeds", at + strlen(seeds), 1, UINT32_MAX,
                        &o->run.interleave_seeds);
        snprintf(one, sizeof one, "%.*s%s", (int)(at - text), text, first);
        text = one;
    }
    if (gmd_interleave_parse(&o->interleave, text, strlen(text), &error) != GMD_OK) {
        argp_error(state, "--interleave: %s (or 'seeds N', to try N of them)", error.text);
    }
    o->run.conditions.interleave = o->interleave;
}

/* gmd-cases, where nothing is said, is made when there is a case: many runs have none. */
static void need_folder(struct argp_state *state, const char *path)
{
    gmd_error error = {""};
    if (path && cli_probe_folder(path, &error) != GMD_OK) {
        argp_error(state, "--cases %s (--cases none: none is written)", error.text);
    }
}

/* Other processes may add to the same file at this moment: it is neither made nor removed here. */
static void need_store(struct argp_state *state, const char *path)
{
    char beside[4200];
    if (!path) {
        return;
    }
    if (!*path) {
        argp_error(state, "--store '': expected the name of a file");
    }
    if (strcmp(path, "-") == 0) {
        argp_error(state, "--store -: a database cannot go to standard output");
    }
    bool can_write = access(path, R_OK | W_OK) == 0;
    if (!can_write && errno == ENOENT) {
        gmd_error ignored;
        snprintf(beside, sizeof beside, "%s.probe-%ld", path, (long)getpid());
        can_write = cli_probe_file(beside, &ignored) == GMD_OK;
    }
    if (!can_write) {
        argp_error(state, "--store %s: cannot be written: %s", path, strerror(errno));
    }
    gmd_error error = {""};
    if (gmd_store_check(path, &error) != GMD_OK) {
        argp_error(state, "--store %s", error.text);
    }
}

/* Reports a missing PyTorch before anything runs. */
static void need_torch(struct argp_state *state, cli_options *o)
{
    if ((strcmp(o->run.subject.allocator, "torch") != 0 && !o->needs_torch) || o->runs_nothing) {
        return;
    }
    gmd_torch torch;
    gmd_error error = {""};
    gmd_status status = gmd_torch_find(&torch, o->torch_directory, &error);
    if (status == GMD_OK) {
        bool is_watched = o->run.process.shows_progress && isatty(STDERR_FILENO);
        status = gmd_torch_adapter(&torch, o->lib_directory, is_watched, o->torch_adapter, &error);
    }
    if (status != GMD_OK) {
        argp_failure(state, cli_exit_status(status), 0, "%s", error.text);
    }
    o->run.subject.torch_adapter = o->torch_adapter;
}

static size_t list_reports(const cli_options *o, report_file files[REPORT_MAX])
{
    const report_file all[] = {{"--json", o->json_path},
                               {"--junit", o->junit_path},
                               {"--markdown", o->markdown_path},
                               {"--sarif", o->sarif_path},
                               {"--openmetrics", o->openmetrics_path},
                               {"--perfetto", o->perfetto_path},
                               {"--snapshot", o->snapshot_path},
                               {"--html", o->html_path},
                               {"--store", o->store_path}};
    size_t count = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i].path) {
            files[count++] = all[i];
        }
    }
    return count;
}

bool cli_has_reports(const cli_options *options)
{
    report_file files[REPORT_MAX];
    return list_reports(options, files) > 0;
}

void cli_refuse_overwriting(struct argp_state *state, const cli_options *options, const char *input)
{
    report_file files[REPORT_MAX];
    size_t count = input ? list_reports(options, files) : 0;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(files[i].path, "-") != 0 && cli_is_same_file(files[i].path, input)) {
            argp_error(state, "%s %s: is the same file as %s, which is read", files[i].option,
                       files[i].path, input);
        }
    }
}

/* Before anything runs: two reports in one file would replace each other. */
static void check_reports(struct argp_state *state, const cli_options *options)
{
    report_file files[REPORT_MAX];
    size_t count = list_reports(options, files);
    for (size_t i = 0; i < count; i++) {
        if (options->store_path && files[i].path == options->store_path) {
            need_store(state, files[i].path);
        } else {
            cli_need_writable(state, files[i].option, files[i].path, NULL, 0);
        }
        for (size_t j = 0; j < i; j++) {
            if (strcmp(files[i].path, "-") != 0 && cli_is_same_file(files[i].path, files[j].path)) {
                argp_error(state, "%s %s: is the same file as that of %s", files[i].option,
                           files[i].path, files[j].option);
            }
        }
    }
}

bool cli_parse_time(const char *text, double *seconds)
{
    char *end;
    *seconds = strtod(text, &end);
    double unit = strcmp(end, "") == 0 || strcmp(end, "s") == 0 ? 1
                  : strcmp(end, "m") == 0                       ? 60
                  : strcmp(end, "h") == 0                       ? 3600
                                                                : 0;
    *seconds *= unit;
    bool is_decimal = strspn(text, "0123456789.") == (size_t)(end - text); /* no 0x10, no 1e3 */
    return end != text && is_decimal && *seconds > 0 && *seconds < 1e9;
}

void cli_refuse_views(struct argp_state *state, const cli_options *options)
{
    if (options->perfetto_path || options->snapshot_path) {
        argp_error(state, "--%s shows a run, and this makes many: run a case with it",
                   options->perfetto_path ? "perfetto" : "snapshot");
    }
}

int cli_stdout_reports(const cli_options *options)
{
    const char *paths[] = {options->json_path,        options->junit_path,
                           options->markdown_path,    options->sarif_path,
                           options->openmetrics_path, options->perfetto_path,
                           options->snapshot_path,    options->html_path};
    int count = 0;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        count += paths[i] && strcmp(paths[i], "-") == 0;
    }
    return count;
}

/* What is run, and on what. */
static error_t parse_run_option(int key, char *text, struct argp_state *state, cli_options *o)
{
    uint64_t number = 0;
    switch (key) {
    case KEY_ALLOCATOR:
        o->run.subject.allocator = text;
        o->has_allocator = true;
        return 0;
    case KEY_TORCH_DIR:
        o->torch_directory = text;
        return 0;
    case KEY_DEVICE:
        need_device(state, text, &o->run.device.kind);
        return 0;
    case KEY_DEVICES:
        cli_need_number(state, "--devices", text, 1, GMD_SIM_DEVICE_MAX, &number);
        o->run.conditions.device_count = (uint32_t)number;
        o->has_devices = true;
        return 0;
    case KEY_CAPACITY:
        cli_need_size(state, "--capacity", text, 2 * GMD_MIB, 16384 * GMD_GIB,
                      &o->run.conditions.capacity_bytes);
        o->has_capacity = true;
        return 0;
    case KEY_LIMIT:
        cli_need_size(state, "--limit", text, 1, 16384 * GMD_GIB, &o->run.conditions.limit_bytes);
        return 0;
    case KEY_CONF:
        o->run.conditions.conf = text;
        return 0;
    case KEY_PROMISE:
        need_promises(state, text, &o->run.subject.promises);
        o->promises = text;
        return 0;
    case KEY_PROFILE:
        o->profile = text;
        return 0;
    case KEY_BEYOND:
        o->beyond = text;
        return 0;
    case KEY_SEED:
        cli_need_number(state, "--seed", text, 0, INT64_MAX,
                        &o->run.seed); /* what JSON readers take */
        return 0;
    case KEY_SCHEDULE:
        need_schedule(state, text, o);
        o->schedule_text = text;
        return 0;
    case KEY_INTERLEAVE:
        need_interleaving(state, text, o);
        o->interleave_text = text;
        return 0;
    case KEY_TIMEOUT:
        cli_need_number(state, "--timeout", text, 1, 86400, &number);
        o->run.process.call_budget_s = (double)number;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* What counts, and where it is reported. */
static error_t parse_report_option(int key, char *text, struct argp_state *state, cli_options *o)
{
    switch (key) {
    case KEY_KNOWN:
        need_known(state, text, &o->known);
        o->known_path = text;
        return 0;
    case KEY_CASES:
        o->run.cases.directory = strcmp(text, "none") == 0 ? NULL : text;
        need_folder(state, o->run.cases.directory);
        return 0;
    case KEY_JSON:
        o->json_path = text;
        return 0;
    case KEY_JUNIT:
        o->junit_path = text;
        return 0;
    case KEY_MARKDOWN:
        o->markdown_path = text;
        return 0;
    case KEY_SARIF:
        o->sarif_path = text;
        return 0;
    case KEY_OPENMETRICS:
        o->openmetrics_path = text;
        return 0;
    case KEY_PERFETTO:
        o->perfetto_path = text;
        return 0;
    case KEY_SNAPSHOT:
        o->snapshot_path = text;
        return 0;
    case KEY_HTML:
        o->html_path = text;
        return 0;
    case KEY_STORE:
        o->store_path = text;
        return 0;
    case 'q':
        o->quiet = true;
        o->run.process.shows_progress = false;
        o->reading.shows_progress = false;
        return 0;
    case KEY_VERBOSE:
        o->verbose = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse_common(int key, char *text, struct argp_state *state)
{
    cli_options *o = state->input;
    if (key >= KEY_JSON && key <= KEY_STORE) {
        o->runs_nothing = false; /* they tell of a run */
    }
    if (key != ARGP_KEY_END) {
        error_t result = parse_run_option(key, text, state, o);
        return result == ARGP_ERR_UNKNOWN ? parse_report_option(key, text, state, o) : result;
    }
    if (o->run.interleave_seeds) {
        o->run.conditions.interleave.seed = o->run.seed;
    }
    if (cli_stdout_reports(o) > 1) {
        argp_error(state, "only one report can go to standard output");
    }
    check_reports(state, o);
    cli_refuse_overwriting(state, o, o->known_path);
    check_profile(state, o);
    need_torch(state, o);
    note_words(state, o);
    return 0;
}

const struct argp cli_basic_argp = {.options = common_options, .parser = parse_common};

static error_t parse_reports(int key, char *text, struct argp_state *state)
{
    return key == ARGP_KEY_END ? 0 : parse_report_option(key, text, state, state->input);
}

static const struct argp report_argp = {.options = report_options, .parser = parse_reports};

/* argp's type. NOLINTNEXTLINE(readability-non-const-parameter) */
static error_t hand_on(int key, char *text, struct argp_state *state)
{
    (void)text;
    if (key != ARGP_KEY_INIT) {
        return ARGP_ERR_UNKNOWN;
    }
    state->child_inputs[0] = state->child_inputs[1] = state->input;
    return 0;
}

static const struct argp_child common_children[] = {
    {&cli_basic_argp, 0, NULL, 0}, {&report_argp, 0, NULL, 0}, {0}};

const struct argp cli_common_argp = {.parser = hand_on, .children = common_children};

void cli_command_subject(gmd_command *command, const cli_options *options)
{
    gmd_command_option(command, "--profile", options->profile);
    gmd_command_option(command, "--beyond", options->beyond);
    gmd_command_option(command, "--promise", options->promises);
    gmd_command_option(command, "--torch-dir", options->torch_directory);
    gmd_command_option(command, "--known", options->known_path);
}

void cli_word_subject(const cli_options *options, char *text, size_t size)
{
    bool is_real = options->run.device.kind != GMD_DEVICE_SIM;
    gmd_command words = gmd_command_begin(text, size, "");
    gmd_command_option(&words, "--allocator", options->run.subject.allocator);
    cli_command_subject(&words, options);
    gmd_command_option(&words, "--device", is_real ? "cuda" : NULL);
    gmd_command_end(&words);
    memmove(text, text + strspn(text, " "), strlen(text + strspn(text, " ")) + 1);
}

/* argp folds its help at 79 columns, or where ARGP_HELP_FMT says. */
static void fold_help(void)
{
    const gmd_terminal terminal = gmd_terminal_for(stdout, false);
    char format[40];
    if (terminal.columns && terminal.columns < 80) {
        snprintf(format, sizeof format, "rmargin=%d", terminal.columns - 1);
        setenv("ARGP_HELP_FMT", format, 0); /* the user's own wins */
    }
}

int cli_parse(const struct argp *argp, int argc, char **argv, void *input)
{
    argp_err_exit_status = CLI_EXIT_USAGE;
    fold_help();
    if (cli_tell_unknown_option(argp, argc, argv)) {
        return CLI_EXIT_USAGE;
    }
    return argp_parse(argp, argc, argv, 0, NULL, input) == 0 ? CLI_EXIT_OK : CLI_EXIT_USAGE;
}

int cli_exit_status(gmd_status status)
{
    return status == GMD_OK          ? CLI_EXIT_OK
           : status == GMD_BAD_INPUT ? CLI_EXIT_USAGE
                                     : CLI_EXIT_FAILURE;
}
