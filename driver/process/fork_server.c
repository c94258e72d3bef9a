/* fork_server.c - a process that waits with the allocator loaded, and a fork of it for each input.
 *
 * A real device does not survive a fork: there the process waits with nothing loaded, and each fork
 * of it opens the device by itself; that takes half a second, so it goes on for as long as nothing
 * is found.
 *
 * Three processes: gmd (the parent) puts an input into shared memory and asks over a socket; the
 * fork server forks; its child runs the input and exits. The fork server answers with how the child
 * ended. The parent watches the child's beats meanwhile and kills one that hangs. */
#include "gmd_fork_server.h"

#include "child.h"
#include "gmd_call_log.h"
#include "gmd_clock.h"
#include "gmd_end.h"
#include "gmd_log.h"
#include "gmd_min.h"
#include "gmd_open.h"
#include "gmd_session_state.h"
#include "persistent.h"
#include "watch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define FUNCTION_MAX 64
#define CHOICE_MAX   4096

#define ORDER_RUN        'r'
#define ORDER_PERSISTENT 's'
#define INPUTS_A_PROCESS 4096

/* What the processes share. The input lies apart from the outcome, which the allocator's process
 * writes. */
typedef struct server_shared {
    shared_run run;
    _Atomic int child; /* process of the run under way */
    bool logs;
    bool can_restart;    /* the allocator exports gmd_restart */
    bool is_real;        /* the device */
    bool has_order_left; /* for the fork server, by a child in persistent mode */
    size_t request_count;
    uint32_t function_count, thread_count, block_count, stream_count;
    char functions[FUNCTION_MAX][64];
    gmd_schedule interleave;
    uint8_t choices[CHOICE_MAX];
    gmd_request requests[GMD_FORK_SERVER_REQUEST_MAX];
    persistent_list persistent;
    call_log log;
} server_shared;

struct gmd_fork_server {
    const gmd_run_options *options;
    const gmd_run_options *given; /* for what inputs' headers do not state; NULL: not looked at */
    server_shared *shared;
    pid_t process;
    int channel;
    bool is_dead;          /* nothing can be run: the outcome tells why */
    gmd_outcome opening;   /* the outcome before the first request, which each run begins with */
    gmd_workload workload; /* as the parent sees it */
    gmd_trace input;
};

/* --- the run, in a fork of the fork server --------------------------------------------------- */

/* The input as a trace. Requests and functions are the shared ones; all else goes without names. */
static void view_input(server_shared *shared, gmd_trace *trace, char *functions[FUNCTION_MAX],
                       char **nameless)
{
    for (uint32_t i = 0; i < shared->function_count; i++) {
        functions[i] = shared->functions[i];
    }
    trace->requests = shared->requests;
    trace->count = shared->request_count;
    trace->functions = (gmd_names){.items = functions, .count = shared->function_count};
    trace->threads = (gmd_names){.items = nameless, .count = shared->thread_count};
    trace->blocks = (gmd_names){.items = nameless, .count = shared->block_count};
    trace->streams = (gmd_names){.items = nameless, .count = shared->stream_count};
    trace->conditions.interleave = shared->interleave;
    trace->conditions.interleave.choices = shared->choices;
}

static uint64_t most_names(const server_shared *shared)
{
    uint64_t most =
        gmd_max(gmd_max(shared->thread_count, shared->block_count), shared->stream_count);
    for (size_t i = 0; i < shared->persistent.count; i++) {
        const persistent_entry *input = &shared->persistent.inputs[i];
        most = gmd_max(
            most, gmd_max(gmd_max(input->thread_count, input->block_count), input->stream_count));
    }
    return most;
}

static void play_input(gmd_session *session, server_shared *shared, gmd_trace *trace)
{
    const gmd_run_options *given = session->options;
    gmd_run_options options = *given;
    if (shared->interleave.kind != GMD_SCHEDULE_UNSTATED) {
        options.conditions.interleave = trace->conditions.interleave;
    }
    session->options = &options;
    session->call_log = shared->logs ? &shared->log : NULL;
    child_play(session);
    session->options = given;
}

