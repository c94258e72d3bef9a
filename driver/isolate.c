/* isolate.c - the child process that makes the requests, and the parent that watches it. */
#include "case.h"
#include "interleave.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define POLL_MS 50

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* --- the child --------------------------------------------------------------------------- */

static void run_workload(gmd_session *session, const gmd_workload *workload, gmd_shared *shared)
{
    gmd_error error = {""};
    atomic_store(&shared->stage, GMD_STAGE_REQUESTS);
    double start = now_s();
    gmd_status status = workload->body(workload->context, session, &error);
    shared->outcome.seconds = now_s() - start;
    if (status != GMD_OK) {
        gmd_outcome_error(&shared->outcome, status, &error);
        session->is_over = true;
    }
    gmd_session_finish(session);
}

/* A core file of the allocator under test helps nobody in a campaign, and what it prints must not
 * mix with gmd's own output. */
static void prepare_child(void)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    static const int deadly[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM};
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++) {
        signal(deadly[i], SIG_DFL); /* handlers of the parent's process would hide the crash */
    }
    if (dup2(STDERR_FILENO, STDOUT_FILENO) < 0) { /* no standard error: nowhere then */
        int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
        dup2(nowhere, STDOUT_FILENO);
    }
}

static void run_child(const gmd_run_options *options, const gmd_workload *workload,
                      gmd_shared *shared)
{
    prepare_child();
    gmd_session session;
    gmd_error error = {""};
    gmd_status status = gmd_session_open(&session, options, workload, shared, &error);
    if (status == GMD_OK) {
        run_workload(&session, workload, shared);
    } else {
        gmd_outcome_error(&shared->outcome, status, &error);
    }
    gmd_session_close(&session);
    atomic_store(&shared->stage, GMD_STAGE_UNLOADING);
    atomic_store(&shared->is_finished, 1);
    exit(EXIT_SUCCESS); /* not _exit: a crash in the library's own teardown is a finding, too */
}

/* --- the parent -------------------------------------------------------------------------- */

/* Only what takes longer than a glance says how far it is. */
static void show_progress(const gmd_run_options *options, const gmd_shared *shared, double seconds)
{
    if (options->shows_progress && seconds > 0.5) {
        uint64_t requests = shared->outcome.requests;
        fprintf(stderr, "\r%.100s: %" PRIu64 " requests, %.0f/s, %.0f s \033[K",
                shared->outcome.name, requests, (double)requests / seconds, seconds);
    }
}

static void clear_progress(const gmd_run_options *options)
{
    if (options->shows_progress) {
        fprintf(stderr, "\r\033[K");
    }
}

typedef enum child_end { CHILD_EXITED, CHILD_HUNG } child_end;

static void reap(pid_t child, int *exit_status)
{
    while (waitpid(child, exit_status, 0) < 0 && errno == EINTR) {
    }
}

/* Watches the process itself, which nothing that the allocator does with descriptors can deceive. A
 * request that does not end within the budget is a hang; loading and clean-up get the same time. */
static child_end watch(pid_t child, int process, const gmd_shared *shared,
                       const gmd_run_options *options, int *exit_status)
{
    uint64_t last_beat = 0;
    int last_stage = -1;
    double start = now_s(), since = start;
    for (;;) {
        struct pollfd waiting = {.fd = process, .events = POLLIN};
        if (poll(&waiting, 1, POLL_MS) > 0) {
            reap(child, exit_status);
            return CHILD_EXITED;
        }
        show_progress(options, shared, now_s() - start);
        uint64_t beat = atomic_load(&shared->beats);
        int stage = atomic_load(&shared->stage);
        if (beat != last_beat || stage != last_stage) {
            last_beat = beat;
            last_stage = stage;
            since = now_s();
        } else if (now_s() - since > options->call_budget_s) {
            kill(child, SIGKILL);
            reap(child, exit_status);
            return CHILD_HUNG;
        }
    }
}

static const char *where(const gmd_shared *shared, const gmd_workload *workload, char *text,
                         size_t size)
{
    static const gmd_trace nameless;
    char request[200];
    switch (atomic_load(&shared->stage)) {
    case GMD_STAGE_LOADING:
        return "while the allocator was loaded and initialised";
    case GMD_STAGE_CLEAN_UP:
        return "while everything was freed and the cache emptied at the end";
    case GMD_STAGE_UNLOADING:
        return "while the process ended (destructors of the library)";
    default:
        if (!atomic_load(&shared->is_in_request)) {
            snprintf(text, size, "between two requests, after %" PRIu64, shared->outcome.requests);
            return text;
        }
        gmd_request_text(workload->trace ? workload->trace : &nameless, &shared->current, request,
                         sizeof request);
        snprintf(text, size, "in request %" PRIu64 ": %s", shared->current_index, request);
        return text;
    }
}

