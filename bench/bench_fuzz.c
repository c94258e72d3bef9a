/* bench_fuzz - how fast inputs run, one after the other on one core: in the calling process with
 * all oracles (gmd_in_process.h) and with none, in persistent mode as `gmd fuzz` does, in a fork
 * of the fork server for each, and in a process for each that loads everything anew.
 *
 *     bench_fuzz [ALLOCATOR [SECONDS]]      gmd's libraries: $GMD_LIB_DIR, else ../lib/gmd
 *     bench_fuzz ALLOCATOR SECONDS NAME     only that mode; for perf
 *
 * The inputs are those of the generator of `gmd fuzz`: sequences of 64 requests of the kinds that
 * every allocator serves, drawn from profiles of their own (device memory, sizes, streams,
 * schedule), 64 from each. An input's end is measured with it: everything freed, the cache emptied,
 * judged and taken back. Seconds are of processor time, user and system, of all processes that a
 * mode needs: others may be busy on the machine. Each figure is the median of rounds that take
 * turns. */
#include "gmd_in_process.h"
#include "gmd_runner.h"

#include "gmd_clock.h"
#include "gmd_generate.h"
#include "gmd_size.h"
#include "libraries.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 7, PROFILES = 24, OF_EACH = 64, INPUTS = PROFILES * OF_EACH, REQUESTS = 64 };

typedef struct inputs {
    gmd_trace traces[INPUTS];
} inputs;

typedef struct figures { /* of one round; shared with the process that measures */
    uint64_t inputs, requests;
    bool is_ok;
} figures;

typedef gmd_status mode_fn(const gmd_run_options *options, const inputs *all, double seconds,
                           figures *f, gmd_error *error);

