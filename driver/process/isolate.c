/* isolate.c - the child process that makes the requests, and the parent that watches it. */
#include "case.h"
#include "child.h"
#include "gmd_clock.h"
#include "gmd_driver.h"
#include "gmd_end.h"
#include "gmd_judge.h"
#include "gmd_open.h"
#include "gmd_session_state.h"
#include "left_behind.h"
#include "second_opinion.h"
#include "second_run.h"
#include "watch.h"

#include "gmd_log.h"
#include "gmd_status_line.h"
#include "gmd_text.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- the child --------------------------------------------------------------------------- */

static void run_child(const gmd_run_options *options, const gmd_workload *workload,
                      shared_run *shared)
{
    child_prepare();
    if (options->process.is_second_run) {
        second_run_perturb();
    }
    gmd_session session;
    gmd_error error = {""};
    gmd_status status = session_open(&session, options, workload, shared, &error);
    if (status == GMD_OK) {
        child_play(&session);
    } else {
        outcome_error(&shared->outcome, status, &error);
    }
    session_close(&session);
    atomic_store(&shared->stage, GMD_STAGE_UNLOADING);
    atomic_store(&shared->is_finished, 1);
    exit(EXIT_SUCCESS); /* not _exit: a crash in the library's own teardown is a finding, too */
}

/* --- the parent -------------------------------------------------------------------------- */

typedef struct watched_run {
    const gmd_run_options *options;
    const gmd_workload *workload;
    shared_run *shared;
    taken_run *taken;
    gmd_status_line line;
    bool was_shot; /* somebody else has ended it, with SIGKILL */
} watched_run;

/* Only what takes longer than a moment says how far it is. */
static void show_progress(void *context, double seconds)
{
    watched_run *run = context;
    if (run->options->process.shows_progress && seconds > 0.5) {
        uint64_t requests = run->shared->outcome.requests;
        gmd_status_show(&run->line, seconds, "%" PRIu64 " requests (%.0f/s): %.200s", requests,
                        (double)requests / seconds, gmd_file_name(run->workload->name));
    }
}

static void reap(pid_t child, int *exit_status)
{
    while (waitpid(child, exit_status, 0) < 0 && errno == EINTR) {
    }
}

/* --- all of it --------------------------------------------------------------------------- */

/* An oracle that saw a part of the run has not judged it. */
static void take_back(gmd_outcome *o, const char *oracle, const char *reason)
{
    for (uint32_t i = 0; i < o->oracle_count; i++) {
        gmd_oracle_result *r = &o->oracles[i];
        if (r->fate == GMD_ORACLE_PASSED && (!oracle || strcmp(r->name, oracle) == 0)) {
            r->fate = GMD_ORACLE_SKIPPED;
            snprintf(r->reason, sizeof r->reason, "%s", reason);
        }
    }
}

/* What it came to until now stays. */
static gmd_status interrupt(watched_run *run, gmd_error *error)
{
    child_judge_end(run->options, run->workload, run->shared, NULL, NULL, run->taken);
    gmd_fail(error, GMD_INTERRUPTED,
             "interrupted after %" PRIu64 " requests: the rest was not made",
             run->taken->outcome.requests);
    outcome_error(&run->taken->outcome, GMD_INTERRUPTED, error);
    take_back(&run->taken->outcome, NULL, "the run was interrupted");
    return GMD_INTERRUPTED;
}

static void interrupt_second_run(gmd_outcome *o, gmd_error *error)
{
    gmd_fail(error, GMD_INTERRUPTED,
             "interrupted in the second run, which determinism and reference are judged by");
    outcome_error(o, GMD_INTERRUPTED, error);
    take_back(o, "determinism", "the second run was interrupted");
    take_back(o, "reference", "the second run was interrupted");
}

/* The process itself is watched, which nothing that the allocator does with descriptors can
 * deceive. */
