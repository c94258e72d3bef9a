/* isolate.c - the child process that makes the requests, and the parent that watches it. */
#include "case.h"
#include "child.h"
#include "gmd_clock.h"
#include "gmd_end.h"
#include "gmd_interleave.h"
#include "gmd_one_core.h"
#include "gmd_open.h"
#include "gmd_session.h"
#include "gmd_session_state.h"
#include "second_opinion.h"
#include "second_run.h"

#include "gmd_status_line.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define POLL_MS 50

/* --- the child --------------------------------------------------------------------------- */

static void run_child(const gmd_run_options *options, const gmd_workload *workload,
                      gmd_shared *shared)
{
    gmd_child_prepare();
    if (options->is_second_run) {
        gmd_second_run_perturb();
    }
    gmd_session session;
    gmd_error error = {""};
    gmd_status status = gmd_session_open(&session, options, workload, shared, &error);
    if (status == GMD_OK) {
        gmd_child_play(&session);
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
        fprintf(stderr,
                GMD_STATUS_BEGIN "%.100s: %" PRIu64 " requests, %.0f/s, %.0f s" GMD_STATUS_END,
                shared->outcome.name, requests, (double)requests / seconds, seconds);
    }
}

static void clear_progress(const gmd_run_options *options)
{
    if (options->shows_progress) {
        fprintf(stderr, GMD_STATUS_CLEAR);
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
    double start = gmd_clock_s(), since = start;
    for (;;) {
        struct pollfd waiting = {.fd = process, .events = POLLIN};
        if (poll(&waiting, 1, POLL_MS) > 0) {
            reap(child, exit_status);
            return CHILD_EXITED;
        }
        show_progress(options, shared, gmd_clock_s() - start);
        uint64_t beat = atomic_load(&shared->beats);
        int stage = atomic_load(&shared->stage);
        if (beat != last_beat || stage != last_stage) {
            last_beat = beat;
            last_stage = stage;
            since = gmd_clock_s();
        } else if (gmd_clock_s() - since > options->call_budget_s) {
            kill(child, SIGKILL);
            reap(child, exit_status);
            return CHILD_HUNG;
        }
    }
}

/* --- all of it --------------------------------------------------------------------------- */

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
    if (!gmd_child_check_shared(shared)) {
        memset(&shared->outcome, 0, sizeof shared->outcome);
        gmd_child_name_outcome(&shared->outcome, options, workload);
        gmd_outcome_violation(&shared->outcome, options->known, "progress", 0,
                              "the allocator wrote over memory that is gmd's own: nothing that was "
                              "found can be trusted");
        return GMD_OK;
    }
    gmd_child_name_outcome(&shared->outcome, options, workload);
    bool is_clean = end == CHILD_EXITED && WIFEXITED(exit_status) && WEXITSTATUS(exit_status) == 0;
    if (!is_clean || !atomic_load(&shared->is_finished)) {
        gmd_child_judge_death(options, workload, shared, exit_status, end == CHILD_HUNG);
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

static void keep_answers(const gmd_run_options *options, const gmd_workload *workload,
                         gmd_shared *shared)
{
    shared->no_second_run = gmd_second_run_obstacle(options, workload);
    if (shared->no_second_run) {
        return;
    }
    gmd_answers *answers = mmap(NULL, sizeof *answers, PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (answers == MAP_FAILED) {
        shared->no_second_run = "there is no memory to keep the answers in";
    } else {
        shared->answers = answers;
    }
}

gmd_status gmd_run_isolated(const gmd_run_options *options, const gmd_workload *workload,
                            gmd_outcome *outcome, gmd_error *error)
{
    const gmd_subject_source source = gmd_session_source(options);
    gmd_status status = gmd_subject_check(&source, error);
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
    gmd_child_name_outcome(&shared->outcome, options, workload);
    keep_answers(options, workload, shared);
    status = fork_and_watch(options, workload, shared, error);
    if (status == GMD_OK && shared->answers) {
        status = gmd_second_run(options, workload, shared, fork_and_watch, error);
        munmap(shared->answers, sizeof *shared->answers);
    }
    if (status == GMD_OK) {
        note_known(&shared->outcome);
        gmd_case_write(options, workload, shared);
        gmd_second_opinion(options, workload, shared);
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

/* Before the first request: not after a million of them. */
static gmd_status check_faults(const gmd_session *session, const gmd_trace *trace, gmd_error *error)
{
    for (size_t i = 0; i < trace->count; i++) {
        const gmd_request *r = &trace->requests[i];
        const char *function = r->op == GMD_OP_FAULT && r->function < trace->functions.count
                                   ? trace->functions.items[r->function]
                                   : NULL;
        if (function && gmd_fault_check(r, function, error) != GMD_OK) {
            char place[600];
            snprintf(place, sizeof place, "%.500s:%u", session->workload->name, r->line);
            if (r->line) {
                gmd_error_prefix(error, place);
            }
            return GMD_BAD_INPUT;
        }
    }
    return GMD_OK;
}

typedef struct course { /* of a trace's requests, one after the other */
    gmd_session *session;
    const gmd_trace *trace;
    size_t next;
    bool is_over;
} course;

static unsigned next_thread(const course *c)
{
    return c->trace->requests[c->next].thread % GMD_MAX_THREADS;
}

/* On the thread of the next request: that one, and those after it that are for the same thread. */
static void play_stretch(void *context)
{
    course *c = context;
    unsigned thread = next_thread(c);
    do {
        const gmd_request *request = &c->trace->requests[c->next++];
        c->is_over = gmd_session_request(c->session, request) == GMD_STOP;
        c->is_over = c->is_over || c->next == c->trace->count;
    } while (!c->is_over && next_thread(c) == thread);
}

static gmd_status play_in_order(gmd_session *session, gmd_error *error)
{
    const gmd_trace *trace = session->workload->trace;
    course c = {.session = session, .trace = trace, .is_over = trace->count == 0};
    gmd_status status = GMD_OK;
    while (!c.is_over && status == GMD_OK) {
        status = gmd_threads_call(&session->threads, next_thread(&c), play_stretch, &c, error);
    }
    return status;
}

/* A thread that spins until another has done something needs that one to run beside it; a real
 * device's runtime may have such threads. */
static gmd_status play_on_one_core(gmd_session *session,
                                   gmd_status (*play)(gmd_session *session, gmd_error *error),
                                   gmd_error *error)
{
    gmd_one_core core = {.is_on = false};
    if (session->workload->trace->threads.count > 1 && session->runtime.sim &&
        !session->expects_lapses) {
        gmd_one_core_begin(&core);
    }
    gmd_status status = play(session, error);
    gmd_one_core_end(&core);
    return status;
}

gmd_status gmd_play_trace(void *context, gmd_session *session, gmd_error *error)
{
    (void)context;
    const gmd_trace *trace = session->workload->trace;
    if (check_faults(session, trace, error) != GMD_OK) {
        return GMD_BAD_INPUT;
    }
    bool is_interleaved = gmd_interleaving_of(session->options, trace) != NULL;
    if (is_interleaved && session->runtime.sim) {
        return play_on_one_core(session, gmd_play_interleaved, error);
    }
    if (is_interleaved) { /* its driver takes locks of its own, on threads of its own */
        gmd_session_note(session, "on a real device the threads run one request after the other");
    }
    return play_on_one_core(session, play_in_order, error);
}