static void judge_death(const gmd_run_options *options, const gmd_workload *workload,
                        gmd_shared *shared, int exit_status, child_end end)
{
    char place[300], message[600];
    bool is_idle =
        atomic_load(&shared->stage) == GMD_STAGE_REQUESTS && !atomic_load(&shared->is_in_request);
    if (end == CHILD_HUNG && is_idle) {
        gmd_error error;
        gmd_fail(&error, GMD_BAD_INPUT,
                 "the workload made no request for %g s after request %" PRIu64,
                 options->call_budget_s, shared->outcome.requests);
        gmd_outcome_error(&shared->outcome, GMD_BAD_INPUT, &error);
        return;
    }
    const char *at = where(shared, workload, place, sizeof place);
    if (end == CHILD_HUNG) {
        snprintf(message, sizeof message, "no answer within %g s %s", options->call_budget_s, at);
    } else if (WIFSIGNALED(exit_status)) {
        snprintf(message, sizeof message, "crashed with signal %d (%s) %s", WTERMSIG(exit_status),
                 strsignal(WTERMSIG(exit_status)), at);
    } else {
        snprintf(message, sizeof message, "ended the process with status %d %s",
                 WEXITSTATUS(exit_status), at);
    }
    bool is_in_request =
        atomic_load(&shared->stage) == GMD_STAGE_REQUESTS && atomic_load(&shared->is_in_request);
    gmd_outcome_violation(&shared->outcome, options->known, "progress",
                          is_in_request ? shared->current_index : shared->outcome.requests,
                          message);
}

/* --- all of it --------------------------------------------------------------------------- */

static void prepare_outcome(gmd_outcome *o, const gmd_run_options *options,
                            const gmd_workload *workload)
{
    const char *base = strrchr(workload->name, '/');
    snprintf(o->name, sizeof o->name, "%s", base ? base + 1 : workload->name);
    snprintf(o->kind, sizeof o->kind, "%s", workload->kind);
    snprintf(o->variant, sizeof o->variant, "%s", workload->variant ? workload->variant : "");
    o->seed = options->seed;
}

/* The child shares this memory with the allocator under test, which may have written anywhere. */
static bool is_intact(const gmd_shared *shared)
{
    const gmd_outcome *o = &shared->outcome;
    return shared->first_guard == GMD_SHARED_GUARD && shared->last_guard == GMD_SHARED_GUARD &&
           o->violation_count <= GMD_VIOLATION_MAX && o->oracle_count <= GMD_ORACLE_MAX &&
           o->phase_count <= GMD_PHASE_MAX && o->note_count <= GMD_NOTE_MAX &&
           o->verdict >= GMD_PASS && o->verdict <= GMD_ERROR && o->seconds >= 0 &&
           o->seconds < 1e9 && shared->request_count <= GMD_RECORDED_REQUEST_MAX;
}

#define TERMINATE(text) ((text)[sizeof(text) - 1] = '\0')

/* Where only texts were written over, they are at least well formed. */
static void mend_texts(gmd_outcome *o)
{
    TERMINATE(o->error);
    for (uint32_t i = 0; i < o->violation_count; i++) {
        TERMINATE(o->violations[i].oracle);
        TERMINATE(o->violations[i].message);
        TERMINATE(o->violations[i].case_path);
    }
    for (uint32_t i = 0; i < o->oracle_count; i++) {
        TERMINATE(o->oracles[i].name);
        TERMINATE(o->oracles[i].reason);
    }
    for (uint32_t i = 0; i < o->phase_count; i++) {
        TERMINATE(o->phases[i].label);
    }
    for (uint32_t i = 0; i < o->note_count; i++) {
        TERMINATE(o->notes[i]);
    }
    TERMINATE(o->check.first_difference.what);
    TERMINATE(o->check.first_difference.expected);
    TERMINATE(o->check.first_difference.got);
    TERMINATE(o->check.first_difference.text);
}

static void note_known(gmd_outcome *o)
{
    if (o->known_count && o->note_count < GMD_NOTE_MAX) {
        snprintf(o->notes[o->note_count++], sizeof o->notes[0],
                 "%" PRIu64 " violations are known (--known) and not counted", o->known_count);
    }
}