/* Runs what was handed over in persistent mode. True: nothing was found, and the process is as good
 * as a fresh one: an allocator that is made anew for each input; or a fresh one costs too much. It
 * may go on. */
static bool run_persistent(gmd_session *session, const gmd_outcome *opening, server_shared *shared,
                           gmd_trace *trace, uint64_t *inputs_so_far)
{
    persistent_list *list = &shared->persistent;
    list->is_fresh = *inputs_so_far == 0;
    persistent_play_all(session, opening, trace, shared->requests, list);
    *inputs_so_far += list->count;
    return (shared->can_restart || shared->is_real) && !list->has_stopped &&
           atomic_load(&list->passed) == list->count && *inputs_so_far < INPUTS_A_PROCESS;
}

static char **name_nothing(const server_shared *shared, char **nameless)
{
    free(nameless);
    nameless = calloc((size_t)most_names(shared) + 1, sizeof *nameless);
    if (!nameless) {
        abort(); /* as an allocator would end for want of host memory */
    }
    return nameless;
}

/* True: another order came that this process can carry out. When it is not for persistent mode, the
 * fork server carries it out. */
static bool await_order(server_shared *shared, int channel)
{
    char order = 0;
    int how = 0;
    atomic_store(&shared->run.is_finished, 1);
    if (write(channel, &how, sizeof how) != (ssize_t)sizeof how || read(channel, &order, 1) != 1) {
        _exit(EXIT_SUCCESS);
    }
    if (order == ORDER_PERSISTENT) {
        atomic_store(&shared->child, getpid());
        return true;
    }
    shared->has_order_left = true;
    _exit(EXIT_SUCCESS);
}

/* On a real device, in the process that uses it. */
static bool open_late(gmd_session *session, server_shared *shared)
{
    const gmd_run_options *options = session->options;
    const gmd_workload *workload = session->workload;
    gmd_error error = {""};
    atomic_store(&shared->run.stage, GMD_STAGE_LOADING);
    gmd_status status = session_open(session, options, workload, &shared->run, &error);
    if (status != GMD_OK) {
        outcome_error(&shared->run.outcome, status, &error);
    }
    session->muting.is_needless = true;
    atomic_store(&shared->run.stage, GMD_STAGE_REQUESTS);
    return status == GMD_OK;
}

/* `opening`: on a real device, where the child opens the session, it is filled in here. */
__attribute__((noreturn)) static void be_the_child(gmd_session *session, gmd_outcome *opening,
                                                   server_shared *shared, gmd_trace *trace,
                                                   int channel)
{
    char *functions[FUNCTION_MAX];
    char **nameless = NULL;
    uint64_t inputs = 0;
    child_prepare();
    if (shared->is_real && !open_late(session, shared)) {
        atomic_store(&shared->run.is_finished, 1);
        exit(EXIT_SUCCESS);
    }
    if (shared->is_real) {
        child_keep_opening(opening, &shared->run);
    }
    bool goes_on = true;
    while (goes_on) {
        nameless = name_nothing(shared, nameless);
        view_input(shared, trace, functions, nameless);
        if (shared->persistent.count) {
            goes_on = run_persistent(session, opening, shared, trace, &inputs) &&
                      await_order(shared, channel);
        } else {
            play_input(session, shared, trace);
            goes_on = false;
        }
    }
    close(channel);
    session_close(session);
    free(nameless);
    atomic_store(&shared->run.stage, GMD_STAGE_UNLOADING);
    atomic_store(&shared->run.is_finished, 1);
    exit(EXIT_SUCCESS); /* not _exit: a crash in the library's own teardown is a finding, too */
}

/* --- the fork server ------------------------------------------------------------------------- */

static void be_silent(void)
{
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
}

/* One run for each byte that comes; ends when the parent closes its side. A child in persistent
 * mode answers by itself for as long as it goes on. */