/* CPU time of the processes that have ended, theirs included. */
static double processor_s(void)
{
    struct rusage u;
    getrusage(RUSAGE_CHILDREN, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

/* --- inputs ------------------------------------------------------------------------------ */

static gmd_status make_inputs(inputs *all, gmd_error *error)
{
    const gmd_profile_space space = {.has_record_stream = true,
                                     .has_seeded_schedules = true,
                                     .conf_is_fixed = true,
                                     .has_one_thread = true};
    gmd_status status = GMD_OK;
    for (uint64_t i = 0; i < INPUTS && status == GMD_OK; i++) {
        gmd_profile profile;
        gmd_profile_draw(&profile, &space, gmd_random_derive(1, i / OF_EACH));
        profile.request_count = REQUESTS;
        gmd_trace_init(&all->traces[i]);
        status = gmd_generate(&profile, &space, i, &all->traces[i], error);
    }
    return status;
}

/* Each of another profile than the one before. */
static const gmd_trace *nth(const inputs *all, uint64_t i)
{
    return &all->traces[i % PROFILES * OF_EACH + i / PROFILES % OF_EACH];
}

static gmd_status demand_pass(const gmd_outcome *o, gmd_error *error)
{
    return o->verdict == GMD_PASS
               ? GMD_OK
               : gmd_fail(error, GMD_FAILED, "an input does not pass: %s%s", o->error,
                          o->violation_count ? o->violations[0].message : "");
}

/* --- modes of running them ----------------------------------------------------------------- */

static gmd_status in_process(const gmd_run_options *options, const inputs *all, double seconds,
                             figures *f, gmd_error *error)
{
    gmd_in_process *p;
    double end = gmd_clock_s() + seconds;
    gmd_status status = gmd_in_process_open(&p, options, error);
    if (status == GMD_OK) {
        gmd_in_process_ask_after(p, 0); /* it would end the input early */
    }
    for (uint64_t i = 0; status == GMD_OK && (i % OF_EACH || gmd_clock_s() < end); i++) {
        const gmd_outcome *o;
        status = gmd_in_process_run(p, &all->traces[i % INPUTS], &o, error);
        status = status == GMD_OK ? demand_pass(o, error) : status;
        f->inputs++;
        f->requests += status == GMD_OK ? o->requests : 0;
    }
    gmd_in_process_close(p);
    return status;
}

static gmd_status in_process_without_oracles(const gmd_run_options *options, const inputs *all,
                                             double seconds, figures *f, gmd_error *error)
{
    const gmd_run_options without = gmd_options_unjudged(options);
    return in_process(&without, all, seconds, f, error);
}

static gmd_status persistent(const gmd_run_options *options, const inputs *all, double seconds,
                             figures *f, gmd_error *error)
{
    static gmd_persistent_input traces[OF_EACH];
    gmd_runner runner;
    double end = gmd_clock_s() + seconds;
    gmd_status status = GMD_OK;
    gmd_runner_init(&runner, options);
    for (uint64_t i = 0; status == GMD_OK && gmd_clock_s() < end; i += OF_EACH) {
        for (size_t k = 0; k < OF_EACH; k++) {
            traces[k] = (gmd_persistent_input){.trace = all->traces[(i + k) % INPUTS]};
        }
        for (size_t done = 0; done < OF_EACH && status == GMD_OK;) {
            gmd_persistent_result result;
            status =
                gmd_runner_run_persistent(&runner, traces + done, OF_EACH - done, &result, error);
            if (status == GMD_OK && result.is_suspect) {
                status = demand_pass(result.outcome, error);
            }
            done += result.passed;
            f->inputs += result.passed;
            f->requests += result.requests;
        }
    }
    gmd_runner_close(&runner);
    return status;
}

static gmd_status forked(const gmd_run_options *options, const inputs *all, double seconds,
                         figures *f, gmd_error *error)
{
    gmd_runner runner;
    double end = gmd_clock_s() + seconds;
    gmd_status status = GMD_OK;
    gmd_runner_init(&runner, options);
    for (uint64_t i = 0; status == GMD_OK && gmd_clock_s() < end; i++) {
        const gmd_outcome *o;
        status = gmd_runner_run(&runner, &all->traces[i % INPUTS], &o, error);
        status = status == GMD_OK ? demand_pass(o, error) : status;
        f->inputs++;
        f->requests += status == GMD_OK ? o->requests : 0;
    }
    gmd_runner_close(&runner);
    return status;
}

static gmd_status isolated(const gmd_run_options *options, const inputs *all, double seconds,
                           figures *f, gmd_error *error)
{
    gmd_outcome *o = calloc(1, sizeof *o);
    double end = gmd_clock_s() + seconds;
    gmd_status status = GMD_OK;
    if (!o) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory");
    }
    for (uint64_t i = 0; status == GMD_OK && gmd_clock_s() < end; i++) {
        const gmd_trace *t = nth(all, i);
        const gmd_run_options with = gmd_options_under(options, &t->conditions);
        gmd_workload workload = {
            .name = "input", .kind = "trace", .trace = t, .body = gmd_play_trace};
        status = gmd_run_isolated(&with, &workload, o, error);
        status = status == GMD_OK ? demand_pass(o, error) : status;
        f->inputs++;
        f->requests += o->requests;
    }
    free(o);
    return status;
}

/* --- rounds ------------------------------------------------------------------------------ */

typedef struct mode {
    const char *name;
    mode_fn *run;
    double inputs_per_s[ROUNDS], requests_per_s[ROUNDS];
} mode;

static mode modes[] = {{.name = "in-process", .run = in_process},
                       {.name = "no-oracles", .run = in_process_without_oracles},
                       {.name = "persistent", .run = persistent},
                       {.name = "fork", .run = forked},
                       {.name = "process", .run = isolated}};
enum { MODES = sizeof modes / sizeof *modes };

/* Wrong frees are complained about, rightly. */
static int silence(void)
{
    int kept = dup(STDERR_FILENO), nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(nowhere, STDERR_FILENO);
    close(nowhere);
    return kept;
}

static void be_the_child(const mode *m, const gmd_run_options *options, const inputs *all,
                         double seconds, figures *f)
{
    gmd_error error = {""};
    int kept = silence();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    f->is_ok = m->run(options, all, seconds, f, &error) == GMD_OK;
    if (!f->is_ok) {
        dprintf(kept, "bench_fuzz: %s: %s\n", m->name, error.text);
    }
    while (wait(NULL) > 0) { /* the fork server's own child: its time counts, too */
    }
    exit(EXIT_SUCCESS);
}

static bool measure(mode *m, int round, const gmd_run_options *options, const inputs *all,
                    double seconds, figures *f)
{
    *f = (figures){0};
    fflush(NULL);
    double before = processor_s();
    pid_t child = fork();
    if (child == 0) {
        be_the_child(m, options, all, seconds, f);
    }
    int status = 0;
    bool has_ended = child > 0 && waitpid(child, &status, 0) == child;
    if (!has_ended || !WIFEXITED(status) || !f->is_ok || !f->inputs) {
        fprintf(stderr, "bench_fuzz: %s: no figure\n", m->name);
        return false;
    }
    double taken = processor_s() - before;
    m->inputs_per_s[round] = (double)f->inputs / taken;
    m->requests_per_s[round] = (double)f->requests / taken;
    return true;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values)
{
    qsort(values, ROUNDS, sizeof *values, compare);
    return values[ROUNDS / 2];
}

static void print_table(const char *allocator, double seconds, const char *only)
{
    printf("%s, inputs of %d requests, median of %d rounds of %g s\n\n%-12s %12s %12s %12s %8s\n",
           allocator, REQUESTS, ROUNDS, seconds, "", "inputs/s", "us/input", "requests/s", "ratio");
    double first = 0;
    for (size_t i = 0; i < MODES; i++) {
        if (only && strcmp(only, modes[i].name) != 0) {
            continue;
        }
        double inputs_per_s = median(modes[i].inputs_per_s);
        first = first > 0 ? first : inputs_per_s;
        printf("%-12s %12.0f %12.1f %12.0f %8.2f\n", modes[i].name, inputs_per_s,
               1e6 / inputs_per_s, median(modes[i].requests_per_s), inputs_per_s / first);
    }
}

static bool measure_all(const gmd_run_options *options, const inputs *all, double seconds,
                        const char *only, figures *f)
{
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < MODES; i++) {
            mode *m = &modes[round % 2 ? MODES - 1 - i : i];
            if ((!only || strcmp(only, m->name) == 0) &&
                !measure(m, round, options, all, seconds, f)) {
                return false;
            }
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    static inputs all;
    char path[4096];
    double seconds = argc > 2 ? strtod(argv[2], NULL) : 0.5;
    figures *f = mmap(NULL, sizeof *f, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    gmd_error error = {""};
    if (argc > 4 || !(seconds > 0) || f == MAP_FAILED) {
        fprintf(stderr, "usage: bench_fuzz [ALLOCATOR [SECONDS [MODE]]]\n");
        return 2;
    }
    gmd_run_options options = {.subject.allocator = argc > 1 ? argv[1] : "reference",
                               .subject.lib_directory = bench_libraries(argv[0], path, sizeof path),
                               .device.kind = GMD_DEVICE_SIM,
                               .conditions.device_count = 1,
                               .conditions.capacity_bytes = GMD_GIB,
                               .process.call_budget_s = 20};
    if (make_inputs(&all, &error) != GMD_OK) {
        fprintf(stderr, "bench_fuzz: %s\n", error.text);
        return 3;
    }
    const char *only = argc > 3 ? argv[3] : NULL;
    if (!measure_all(&options, &all, seconds, only, f)) {
        return 3;
    }
    print_table(options.subject.allocator, seconds, only);
    return 0;
}