static gmd_status watch_child(const gmd_run_options *options, const gmd_workload *workload,
                              gmd_shared *shared, pid_t child, gmd_error *error)
{
    int exit_status = 0;
    int process = (int)syscall(SYS_pidfd_open, child, 0);
    if (process < 0) {
        gmd_status status = gmd_fail(error, GMD_FAILED, "pidfd_open: %s", strerror(errno));
        kill(-child, SIGKILL);
        reap(child, &exit_status);
        return status;
    }
    child_end end = watch(child, process, shared, options, &exit_status);
    close(process);
    kill(-child, SIGKILL); /* helpers that the allocator may have forked are in its group */
    clear_progress(options);
    if (!is_intact(shared)) {
        memset(&shared->outcome, 0, sizeof shared->outcome);
        prepare_outcome(&shared->outcome, options, workload);
        gmd_outcome_violation(&shared->outcome, options->known, "progress", 0,
                              "the allocator wrote over memory that is gmd's own: nothing that was "
                              "found can be trusted");
        return GMD_OK;
    }
    mend_texts(&shared->outcome);
    prepare_outcome(&shared->outcome, options, workload);
    bool is_clean = end == CHILD_EXITED && WIFEXITED(exit_status) && WEXITSTATUS(exit_status) == 0;
    if (!is_clean || !atomic_load(&shared->is_finished)) {
        judge_death(options, workload, shared, exit_status, end);
    }
    return GMD_OK;
}

static gmd_status fork_and_watch(const gmd_run_options *options, const gmd_workload *workload,
                                 gmd_shared *shared, gmd_error *error)
{
    fflush(NULL); /* or the child would print what is buffered here once more */
    pid_t child = fork();
    if (child < 0) {
        return gmd_fail(error, GMD_FAILED, "fork: %s", strerror(errno));
    }
    if (child == 0) {
        run_child(options, workload, shared);
    }
    setpgid(child, child); /* here as well as in the child: whoever comes first */
    return watch_child(options, workload, shared, child, error);
}

gmd_status gmd_run_isolated(const gmd_run_options *options, const gmd_workload *workload,
                            gmd_outcome *outcome, gmd_error *error)
{
    gmd_status status = gmd_subject_check(options->allocator, options->lib_directory, error);
    if (status != GMD_OK) {
        return status;
    }
    gmd_shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (shared == MAP_FAILED) {
        return gmd_fail(error, GMD_NO_MEMORY, "no memory to share with the child process: %s",
                        strerror(errno));
    }
    shared->first_guard = GMD_SHARED_GUARD;
    shared->last_guard = GMD_SHARED_GUARD;
    prepare_outcome(&shared->outcome, options, workload);
    status = fork_and_watch(options, workload, shared, error);
    if (status == GMD_OK) {
        note_known(&shared->outcome);
        gmd_case_write(options, workload, shared);
        *outcome = shared->outcome;
    }
    munmap(shared, sizeof *shared);
    return status;
}

gmd_status gmd_run_interleavings(const gmd_run_options *options, const gmd_workload *workload,
                                 gmd_outcome *outcome, gmd_error *error)
{
    gmd_schedule which = {.kind = GMD_SCHEDULE_SEEDED, .seed = options->interleave->seed};
    gmd_run_options one = *options;
    one.interleave = &which;
    gmd_status status = GMD_OK;
    uint64_t count = 0, requests = 0;
    double seconds = 0;
    do {
        which.seed = options->interleave->seed + count++;
        status = gmd_run_isolated(&one, workload, outcome, error);
        requests += outcome->requests;
        seconds += outcome->seconds;
    } while (status == GMD_OK && outcome->verdict == GMD_PASS && count < options->interleave_seeds);
    if (status == GMD_OK) {
        outcome->requests = requests;
        outcome->seconds = seconds;
    }
    if (status == GMD_OK && outcome->note_count < GMD_NOTE_MAX) {
        snprintf(outcome->notes[outcome->note_count++], sizeof outcome->notes[0],
                 "%" PRIu64 " interleavings, seeds %" PRIu64 " to %" PRIu64, count,
                 options->interleave->seed, which.seed);
    }
    return status;
}

gmd_status gmd_play_trace(void *context, gmd_session *session, gmd_error *error)
{
    (void)context;
    const gmd_trace *trace = session->workload->trace;
    if (gmd_is_interleaved(session->options, trace)) {
        return gmd_play_interleaved(session, error);
    }
    for (size_t i = 0; i < trace->count; i++) {
        if (gmd_session_request(session, &trace->requests[i]) == GMD_STOP) {
            break;
        }
    }
    return GMD_OK;
}