static void serve(gmd_session *session, gmd_outcome *opening, server_shared *shared,
                  gmd_trace *trace, int channel)
{
    char order;
    while (shared->has_order_left || read(channel, &order, 1) == 1) {
        int how = 0;
        shared->has_order_left = false;
        pid_t child = fork();
        if (child == 0) {
            be_the_child(session, opening, shared, trace, channel);
        }
        atomic_store(&shared->child, child);
        GMD_LOG(PROCESS, "the fork server forked %ld", (long)child);
        while (child > 0 && waitpid(child, &how, 0) < 0 && errno == EINTR) {
        }
        if (child > 0) {
            kill(-child, SIGKILL); /* helpers that the allocator may have forked */
        }
        how = child > 0 ? how : -1;
        GMD_LOG(PROCESS, "%ld ended with wait status 0x%x", (long)child, (unsigned)how);
        if (!shared->has_order_left && write(channel, &how, sizeof how) != (ssize_t)sizeof how) {
            break;
        }
    }
}

/* `opening` is this process's own: the allocator of a run cannot write over what the next begins
 * with. */
static void live(const gmd_run_options *options, gmd_outcome *opening, server_shared *shared,
                 int channel)
{
    gmd_trace trace = {0};
    gmd_workload workload = {
        .name = "input", .kind = "trace", .trace = &trace, .body = gmd_play_trace};
    gmd_session session = {.options = options, .workload = &workload};
    gmd_error error = {""};
    child_prepare();
    be_silent();
    persistent_keep_memory();
    if (shared->is_real) { /* fractions are of the memory that an input states */
        trace.conditions.capacity_bytes = options->conditions.capacity_bytes;
    }
    gmd_status status =
        shared->is_real ? GMD_OK : session_open(&session, options, &workload, &shared->run, &error);
    if (status != GMD_OK) {
        outcome_error(&shared->run.outcome, status, &error);
    }
    atomic_store(&shared->run.stage, GMD_STAGE_REQUESTS);
    session.muting.is_needless = true;
    shared->can_restart = !shared->is_real && session.subject.restart != NULL;
    child_keep_opening(opening, &shared->run);
    int how = 0;
    if (write(channel, &how, sizeof how) == (ssize_t)sizeof how && status == GMD_OK) {
        serve(&session, opening, shared, &trace, channel);
    }
    _exit(EXIT_SUCCESS);
}

/* --- the parent -------------------------------------------------------------------------- */

typedef enum answer { ANSWERED, HUNG, GONE } answer;

/* Waits until the fork server says how the run (or the opening) ended. */
static answer await(const gmd_fork_server *n, int *how)
{
    const process_watch watch = {.descriptor = n->channel,
                                 .shared = &n->shared->run,
                                 .budget_s = n->options->process.call_budget_s};
    bool was_killed = false;
    while (!watch_process(&watch)) {
        int child = atomic_load(&n->shared->child);
        GMD_LOG(PROCESS, "kills %ld: no answer within %g s",
                child > 0 ? (long)child : (long)n->process, n->options->process.call_budget_s);
        kill(child > 0 ? child : n->process, SIGKILL);
        was_killed = true;
    }
    ssize_t got = read(n->channel, how, sizeof *how);
    return got != (ssize_t)sizeof *how ? GONE : was_killed ? HUNG : ANSWERED;
}

static void bury(gmd_fork_server *n, int *how)
{
    close(n->channel);
    n->channel = -1;
    kill(-n->process, SIGKILL);
    while (waitpid(n->process, how, 0) < 0 && errno == EINTR) {
    }
    GMD_LOG(PROCESS, "the fork server %ld ended with wait status 0x%x", (long)n->process,
            (unsigned)*how);
    n->process = 0;
}

static void judge_run(gmd_fork_server *n, int how, answer end)
{
    const child_end child = {.is_hung = end == HUNG, .wait_status = how};
    child_judge_end(n->options, &n->workload, &n->shared->run, &n->opening, &child);
}

/* The allocator crashed or hung while it was loaded. */
static void note_still_birth(gmd_fork_server *n, answer end)
{
    int how = 0;
    bury(n, &how);
    atomic_store(&n->shared->run.stage, GMD_STAGE_LOADING);
    atomic_store(&n->shared->run.is_finished, 0);
    judge_run(n, how, end);
    n->is_dead = true;
}

