/* child.c - what every process does that holds an allocator under test, and what its parent makes
 * of its end. */
#include "child.h"
#include "gmd_text.h"

#include "gmd_clock.h"
#include "gmd_end.h"
#include "gmd_judge.h"
#include "gmd_session_state.h"
#include "gmd_tokens.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void child_play(gmd_session *session)
{
    const gmd_workload *workload = session->workload;
    shared_run *shared = session->shared;
    gmd_error error = {""};
    atomic_store(&shared->stage, GMD_STAGE_REQUESTS);
    session->start_s = gmd_clock_s();
    /* gmd_play_trace (driver/session) for a trace; for others, what their .body names: scenarios in
     * cli/play.c, recorded jobs in cli/replay.c, parts of the gate in gate/. */
    gmd_status status = workload->body(workload->context, session, &error);
    shared->outcome.seconds = gmd_clock_s() - session->start_s;
    if (status != GMD_OK) {
        outcome_error(&shared->outcome, status, &error);
        session->is_over = true;
    }
    session_finish(session);
}

/* A core file of the allocator under test helps nobody in a campaign, and what it prints must not
 * mix with gmd's own output. */
void child_prepare(void)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    static const int deadly[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT,
                                 SIGTERM, SIGINT, SIGHUP, SIGUSR1};
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++) {
        signal(deadly[i], SIG_DFL); /* handlers of the parent's process would hide the crash */
    }
    if (dup2(STDERR_FILENO, STDOUT_FILENO) < 0) { /* no standard error: nowhere then */
        int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
        dup2(nowhere, STDOUT_FILENO);
    }
}

/* In one word: "alloc", or the stage. */
static void at_token(const taken_run *run, const gmd_workload *workload,
                     char token[GMD_REQUEST_TOKEN])
{
    static const gmd_trace nameless;
    char request[200] = "between";
    switch (run->stage) {
    case GMD_STAGE_LOADING:
        snprintf(request, sizeof request, "loading");
        break;
    case GMD_STAGE_CLEAN_UP:
        snprintf(request, sizeof request, "clean_up");
        break;
    case GMD_STAGE_UNLOADING:
        snprintf(request, sizeof request, "unloading");
        break;
    default:
        if (run->is_in_request) {
            gmd_request_text(workload->trace ? workload->trace : &nameless, &run->current, request,
                             sizeof request);
        }
    }
    gmd_request_token(request, token);
}

typedef enum death { DEATH_CRASH, DEATH_EXIT, DEATH_HANG, DEATH_EXCEPTION } death;

/* `signal`: of a crash, else NULL. */
static void raise_death(const gmd_run_options *options, const gmd_workload *workload,
                        taken_run *run, death how, const char *signal, const char *message)
{
    static const gmd_kind own[] = {GMD_KIND(progress, crash), GMD_KIND(progress, exit),
                                   GMD_KIND(progress, hang), GMD_KIND(progress, exception)};
    static const gmd_kind of_misuse[] = {GMD_KIND(misuse, crash), GMD_KIND(misuse, exit),
                                         GMD_KIND(misuse, hang), GMD_KIND(misuse, crash)};
    bool is_misuse = run->is_freeing_wrongly;
    bool is_in_request = run->stage == GMD_STAGE_REQUESTS && run->is_in_request;
    char at[GMD_REQUEST_TOKEN];
    at_token(run, workload, at);
    const gmd_given_party parties[] = {
        how == DEATH_EXCEPTION && !is_misuse ? (gmd_given_party){"type", run->thrown_type}
                                             : (gmd_given_party){"signal", signal},
        {is_misuse ? "free" : "at", is_misuse ? gmd_wrong_free_token(run->wrong_free.kind) : at},
        {NULL, NULL}};
    bool is_at_end = run->stage == GMD_STAGE_CLEAN_UP || run->stage == GMD_STAGE_UNLOADING;
    (is_at_end ? outcome_violation_at_end : outcome_violation)(
        &run->outcome, options->judging.known, is_misuse ? of_misuse[how] : own[how], parties,
        is_in_request ? run->current_index : run->outcome.requests, message);
}

static const char *where(const taken_run *run, const gmd_workload *workload, char *text,
                         size_t size)
{
    static const gmd_trace nameless;
    char request[200];
    if (run->is_freeing_wrongly) {
        snprintf(text, size, "in %s at 0x%" PRIx64 ", made on purpose after request %" PRIu64,
                 gmd_wrong_free_text(run->wrong_free.kind), run->wrong_free.address,
                 run->current_index);
        return text;
    }
    switch (run->stage) {
    case GMD_STAGE_LOADING:
        return "while the allocator was loaded and initialised";
    case GMD_STAGE_CLEAN_UP:
        return "while everything was freed and the cache emptied at the end";
    case GMD_STAGE_UNLOADING:
        return "while the process ended (destructors of the library)";
    default:
        if (!run->is_in_request) {
            snprintf(text, size, "between two requests, after %" PRIu64, run->outcome.requests);
            return text;
        }
        gmd_request_text(workload->trace ? workload->trace : &nameless, &run->current, request,
                         sizeof request);
        snprintf(text, size, "in request %" PRIu64 ": %s", run->current_index, request);
        return text;
    }
}