static gmd_status watch_child(watched_run *run, const own_children *own, pid_t child,
                              gmd_error *error)
{
    child_end end = {.is_hung = false};
    int process = (int)syscall(SYS_pidfd_open, child, 0);
    if (process < 0) {
        gmd_status status = gmd_fail(error, GMD_FAILED, "pidfd_open: %s", strerror(errno));
        kill(-child, SIGKILL);
        reap(child, &end.wait_status);
        return status;
    }
    const process_watch watch = {.descriptor = process,
                                 .shared = run->shared,
                                 .budget_s = run->options->process.call_budget_s,
                                 .loading_budget_s = run->options->process.load_budget_s,
                                 .is_interrupted = run->options->process.is_interrupted,
                                 .show = show_progress,
                                 .context = run};
    watch_end seen = watch_process(&watch);
    end.is_hung = seen != WATCH_SPOKE;
    bool is_cut_short = seen == WATCH_INTERRUPTED;
    if (end.is_hung) {
        GMD_LOG(PROCESS, "kills %ld: %s within %g s", (long)child,
                is_cut_short ? "interrupted" : "no answer", run->options->process.call_budget_s);
        kill(child, SIGKILL);
    }
    reap(child, &end.wait_status);
    GMD_LOG(PROCESS, "%ld ended with %s %d", (long)child,
            WIFSIGNALED(end.wait_status) ? "signal" : "status",
            WIFSIGNALED(end.wait_status) ? WTERMSIG(end.wait_status)
                                         : WEXITSTATUS(end.wait_status));
    run->was_shot =
        !end.is_hung && WIFSIGNALED(end.wait_status) && WTERMSIG(end.wait_status) == SIGKILL;
    close(process);
    kill(-child, SIGKILL); /* helpers that the allocator may have forked are in its group */
    gmd_status_clear(&run->line);
    uint64_t left_behind = left_behind_end(own, child);
    if (is_cut_short) {
        return interrupt(run, error);
    }
    child_judge_end(run->options, run->workload, run->shared, NULL, &end, run->taken);
    gmd_outcome_note_troubles(&run->taken->outcome, 0, left_behind);
    return GMD_OK;
}

static gmd_status fork_once(watched_run *run, gmd_error *error)
{
    child_begin_run(run->shared, NULL, GMD_STAGE_LOADING);
    if (gmd_options_interrupted(run->options)) {
        return interrupt(run, error);
    }
    left_behind_take_in();
    own_children own = left_behind_note();
    fflush(NULL); /* or the child would print what is buffered here once more */
    pid_t child = fork();
    if (child < 0) {
        gmd_fail(error, GMD_FAILED, "fork: %s", strerror(errno));
        left_behind_free(&own);
        return GMD_FAILED;
    }
    if (child == 0) {
        run_child(run->options, run->workload, run->shared);
    }
    setpgid(child, child); /* here as well as in the child: whoever comes first */
    GMD_LOG(PROCESS, "forked %ld for %s", (long)child, run->workload->name);
    gmd_status status = watch_child(run, &own, child, error);
    left_behind_free(&own);
    return status;
}

/* A run that SIGKILL ended is made again: the kernel short of memory, or a person, may have sent
 * it. Who is ended so both times has aimed at itself. */
static gmd_status fork_and_watch(const gmd_run_options *options, const gmd_workload *workload,
                                 shared_run *shared, taken_run *taken, gmd_error *error)
{
    watched_run run = {.options = options, .workload = workload, .shared = shared, .taken = taken};
    gmd_status status = fork_once(&run, error);
    if (status == GMD_OK && run.was_shot) {
        GMD_LOG(PROCESS, "runs %s again: SIGKILL ended it", workload->name);
        status = fork_once(&run, error);
    }
    return status;
}