static gmd_status start(gmd_fork_server *n, gmd_error *error)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        return gmd_fail(error, GMD_FAILED, "socketpair: %s", strerror(errno));
    }
    fflush(NULL); /* or the child would print what is buffered here once more */
    n->process = fork();
    if (n->process == 0) {
        close(ends[0]);
        live(n->options, &n->opening, n->shared, ends[1]);
    }
    close(ends[1]);
    n->channel = ends[0];
    GMD_LOG(PROCESS, "forked the fork server %ld", (long)n->process);
    if (n->process < 0) {
        n->process = 0;
        return gmd_fail(error, GMD_FAILED, "fork: %s", strerror(errno));
    }
    int how;
    answer end = await(n, &how);
    if (end != ANSWERED) {
        note_still_birth(n, end);
    }
    const gmd_outcome *o = &n->shared->run.outcome;
    if (end == ANSWERED) { /* what the opening shows, each run shows */
        child_judge_end(n->options, &n->workload, &n->shared->run, NULL, NULL);
        child_keep_opening(&n->opening, &n->shared->run);
    }
    return o->verdict == GMD_ERROR ? gmd_fail(error, o->error_status, "%s", o->error) : GMD_OK;
}

gmd_status gmd_fork_server_open(gmd_fork_server **server, const gmd_run_options *options,
                                gmd_error *error)
{
    *server = NULL;
    const gmd_subject_source source = session_source(options);
    gmd_status status = gmd_subject_check(&source, error);
    if (status != GMD_OK) {
        return status;
    }
    gmd_fork_server *n = calloc(1, sizeof *n);
    server_shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!n || shared == MAP_FAILED) {
        free(n);
        return gmd_fail(error, GMD_NO_MEMORY, "no memory to share with a child process");
    }
    shared->run.no_second_run = "many inputs are run here: gmd run of one makes the second run";
    n->options = options;
    shared->is_real = options->device.kind != GMD_DEVICE_SIM;
    n->shared = shared;
    n->channel = -1;
    n->workload = (gmd_workload){.name = "input", .kind = "trace", .trace = &n->input};
    child_set_up_shared(&shared->run, options, &n->workload);
    status = start(n, error);
    if (status == GMD_OK) {
        *server = n;
    } else {
        gmd_fork_server_close(n);
    }
    return status;
}

static gmd_status hand_over_names(server_shared *s, const gmd_trace *t, gmd_error *error)
{
    if (t->functions.count > FUNCTION_MAX || t->conditions.interleave.choice_count > CHOICE_MAX) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "a trace that is run many times has at most %d functions to fail and %d "
                        "choices of a thread",
                        FUNCTION_MAX, CHOICE_MAX);
    }
    s->function_count = t->functions.count;
    s->thread_count = t->threads.count;
    s->block_count = t->blocks.count;
    s->stream_count = t->streams.count;
    for (uint32_t i = 0; i < t->functions.count; i++) {
        const char *name = t->functions.items[i];
        snprintf(s->functions[i], sizeof s->functions[i], "%s", name ? name : "");
    }
    s->interleave = t->conditions.interleave;
    if (t->conditions.interleave.choice_count) {
        memcpy(s->choices, t->conditions.interleave.choices, t->conditions.interleave.choice_count);
    }
    return GMD_OK;
}

static gmd_status hand_over(gmd_fork_server *n, const gmd_trace *trace, bool logs, gmd_error *error)
{
    server_shared *s = n->shared;
    if (trace->count > GMD_FORK_SERVER_REQUEST_MAX) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "a trace that is run many times has at most %zu requests",
                        GMD_FORK_SERVER_REQUEST_MAX);
    }
    gmd_status status = hand_over_names(s, trace, error);
    if (status == GMD_OK && trace->count) {
        memcpy(s->requests, trace->requests, trace->count * sizeof *trace->requests);
    }
    s->request_count = trace->count;
    s->persistent.count = 0;
    s->logs = logs;
    call_log_clear(&s->log);
    n->input = *trace; /* borrowed: for messages about the end of this run */
    return status;
}