static double budget_of(const gmd_run_options *options, const taken_run *run)
{
    const gmd_run_process *process = &options->process;
    return run->stage == GMD_STAGE_LOADING && process->load_budget_s > 0 ? process->load_budget_s
                                                                         : process->call_budget_s;
}

/* By a std::bad_alloc of its malloc an allocator may report out of memory, where it promises so. */
static const char *promise_for(const taken_run *run)
{
    bool is_malloc = run->stage == GMD_STAGE_REQUESTS && run->is_in_request &&
                     !run->is_freeing_wrongly && run->current.op == GMD_OP_ALLOC;
    return is_malloc && run->thrown_is_bad_alloc
               ? ". If that is how the allocator reports out of memory, promise it: --promise "
                 "throws, or GMD_PROMISE_THROWS in gmd_promises"
               : "";
}

static void judge_death(const gmd_run_options *options, const gmd_workload *workload,
                        taken_run *run, int exit_status, bool is_hung)
{
    char place[300], message[sizeof run->outcome.violations[0].message];
    bool is_idle = run->stage == GMD_STAGE_REQUESTS && !run->is_in_request;
    if (is_hung && is_idle) {
        gmd_error error;
        gmd_fail(&error, GMD_BAD_INPUT,
                 "%sthe workload made no request for %g s after request %" PRIu64, run->place,
                 options->process.call_budget_s, run->outcome.requests);
        outcome_error(&run->outcome, GMD_BAD_INPUT, &error);
        return;
    }
    const char *at = where(run, workload, place, sizeof place);
    bool has_thrown =
        run->has_thrown && WIFSIGNALED(exit_status) && WTERMSIG(exit_status) == SIGABRT;
    char token[GMD_SIGNAL_TOKEN] = "";
    if (is_hung) {
        snprintf(message, sizeof message, "no answer within %g s %s", budget_of(options, run), at);
    } else if (has_thrown) {
        gmd_signal_token(SIGABRT, token);
        bool has_text = *run->thrown_what && strcmp(run->thrown_what, run->thrown_type) != 0;
        snprintf(message, sizeof message, "a C++ exception ended the process %s: %s%s%s%s", at,
                 run->thrown_type, has_text ? ": " : "", has_text ? run->thrown_what : "",
                 promise_for(run));
    } else if (WIFSIGNALED(exit_status)) {
        gmd_signal_token(WTERMSIG(exit_status), token);
        snprintf(message, sizeof message, "crashed with signal %d (%s) %s", WTERMSIG(exit_status),
                 strsignal(WTERMSIG(exit_status)), at);
    } else {
        snprintf(message, sizeof message, "ended the process with status %d %s",
                 WEXITSTATUS(exit_status), at);
    }
    raise_death(options, workload, run,
                is_hung      ? DEATH_HANG
                : has_thrown ? DEATH_EXCEPTION
                : *token     ? DEATH_CRASH
                             : DEATH_EXIT,
                token, message);
}

static void name_outcome(gmd_outcome *o, const gmd_run_options *options,
                         const gmd_workload *workload)
{
    snprintf(o->name, sizeof o->name, "%s", gmd_file_name(workload->name));
    snprintf(o->kind, sizeof o->kind, "%s", workload->kind);
    snprintf(o->variant, sizeof o->variant, "%s", workload->variant ? workload->variant : "");
    bool has_path = workload->path && strlen(workload->path) < sizeof o->path;
    snprintf(o->path, sizeof o->path, "%s", has_path ? workload->path : "");
    o->seed = options->seed;
    bool is_drawn = options->conditions.placement.kind == GMD_PLACEMENT_SEEDED;
    char placement[GMD_PLACEMENT_TEXT];
    snprintf(o->placement, sizeof o->placement, "%s",
             is_drawn ? gmd_placement_write(&options->conditions.placement, placement) : "");
}

void child_set_up_shared(shared_run *shared, const gmd_run_options *options,
                         const gmd_workload *workload)
{
    shared->first_guard = shared->last_guard = GMD_SHARED_GUARD;
    name_outcome(&shared->outcome, options, workload);
}

/* --- the beginning of a run -------------------------------------------------------------- */