/* What it is held against a second run by, and where. */
static void keep_answers(gmd_run_options *options, const gmd_workload *workload)
{
    options->process.answers = NULL;
    options->process.no_second_run = second_run_obstacle(options, workload);
    if (options->process.no_second_run) {
        return;
    }
    run_answers *answers = mmap(NULL, sizeof *answers, PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (answers == MAP_FAILED) {
        options->process.no_second_run = "there is no memory to keep the answers in";
    } else {
        options->process.answers = answers;
    }
}

static gmd_status run_in_memory(const gmd_run_options *options, const gmd_workload *workload,
                                shared_run *shared, taken_run *taken, gmd_error *error)
{
    gmd_status status = fork_and_watch(options, workload, shared, taken, error);
    if (status == GMD_OK && options->process.answers) {
        status = make_second_run(options, workload, taken, fork_and_watch, error);
        if (status == GMD_INTERRUPTED) {
            interrupt_second_run(&taken->outcome, error);
        }
    }
    if (status == GMD_OK || status == GMD_INTERRUPTED) {
        gmd_outcome_note_known(&taken->outcome);
        case_write(options, workload, taken);
    }
    if (status == GMD_OK) {
        ask_second_opinion(options, workload, taken, gmd_run_isolated); /* it records nothing */
    }
    return status;
}

static gmd_status run_isolated(const gmd_run_options *given, const gmd_workload *workload,
                               gmd_outcome *outcome, gmd_error *error)
{
    gmd_run_options options = *given;
    const gmd_subject_source source = session_source(&options);
    gmd_status status = gmd_subject_check(&source, error);
    if (status != GMD_OK) {
        return status;
    }
    shared_run *shared = child_map_shared(&options, workload, false);
    taken_run *taken = calloc(1, sizeof *taken);
    if (shared && taken) {
        keep_answers(&options, workload);
        status = run_in_memory(&options, workload, shared, taken, error);
    } else {
        status = gmd_fail(error, GMD_NO_MEMORY, "no memory to share with the child process: %s",
                          strerror(errno));
    }
    if (taken && (status == GMD_OK || status == GMD_INTERRUPTED)) {
        *outcome = taken->outcome;
    }
    if (options.process.answers) {
        munmap(options.process.answers, sizeof *options.process.answers);
    }
    child_unmap_shared(shared);
    free(taken);
    return status;
}

/* When no further run writes there. */
static void take_recordings(const gmd_run_options *options)
{
    take_timeline(options->recording.timeline);
    take_journal(options->recording.journal);
}

gmd_status gmd_run_isolated(const gmd_run_options *options, const gmd_workload *workload,
                            gmd_outcome *outcome, gmd_error *error)
{
    gmd_status status = run_isolated(options, workload, outcome, error);
    take_recordings(options);
    return status;
}

gmd_status gmd_run_interleavings(const gmd_run_options *options, const gmd_workload *workload,
                                 gmd_outcome *outcome, gmd_error *error)
{
    gmd_run_options one = *options;
    gmd_schedule *which = &one.conditions.interleave;
    which->kind = gmd_schedule_is_seeded(which) ? which->kind : GMD_SCHEDULE_SEEDED;
    gmd_status status = GMD_OK;
    uint64_t count = 0, requests = 0;
    double seconds = 0;
    do {
        which->seed = options->conditions.interleave.seed + count++;
        status = run_isolated(&one, workload, outcome, error);
        requests += outcome->requests;
        seconds += outcome->seconds;
    } while (status == GMD_OK && outcome->verdict == GMD_PASS && count < options->interleave_seeds);
    take_recordings(options);
    if (status == GMD_OK || status == GMD_INTERRUPTED) {
        outcome->requests = requests;
        outcome->seconds = seconds;
    }
    if (status == GMD_OK && outcome->note_count < GMD_NOTE_MAX) {
        snprintf(outcome->notes[outcome->note_count++], sizeof outcome->notes[0],
                 "%" PRIu64 " interleavings, seeds %" PRIu64 " to %" PRIu64, count,
                 options->conditions.interleave.seed, which->seed);
    }
    return status;
}