/* Has the fork server run what was handed over. */
static gmd_status give_order(gmd_fork_server *n, int *how, answer *end, gmd_error *error)
{
    char order = n->shared->persistent.count ? ORDER_PERSISTENT : ORDER_RUN;
    child_begin_run(&n->shared->run, &n->opening, GMD_STAGE_REQUESTS);
    atomic_store(&n->shared->child, 0);
    *end = write(n->channel, &order, 1) == 1 ? await(n, how) : GONE;
    if (*end == GONE || *how == -1) {
        return gmd_fail(error, GMD_FAILED, "the process that runs the inputs %s",
                        *end == GONE ? "is gone" : "could not fork");
    }
    return GMD_OK;
}

static gmd_status run(gmd_fork_server *n, const gmd_trace *trace, bool logs,
                      const gmd_outcome **outcome, gmd_error *error)
{
    int how = 0;
    answer end = ANSWERED;
    *outcome = &n->shared->run.outcome;
    if (n->is_dead) {
        return GMD_OK;
    }
    gmd_status status = hand_over(n, trace, logs, error);
    if (status == GMD_OK) {
        status = give_order(n, &how, &end, error);
    }
    if (status == GMD_OK) {
        judge_run(n, how, end);
    }
    return status;
}

static bool has_last_functions(const server_shared *s, const persistent_entry *last,
                               const gmd_names *names)
{
    bool are_equal = last->function_count == names->count;
    for (uint32_t i = 0; i < names->count && are_equal; i++) {
        const char *name = names->items[i] ? names->items[i] : "";
        are_equal = strcmp(s->functions[last->first_function + i], name) == 0;
    }
    return are_equal;
}

/* Mostly they are those of the input before. False: no room. */
static bool hand_over_functions(server_shared *s, const gmd_names *names, persistent_entry *input)
{
    size_t index = s->persistent.count;
    if (index && has_last_functions(s, &s->persistent.inputs[index - 1], names)) {
        input->first_function = s->persistent.inputs[index - 1].first_function;
        input->function_count = names->count;
        return true;
    }
    if (names->count > FUNCTION_MAX - s->function_count) {
        return false;
    }
    input->first_function = s->function_count;
    input->function_count = names->count;
    for (uint32_t i = 0; i < names->count; i++) {
        const char *name = names->items[i] ? names->items[i] : "";
        snprintf(s->functions[s->function_count++], sizeof s->functions[0], "%s", name);
    }
    return true;
}

bool gmd_fork_server_follow(gmd_fork_server *n, const gmd_run_options *given)
{
    n->given = n->shared->can_restart ? given : NULL;
    return n->given != NULL;
}

static bool has_own_header(const gmd_fork_server *n, const gmd_conditions *header)
{
    return gmd_conditions_same_device(&n->options->conditions, header);
}

bool gmd_fork_server_can_follow(const gmd_fork_server *n, const gmd_trace *trace)
{
    if (!n->given) {
        return false;
    }
    const gmd_conditions header =
        gmd_conditions_in_force(&trace->conditions, &n->given->conditions);
    return has_own_header(n, &header) ||
           (!header.schedule.choice_count &&
            (!header.conf || strlen(header.conf) < PERSISTENT_CONF_MAX));
}

static void hand_over_header(const gmd_fork_server *n, const gmd_trace *trace,
                             persistent_entry *input)
{
    if (!n->given) {
        return;
    }
    const gmd_conditions header =
        gmd_conditions_in_force(&trace->conditions, &n->given->conditions);
    input->has_header = !has_own_header(n, &header);
    if (input->has_header) {
        persistent_header *h = &input->header;
        h->conditions = header;
        snprintf(h->conf, sizeof h->conf, "%s", header.conf ? header.conf : "");
    }
}