#define SECOND_PART offsetof(gmd_outcome, verdict)
#define THIRD_PART  offsetof(gmd_outcome, violations)

/* All but the names. */
static void copy_results(gmd_outcome *to, const gmd_outcome *from)
{
    memcpy((char *)to + SECOND_PART, (const char *)from + SECOND_PART, THIRD_PART - SECOND_PART);
    copy_lists(to, from);
}

void child_keep_opening(gmd_outcome *opening, const shared_run *shared)
{
    if (!take_outcome(opening, shared)) {
        memset(opening, 0, THIRD_PART);
    }
}

void child_begin_run(shared_run *shared, const gmd_outcome *opening, run_stage stage)
{
    const size_t first = offsetof(shared_run, stage), end = offsetof(shared_run, requests);
    if (opening) {
        copy_results(&shared->outcome, opening);
    } else {
        memset((char *)&shared->outcome + SECOND_PART, 0, THIRD_PART - SECOND_PART);
    }
    memset((char *)shared + first, 0, end - first);
    atomic_store(&shared->stage, stage);
}

shared_run *child_map_shared(const gmd_run_options *options, const gmd_workload *workload,
                             bool is_private)
{
    shared_run *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
             (is_private ? MAP_PRIVATE : MAP_SHARED) | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (shared == MAP_FAILED) {
        return NULL;
    }
    child_set_up_shared(shared, options, workload);
    return shared;
}

void child_unmap_shared(shared_run *shared)
{
    if (shared) {
        munmap(shared, sizeof *shared);
    }
}

/* --- its end ----------------------------------------------------------------------------- */

/* Nothing that was found can be trusted: it is as if nothing had been. */
static void distrust(const gmd_run_options *options, const gmd_workload *workload,
                     shared_run *shared, const gmd_outcome *opening, gmd_outcome *outcome)
{
    child_set_up_shared(shared, options, workload);
    child_begin_run(shared, opening, GMD_STAGE_UNLOADING);
    memset(outcome, 0, sizeof *outcome);
    if (opening) {
        copy_results(outcome, opening);
    }
    outcome_violation(outcome, options->judging.known, GMD_KIND(progress, overwrote_gmd),
                      GMD_NO_PARTIES, 0,
                      "the allocator wrote over memory that is gmd's own: nothing that was "
                      "found can be trusted");
}

/* gmd has words for each of its errors, and is in no request when all is over. */
static bool has_left_call(const taken_run *run)
{
    const gmd_outcome *o = &run->outcome;
    bool is_wordless = o->verdict == GMD_ERROR && !o->error[0];
    return is_wordless || (run->is_in_request && !o->violation_count && o->verdict == GMD_PASS);
}

static void raise_left_call(const gmd_run_options *options, const gmd_workload *workload,
                            taken_run *run)
{
    char at[GMD_REQUEST_TOKEN], request[200] = "", message[500];
    static const gmd_trace nameless;
    at_token(run, workload, at);
    if (run->is_in_request) {
        gmd_request_text(workload->trace ? workload->trace : &nameless, &run->current, request,
                         sizeof request);
    }
    snprintf(message, sizeof message,
             "the run ended without an end of its last call, request %" PRIu64 "%s%s: control left "
             "it by another way than its return (longjmp, an exception)",
             run->current_index, *request ? ": " : "", request);
    run->outcome.verdict = GMD_FAIL;
    outcome_violation(&run->outcome, options->judging.known, GMD_KIND(progress, left_call),
                      GMD_PARTIES({"at", at}), run->current_index, message);
}

static void note_cut_off(taken_run *run)
{
    gmd_error error;
    gmd_fail(&error, GMD_FAILED, "the run was ended after %" PRIu64 " requests: the time was over",
             run->outcome.requests);
    outcome_error(&run->outcome, GMD_FAILED, &error);
}

bool child_judge_end(const gmd_run_options *options, const gmd_workload *workload,
                     shared_run *shared, const gmd_outcome *opening, const child_end *end,
                     taken_run *run)
{
    bool is_intact = take_run(run, shared);
    if (!is_intact) {
        distrust(options, workload, shared, opening, &run->outcome);
    }
    name_outcome(&run->outcome, options, workload);
    bool is_clean = !end || (!end->is_hung && WIFEXITED(end->wait_status) &&
                             WEXITSTATUS(end->wait_status) == EXIT_SUCCESS && run->is_finished);
    run->outcome.is_cut_off = is_intact && end && end->is_cut_off;
    if (run->outcome.is_cut_off) {
        note_cut_off(run);
    } else if (is_intact && !is_clean) {
        judge_death(options, workload, run, end->wait_status, end->is_hung);
    } else if (is_intact && has_left_call(run)) {
        raise_left_call(options, workload, run);
    }
    return is_intact;
}