/* As many as there is room for. */
static void hand_over_all(gmd_fork_server *n, const gmd_persistent_input *traces, size_t count)
{
    server_shared *s = n->shared;
    persistent_list *list = &s->persistent;
    size_t used = 0;
    list->count = 0;
    s->function_count = 0;
    s->request_count = 0;
    list->requests = list->faults_planted = list->faults_unfired = list->lapses = list->known = 0;
    list->has_stopped = false;
    list->expects_lapses = traces[0].expects_lapses;
    atomic_store(&list->passed, 0);
    for (size_t i = 0; i < count && i < PERSISTENT_MAX; i++) {
        const gmd_trace *t = &traces[i].trace;
        persistent_entry input = {.first = used,
                                  .count = t->count,
                                  .thread_count = t->threads.count,
                                  .block_count = t->blocks.count,
                                  .stream_count = t->streams.count,
                                  .interleave = t->conditions.interleave,
                                  .probed_refusal = traces[i].probed_refusal};
        if (t->count > GMD_FORK_SERVER_REQUEST_MAX - used ||
            t->conditions.interleave.choice_count ||
            !hand_over_functions(s, &t->functions, &input) ||
            (n->given && !gmd_fork_server_can_follow(n, t))) {
            break;
        }
        hand_over_header(n, t, &input);
        if (t->count) {
            memcpy(&s->requests[used], t->requests, t->count * sizeof *t->requests);
        }
        list->inputs[list->count++] = input;
        used += t->count;
    }
    s->logs = false;
    s->interleave = (gmd_schedule){0};
}

gmd_status gmd_fork_server_run_persistent(gmd_fork_server *n, const gmd_persistent_input *traces,
                                          size_t count, gmd_persistent_result *result,
                                          gmd_error *error)
{
    int how = 0;
    answer end = ANSWERED;
    *result = (gmd_persistent_result){.outcome = &n->shared->run.outcome, .is_suspect = n->is_dead};
    if (n->is_dead || !count) {
        return GMD_OK;
    }
    hand_over_all(n, traces, count);
    if (!n->shared->persistent.count) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "an input has more requests, or functions to fail, "
                        "than a process of many inputs takes");
    }
    gmd_status status = give_order(n, &how, &end, error);
    if (status != GMD_OK) {
        return status;
    }
    const persistent_list *list = &n->shared->persistent;
    size_t passed = atomic_load(&list->passed);
    size_t handed_over =
        gmd_min(list->count, count); /* memory that the allocator may have written */
    size_t last = passed < handed_over ? passed : handed_over ? handed_over - 1 : 0;
    n->input = traces[last].trace;
    judge_run(n, how, end);
    const gmd_outcome *o = result->outcome;
    bool shows_something = o->violation_count || o->verdict != GMD_PASS;
    result->passed = shows_something ? last : passed; /* a process may end badly after its last */
    result->is_suspect = shows_something || (passed < list->count && !list->has_stopped);
    result->states = list->states;
    result->requests = list->requests;
    result->fresh = list->fresh;
    result->lapses = list->lapses;
    result->known = list->known;
    result->faults_planted = list->faults_planted;
    result->faults_unfired = list->faults_unfired;
    return GMD_OK;
}

gmd_status gmd_fork_server_run(gmd_fork_server *server, const gmd_trace *trace,
                               const gmd_outcome **outcome, gmd_error *error)
{
    return run(server, trace, false, outcome, error);
}

gmd_status gmd_fork_server_log(gmd_fork_server *server, const gmd_trace *trace,
                               const gmd_outcome **outcome, const gmd_logged_call **calls,
                               size_t *call_count, bool *is_complete, gmd_error *error)
{
    gmd_status status = run(server, trace, true, outcome, error);
    const call_log *log = &server->shared->log;
    *calls = log->calls;
    *call_count = log->count < GMD_LOGGED_CALL_MAX ? log->count : GMD_LOGGED_CALL_MAX;
    *is_complete = !log->is_full;
    return status;
}

void gmd_fork_server_close(gmd_fork_server *server)
{
    if (!server) {
        return;
    }
    int how;
    if (server->process > 0) {
        bury(server, &how);
    } else if (server->channel >= 0) {
        close(server->channel);
    }
    munmap(server->shared, sizeof *server->shared);
    free(server);
}
