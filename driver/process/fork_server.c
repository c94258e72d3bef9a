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
#include "left_behind.h"
#include "persistent.h"
#include "watch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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
#define NAMED_MAX    26 /* blocks of a case that the minimiser names */

typedef char block_name[GMD_BLOCK_NAME];

#define ORDER_RUN        'r'
#define ORDER_PERSISTENT 's'
#define ORDER_LEAVE      'l' /* to a process in persistent mode */
#define INPUTS_A_PROCESS 4096

#define RESTARTS_MAX   4   /* of the fork server, one after the other, without an answer */
#define ANSWER_SECONDS 5.0 /* that it has to tell of a run which was ended */
#define SILENT_SECONDS 1.0 /* likewise, where it was stopped, or the run has ended by itself */

/* What the processes share. The input lies apart from the outcome, which the allocator's process
 * writes. The allocator may write anywhere here: the parent keeps to itself which processes there
 * are and how much it has handed over, and takes over nothing that it has not checked (taken.h). */
typedef struct server_shared {
    shared_run run;
    bool logs;
    _Atomic int
        can_restart; /* the allocator exports gmd_restart; the parent has it once it is open */
    size_t request_count;
    uint32_t function_count, thread_count, block_count, stream_count;
    char functions[FUNCTION_MAX][64];
    block_name block_names[NAMED_MAX]; /* "": none; only where there are no more blocks */
    gmd_schedule interleave;
    uint8_t choices[CHOICE_MAX];
    gmd_request requests[GMD_FORK_SERVER_REQUEST_MAX];
    persistent_list persistent;
    call_log log;
} server_shared;

/* What the fork server, or a child of it in persistent mode, tells the parent over the socket. */
typedef enum news_kind {
    NEWS_READY,  /* as the fork server is once it has opened its session */
    NEWS_FORKED, /* `value`: the process that makes the run */
    NEWS_ENDED,  /* it has ended: `value` as waitpid gives it */
    NEWS_PASSED, /* it is in persistent mode, has found nothing, and waits for another order */
    NEWS_FAILED, /* it could not be forked */
} news_kind;

typedef struct news {
    int kind, value; /* news_kind */
    int left_behind; /* ENDED: processes of the run that its end did not end */
} news;

struct gmd_fork_server {
    gmd_run_options options;
    const gmd_run_options *given; /* for what inputs' headers do not state; NULL: not looked at */
    server_shared *shared;
    pid_t process;
    pid_t child;      /* of that process, which makes the run under way; 0: none is known */
    bool child_waits; /* in persistent mode: it carries out the next order, or leaves */
    int channel;
    own_children own;      /* of this process, when the fork server was started */
    bool can_restart;      /* the allocator exports gmd_restart */
    bool is_dead;          /* nothing can be run: the outcome tells why */
    unsigned fruitless;    /* restarts since it last answered */
    double deadline_s;     /* gmd_fork_server_set_deadline */
    double silent_since_s; /* it can answer, or cannot any more; 0: it need not */
    gmd_fork_server_troubles troubles;
    struct {
        uint32_t fresh[PERSISTENT_MAX];
        uint64_t states[PERSISTENT_MAX];
    } taken_list;           /* of the latest inputs in persistent mode */
    taken_run taken;        /* of the latest run */
    gmd_logged_call *calls; /* likewise, with a log */
    gmd_outcome opening;    /* the outcome before the first request, which each run begins with */
    gmd_workload workload;  /* as the parent sees it */
    gmd_trace input;
};

/* --- the run, in a fork of the fork server --------------------------------------------------- */

/* The input as a trace. Requests and functions are the shared ones; all else goes without names,
 * but for the blocks of a short case (name_blocks). */
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

typedef struct named_blocks {
    block_name names[NAMED_MAX];
    char *items[NAMED_MAX];
} named_blocks;

/* For sentences about them. They are copied: the allocator may write over what is shared. */
static void name_blocks(const server_shared *shared, gmd_trace *trace, named_blocks *own)
{
    if (shared->block_count > NAMED_MAX) {
        return;
    }
    for (uint32_t i = 0; i < shared->block_count; i++) {
        snprintf(own->names[i], sizeof own->names[i], "%s", shared->block_names[i]);
        own->items[i] = *own->names[i] ? own->names[i] : NULL;
    }
    trace->blocks.items = own->items;
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
    bool is_real = session->options->device.kind != GMD_DEVICE_SIM;
    list->is_fresh = *inputs_so_far == 0;
    persistent_play_all(session, opening, trace, shared->requests, list);
    *inputs_so_far += list->count;
    return (shared->can_restart || is_real) && !list->has_stopped &&
           atomic_load(&list->passed) == list->count && *inputs_so_far < INPUTS_A_PROCESS &&
           !left_behind_is_any(); /* the fork server ends them with this process */
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

static bool send_news(int channel, const news *item)
{
    return send(channel, item, sizeof *item, MSG_NOSIGNAL) == (ssize_t)sizeof *item;
}

static bool tell(int channel, news_kind kind, int value)
{
    return send_news(channel, &(news){.kind = (int)kind, .value = value});
}

/* Returns with another order that this process can carry out. */
static void await_order(server_shared *shared, int channel)
{
    char order = 0;
    atomic_store(&shared->run.is_finished, 1);
    if (!tell(channel, NEWS_PASSED, 0) || read(channel, &order, 1) != 1 ||
        order != ORDER_PERSISTENT) {
        _exit(EXIT_SUCCESS);
    }
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
                                                   bool is_persistent, int channel)
{
    char *functions[FUNCTION_MAX];
    char **nameless = NULL;
    named_blocks blocks;
    uint64_t inputs = 0;
    bool is_real = session->options->device.kind != GMD_DEVICE_SIM;
    child_prepare();
    left_behind_take_in();
    if (is_real && !open_late(session, shared)) {
        atomic_store(&shared->run.is_finished, 1);
        exit(EXIT_SUCCESS);
    }
    if (is_real) {
        child_keep_opening(opening, &shared->run);
    }
    nameless = name_nothing(shared, nameless);
    view_input(shared, trace, functions, nameless);
    while (is_persistent && run_persistent(session, opening, shared, trace, &inputs)) {
        await_order(shared, channel);
        nameless = name_nothing(shared, nameless);
        view_input(shared, trace, functions, nameless);
    }
    if (!is_persistent) {
        name_blocks(shared, trace, &blocks);
        play_input(session, shared, trace);
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
    bool goes_on = true;
    own_children own = left_behind_note(); /* what the library started as it was loaded */
    while (goes_on && read(channel, &order, 1) == 1) {
        int how = 0;
        pid_t child = fork();
        if (child == 0) {
            be_the_child(session, opening, shared, trace, order == ORDER_PERSISTENT, channel);
        }
        GMD_LOG(PROCESS, "the fork server forked %ld", (long)child);
        if (child < 0) {
            goes_on = tell(channel, NEWS_FAILED, errno);
            continue;
        }
        goes_on = tell(channel, NEWS_FORKED, child);
        while (waitpid(child, &how, 0) < 0 && errno == EINTR) {
        }
        kill(-child, SIGKILL); /* helpers that the allocator may have forked */
        GMD_LOG(PROCESS, "%ld ended with wait status 0x%x", (long)child, (unsigned)how);
        const news end = {NEWS_ENDED, how, (int)gmd_min(left_behind_end(&own, child), INT_MAX)};
        goes_on = goes_on && send_news(channel, &end);
    }
    left_behind_free(&own);
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
    bool is_real = options->device.kind != GMD_DEVICE_SIM;
    child_prepare();
    left_behind_take_in();
    be_silent();
    persistent_keep_memory();
    if (is_real) { /* fractions are of the memory that an input states */
        trace.conditions.capacity_bytes = options->conditions.capacity_bytes;
    }
    gmd_status status =
        is_real ? GMD_OK : session_open(&session, options, &workload, &shared->run, &error);
    if (status != GMD_OK) {
        outcome_error(&shared->run.outcome, status, &error);
    }
    atomic_store(&shared->run.stage, GMD_STAGE_REQUESTS);
    session.muting.is_needless = true;
    shared->can_restart = !is_real && session.subject.restart != NULL;
    child_keep_opening(opening, &shared->run);
    if (tell(channel, NEWS_READY, 0) && status == GMD_OK) {
        serve(&session, opening, shared, &trace, channel);
    }
    _exit(EXIT_SUCCESS);
}

/* --- the parent -------------------------------------------------------------------------- */

typedef enum answer { ANSWERED, HUNG, OUT_OF_TIME, GONE } answer;

typedef struct process_state {
    char letter; /* as in /proc/PID/stat; '\0': there is none */
    int parent;
} process_state;

static process_state state_of(pid_t process)
{
    char path[64], line[512];
    process_state state = {.letter = '\0'};
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)process);
    FILE *stat = fopen(path, "re");
    size_t length = stat ? fread(line, 1, sizeof line - 1, stat) : 0;
    line[length] = '\0';
    const char *behind = strrchr(line, ')'); /* a process may be called anything */
    if (behind && strlen(behind) > strlen(") R ")) {
        state.letter = behind[2];
        state.parent = (int)strtol(behind + 4, NULL, 10);
    }
    if (stat) {
        fclose(stat);
    }
    return state;
}

/* False: whoever is to be killed is no child of the fork server any more. */
static bool is_child_of(pid_t process, pid_t parent)
{
    process_state state = state_of(process);
    return state.letter && state.parent == parent;
}

static bool has_ended(const process_state *state)
{
    return !state->letter || state->letter == 'Z' || state->letter == 'X';
}

/* The fork server has ended, whoever else may hold its end of the channel; or for a while it was
 * stopped, or said nothing of a run that had ended. */
static bool is_lost(void *context)
{
    gmd_fork_server *n = context;
    process_state server = state_of(n->process);
    process_state child = n->child > 1 ? state_of(n->child) : (process_state){.letter = 'R'};
    if (has_ended(&server)) {
        return true;
    }
    if (server.letter != 'T' && !has_ended(&child)) {
        n->silent_since_s = 0;
        return false;
    }
    double now = gmd_clock_s();
    n->silent_since_s = n->silent_since_s > 0 ? n->silent_since_s : now;
    return now - n->silent_since_s >= SILENT_SECONDS;
}

/* The run's process; the fork server, whose children die with it, where that cannot be. */
static void kill_run(const gmd_fork_server *n)
{
    bool is_there = n->child > 1 && is_child_of(n->child, n->process);
    pid_t process = is_there ? n->child : n->process;
    GMD_LOG(PROCESS, "kills %ld: no answer within %g s", (long)process,
            n->options.process.call_budget_s);
    kill(process, SIGKILL);
}

/* Waits until there are news, or the fork server is GONE; ends a run that takes too long. */
static answer await_news(gmd_fork_server *n)
{
    process_watch watch = {.descriptor = n->channel,
                           .shared = &n->shared->run,
                           .budget_s = n->options.process.call_budget_s,
                           .loading_budget_s = n->options.process.load_budget_s,
                           .deadline_s = n->deadline_s,
                           .is_interrupted = n->options.process.is_interrupted,
                           .is_lost = is_lost,
                           .context = n};
    answer end = ANSWERED;
    n->silent_since_s = 0;
    for (;;) {
        watch_end seen = watch_process(&watch);
        if (seen == WATCH_SPOKE) {
            return end;
        }
        if (seen == WATCH_LOST || end != ANSWERED) { /* it does not tell of the killed run */
            GMD_LOG(PROCESS, "the fork server %ld is lost", (long)n->process);
            kill(n->process, SIGKILL);
            return end == OUT_OF_TIME ? OUT_OF_TIME : GONE;
        }
        end = seen == WATCH_OUT_OF_TIME ? OUT_OF_TIME : HUNG;
        kill_run(n);
        watch.budget_s = watch.loading_budget_s = ANSWER_SECONDS;
        watch.deadline_s = 0;
        watch.is_interrupted = NULL;
    }
}

/* Waits until the fork server says how the run (or the opening) ended. */
static answer await(gmd_fork_server *n, news *last)
{
    answer end = ANSWERED;
    do {
        answer now = await_news(n);
        end = now == ANSWERED ? end : now;
        if (now == GONE || recv(n->channel, last, sizeof *last, MSG_DONTWAIT) != sizeof *last) {
            return end == OUT_OF_TIME ? OUT_OF_TIME : GONE;
        }
        n->child = last->kind == NEWS_FORKED ? last->value : n->child;
    } while (last->kind == NEWS_FORKED);
    n->child_waits = last->kind == NEWS_PASSED;
    n->child = n->child_waits ? n->child : 0;
    n->fruitless = 0;
    n->troubles.left_behind += last->kind == NEWS_ENDED ? (unsigned)last->left_behind : 0;
    return end;
}

static void bury(gmd_fork_server *n, int *how)
{
    close(n->channel);
    n->channel = -1;
    n->child = 0;
    n->child_waits = false;
    kill(-n->process, SIGKILL);
    while (waitpid(n->process, how, 0) < 0 && errno == EINTR) {
    }
    GMD_LOG(PROCESS, "the fork server %ld ended with wait status 0x%x", (long)n->process,
            (unsigned)*how);
    left_behind_end(&n->own, n->process); /* the run that was under way is no news */
    left_behind_free(&n->own);
    n->process = 0;
}

static void judge_run(gmd_fork_server *n, int how, answer end)
{
    const child_end child = {
        .is_hung = end == HUNG, .is_cut_off = end == OUT_OF_TIME, .wait_status = how};
    child_judge_end(&n->options, &n->workload, &n->shared->run, &n->opening, &child, &n->taken);
}

/* The allocator crashed or hung while it was loaded. */
static void note_still_birth(gmd_fork_server *n, int how, answer end)
{
    atomic_store(&n->shared->run.stage, GMD_STAGE_LOADING);
    atomic_store(&n->shared->run.is_finished, 0);
    judge_run(n, how, end);
    n->is_dead = true;
}

static gmd_status fork_server(gmd_fork_server *n, gmd_error *error)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        return gmd_fail(error, GMD_FAILED, "socketpair: %s", strerror(errno));
    }
    n->own = left_behind_note();
    fflush(NULL); /* or the child would print what is buffered here once more */
    n->process = fork();
    int reason = errno;
    if (n->process == 0) {
        close(ends[0]);
        live(&n->options, &n->opening, n->shared, ends[1]);
    }
    close(ends[1]);
    n->channel = ends[0];
    GMD_LOG(PROCESS, "forked the fork server %ld", (long)n->process);
    if (n->process < 0) {
        n->process = 0;
        left_behind_free(&n->own);
        return gmd_fail(error, GMD_FAILED, "fork: %s", strerror(reason));
    }
    return GMD_OK;
}

/* Somebody else has ended it: the allocator would have to aim at its own process. */
static bool was_shot(int how, answer end)
{
    return end == GONE && WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL;
}

static gmd_status start(gmd_fork_server *n, gmd_error *error)
{
    gmd_status status = fork_server(n, error);
    if (status != GMD_OK) {
        return status;
    }
    news last;
    int how = 0;
    answer end = await(n, &last);
    if (end != ANSWERED && gmd_options_interrupted(&n->options)) {
        bury(n, &how);
        return gmd_fail(error, GMD_INTERRUPTED, "interrupted");
    }
    if (end == ANSWERED) { /* what the opening shows, each run shows */
        child_judge_end(&n->options, &n->workload, &n->shared->run, NULL, NULL, &n->taken);
        n->opening = n->taken.outcome;
        n->can_restart = n->shared->can_restart != 0;
    } else {
        bury(n, &how);
        if (was_shot(how, end) && n->fruitless < RESTARTS_MAX) {
            n->fruitless++;
            n->troubles.restarts++;
            child_begin_run(&n->shared->run, NULL, GMD_STAGE_LOADING);
            return start(n, error);
        }
        note_still_birth(n, how, end);
    }
    const gmd_outcome *o = &n->taken.outcome;
    return o->verdict == GMD_ERROR ? gmd_fail(error, o->error_status, "%s", o->error) : GMD_OK;
}

/* Another in place of one that is gone. */
static gmd_status start_another(gmd_fork_server *n, gmd_error *error)
{
    int how = 0;
    bury(n, &how);
    if (n->fruitless >= RESTARTS_MAX) {
        return gmd_fail(error, GMD_FAILED,
                        "the fork server, which runs the inputs, ended %u times in a row without "
                        "an answer, the last time with %s %d",
                        n->fruitless + 1, WIFSIGNALED(how) ? "signal" : "status",
                        WIFSIGNALED(how) ? WTERMSIG(how) : WEXITSTATUS(how));
    }
    unsigned fruitless = n->fruitless + 1;
    n->troubles.restarts++;
    child_set_up_shared(&n->shared->run, &n->options, &n->workload);
    child_begin_run(&n->shared->run, NULL, GMD_STAGE_LOADING);
    n->fruitless = fruitless;
    gmd_status status = start(n, error);
    n->fruitless = fruitless; /* what counts is an answer to an order */
    return status;
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
    n->options = *options;
    n->options.process.no_second_run =
        "many inputs are run here: gmd run of one makes the second run";
    n->shared = shared;
    n->channel = -1;
    left_behind_take_in();
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
    for (uint32_t i = 0; i < t->blocks.count && i < NAMED_MAX; i++) {
        const char *name = t->blocks.items[i];
        snprintf(s->block_names[i], sizeof s->block_names[i], "%s", name ? name : "");
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

static answer send_order(gmd_fork_server *n, char order, news *last)
{
    return send(n->channel, &order, 1, MSG_NOSIGNAL) == 1 ? await(n, last) : GONE;
}

/* How an order was carried out. */
typedef struct order_end {
    answer end;
    int how; /* ENDED: as waitpid gives it */
} order_end;

/* Has the fork server run what was handed over. GONE: it is, and nothing was learnt. */
static gmd_status give_order(gmd_fork_server *n, char order, order_end *done, gmd_error *error)
{
    news last = {.kind = NEWS_FAILED};
    answer left = ANSWERED;
    if (n->child_waits && order != ORDER_PERSISTENT) {
        left = send_order(n, ORDER_LEAVE, &last);
    }
    child_begin_run(&n->shared->run, &n->opening, GMD_STAGE_REQUESTS);
    done->end = left == GONE || left == OUT_OF_TIME ? left : send_order(n, order, &last);
    done->how = last.kind == NEWS_ENDED ? last.value : 0;
    if (done->end != ANSWERED && gmd_options_interrupted(&n->options)) {
        return gmd_fail(error, GMD_INTERRUPTED, "interrupted"); /* it was killed, and no hang */
    }
    if (done->end == ANSWERED && last.kind == NEWS_FAILED) {
        return gmd_fail(error, GMD_FAILED, "a process for a run cannot be forked: %s",
                        strerror(last.value));
    }
    return GMD_OK;
}

static bool state_is_gone(const gmd_fork_server *n)
{
    process_state state = state_of(n->process);
    return n->process > 0 && has_ended(&state);
}

/* What was handed over is handed over anew where the fork server had to be replaced. */
typedef gmd_status hand_over_fn(gmd_fork_server *n, void *inputs, gmd_error *error);

static gmd_status carry_out(gmd_fork_server *n, char order, hand_over_fn *give, void *inputs,
                            order_end *done, gmd_error *error)
{
    gmd_status status = GMD_OK;
    do {
        if (n->channel < 0) { /* the deadline ended it together with its run */
            status = start(n, error);
        }
        status = status == GMD_OK && !n->is_dead ? give(n, inputs, error) : status;
        status = status == GMD_OK && !n->is_dead ? give_order(n, order, done, error) : status;
        if (status == GMD_OK && !n->is_dead && done->end == GONE) {
            status = start_another(n, error);
        }
    } while (status == GMD_OK && !n->is_dead && done->end == GONE);
    if (done->end == OUT_OF_TIME && state_is_gone(n)) {
        bury(n, &done->how);
    }
    return status;
}

typedef struct single_input {
    const gmd_trace *trace;
    bool logs;
} single_input;

static gmd_status hand_over_single(gmd_fork_server *n, void *inputs, gmd_error *error)
{
    const single_input *input = inputs;
    return hand_over(n, input->trace, input->logs, error);
}

static gmd_status run(gmd_fork_server *n, const gmd_trace *trace, bool logs,
                      const gmd_outcome **outcome, gmd_error *error)
{
    order_end done = {.end = ANSWERED};
    single_input input = {trace, logs};
    *outcome = &n->taken.outcome;
    if (n->is_dead) {
        return GMD_OK;
    }
    gmd_status status = carry_out(n, ORDER_RUN, hand_over_single, &input, &done, error);
    if (status == GMD_OK && !n->is_dead) {
        judge_run(n, done.how, done.end);
    }
    return status;
}

/* The functions of all inputs that are handed over together. */
typedef struct function_table {
    uint32_t count;         /* in shared memory */
    uint32_t first;         /* of the latest input */
    const gmd_names *names; /* its own; NULL: there is none yet */
} function_table;

static bool are_same_names(const gmd_names *a, const gmd_names *b)
{
    bool are_equal = a->count == b->count;
    for (uint32_t i = 0; i < b->count && are_equal; i++) {
        const char *x = a->items[i] ? a->items[i] : "", *y = b->items[i] ? b->items[i] : "";
        are_equal = strcmp(x, y) == 0;
    }
    return are_equal;
}

/* Mostly they are those of the input before. False: no room. */
static bool hand_over_functions(server_shared *s, function_table *table, const gmd_names *names)
{
    if (table->names && are_same_names(table->names, names)) {
        return true;
    }
    if (names->count > FUNCTION_MAX - table->count) {
        return false;
    }
    table->names = names;
    table->first = table->count;
    for (uint32_t i = 0; i < names->count; i++) {
        const char *name = names->items[i] ? names->items[i] : "";
        snprintf(s->functions[table->count++], sizeof s->functions[0], "%s", name);
    }
    return true;
}

bool gmd_fork_server_follow(gmd_fork_server *n, const gmd_run_options *given)
{
    n->given = n->can_restart ? given : NULL;
    return n->given != NULL;
}

static bool has_own_header(const gmd_fork_server *n, const gmd_conditions *header)
{
    return gmd_conditions_same_device(&n->options.conditions, header);
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

static bool is_room_for(const gmd_fork_server *n, const gmd_trace *t, size_t used)
{
    return t->count <= GMD_FORK_SERVER_REQUEST_MAX - used &&
           !t->conditions.interleave.choice_count &&
           (!n->given || gmd_fork_server_can_follow(n, t));
}

/* `first`: of its requests among those of all inputs. */
static persistent_entry make_entry(const gmd_fork_server *n, const gmd_persistent_input *given,
                                   size_t first, const function_table *functions)
{
    const gmd_trace *t = &given->trace;
    persistent_entry input = {.first = first,
                              .count = t->count,
                              .thread_count = t->threads.count,
                              .block_count = t->blocks.count,
                              .stream_count = t->streams.count,
                              .first_function = functions->first,
                              .function_count = t->functions.count,
                              .interleave = t->conditions.interleave,
                              .probed_refusal = given->probed_refusal};
    hand_over_header(n, t, &input);
    return input;
}

/* As many as there is room for; how many. */
static size_t hand_over_all(gmd_fork_server *n, const gmd_persistent_input *traces, size_t count)
{
    server_shared *s = n->shared;
    persistent_list *list = &s->persistent;
    function_table functions = {.count = 0};
    size_t used = 0, handed_over = 0;
    list->requests = list->faults_planted = list->faults_unfired = list->lapses = list->known = 0;
    memset(list->costs, 0, sizeof list->costs);
    list->has_stopped = false;
    list->expects_lapses = traces[0].expects_lapses;
    atomic_store(&list->passed, 0);
    while (handed_over < count && handed_over < PERSISTENT_MAX) {
        const gmd_persistent_input *given = &traces[handed_over];
        const gmd_trace *t = &given->trace;
        if (!is_room_for(n, t, used) || !hand_over_functions(s, &functions, &t->functions)) {
            break;
        }
        list->inputs[handed_over++] = make_entry(n, given, used, &functions);
        if (t->count) {
            memcpy(&s->requests[used], t->requests, t->count * sizeof *t->requests);
        }
        used += t->count;
    }
    list->count = handed_over;
    s->function_count = functions.count;
    s->request_count = 0;
    s->logs = false;
    s->interleave = (gmd_schedule){0};
    return handed_over;
}

/* The outcome is of one input; what its oracles cost is made that of all. The allocator may have
 * written into the list. */
static void take_costs(gmd_outcome *o, const persistent_list *list, bool is_of_last_passed)
{
    for (uint32_t i = 0; i < o->oracle_count; i++) {
        gmd_oracle_result *result = &o->oracles[i];
        double seconds = list->costs[i].seconds;
        result->asked = (is_of_last_passed ? 0 : result->asked) + list->costs[i].asked;
        result->seconds = (is_of_last_passed ? 0 : result->seconds) +
                          (seconds >= 0 && seconds < 1e9 ? seconds : 0);
    }
}

/* What the list says of the inputs that were handed over. */
static void take_list(gmd_fork_server *n, size_t handed_over, size_t passed,
                      gmd_persistent_result *result)
{
    const persistent_list *list = &n->shared->persistent;
    const gmd_outcome *o = result->outcome;
    bool shows_something = o->violation_count || (o->verdict != GMD_PASS && !o->is_cut_off);
    size_t last = passed < handed_over ? passed : handed_over - 1;
    memcpy(n->taken_list.fresh, list->fresh, passed * sizeof *list->fresh);
    memcpy(n->taken_list.states, list->states, passed * sizeof *list->states);
    result->passed = shows_something ? last : passed; /* a process may end badly after its last */
    result->is_suspect =
        shows_something || (passed < handed_over && !list->has_stopped && !o->is_cut_off);
    result->states = n->taken_list.states;
    result->requests = list->requests;
    result->fresh = n->taken_list.fresh;
    result->lapses = list->lapses;
    result->known = list->known;
    result->faults_planted = list->faults_planted;
    result->faults_unfired = list->faults_unfired;
    take_costs(&n->taken.outcome, list, passed == handed_over);
}

typedef struct many_inputs {
    const gmd_persistent_input *traces;
    size_t count, handed_over;
} many_inputs;

static gmd_status hand_over_many(gmd_fork_server *n, void *inputs, gmd_error *error)
{
    many_inputs *many = inputs;
    many->handed_over = hand_over_all(n, many->traces, many->count);
    return many->handed_over ? GMD_OK
                             : gmd_fail(error, GMD_BAD_INPUT,
                                        "an input has more requests, or functions to fail, "
                                        "than a process of many inputs takes");
}

gmd_status gmd_fork_server_run_persistent(gmd_fork_server *server,
                                          const gmd_persistent_input *traces, size_t count,
                                          gmd_persistent_result *result, gmd_error *error)
{
    order_end done = {.end = ANSWERED};
    many_inputs inputs = {.traces = traces, .count = count};
    *result =
        (gmd_persistent_result){.outcome = &server->taken.outcome, .is_suspect = server->is_dead};
    if (server->is_dead || !count) {
        return GMD_OK;
    }
    gmd_status status = carry_out(server, ORDER_PERSISTENT, hand_over_many, &inputs, &done, error);
    if (status != GMD_OK || server->is_dead) {
        result->is_suspect = server->is_dead;
        return status;
    }
    size_t handed_over = inputs.handed_over;
    size_t passed = gmd_min(atomic_load(&server->shared->persistent.passed), handed_over);
    server->input = traces[passed < handed_over ? passed : handed_over - 1].trace;
    judge_run(server, done.how, done.end);
    take_list(server, handed_over, passed, result);
    return GMD_OK;
}

gmd_status gmd_fork_server_run(gmd_fork_server *server, const gmd_trace *trace,
                               const gmd_outcome **outcome, gmd_error *error)
{
    return run(server, trace, false, outcome, error);
}

/* Copied, since the allocator may have written there; a call that cannot be is left out. */
static gmd_status take_calls(gmd_fork_server *n, size_t *count, bool *is_complete, gmd_error *error)
{
    const call_log *log = &n->shared->log;
    size_t logged = gmd_min(log->count, GMD_LOGGED_CALL_MAX);
    gmd_logged_call *calls = realloc(n->calls, (logged + 1) * sizeof *calls);
    *count = 0;
    if (!calls) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for %zu calls", logged);
    }
    n->calls = calls;
    for (size_t i = 0; i < logged; i++) {
        calls[*count] = log->calls[i];
        *count += call_log_is_sound(&calls[*count]);
    }
    *is_complete = !log->is_full && *count == logged;
    return GMD_OK;
}

gmd_status gmd_fork_server_log(gmd_fork_server *server, const gmd_trace *trace,
                               const gmd_outcome **outcome, const gmd_logged_call **calls,
                               size_t *call_count, bool *is_complete, gmd_error *error)
{
    gmd_status status = run(server, trace, true, outcome, error);
    *call_count = 0;
    if (status == GMD_OK) {
        status = take_calls(server, call_count, is_complete, error);
    }
    *calls = server->calls;
    return status;
}

void gmd_fork_server_set_deadline(gmd_fork_server *server, double deadline_s)
{
    server->deadline_s = deadline_s;
}

gmd_fork_server_troubles gmd_fork_server_take_troubles(gmd_fork_server *server)
{
    gmd_fork_server_troubles troubles = server->troubles;
    server->troubles = (gmd_fork_server_troubles){0};
    return troubles;
}

void gmd_fork_server_end(gmd_fork_server *server)
{
    int how;
    if (server->process > 0) {
        bury(server, &how);
    } else if (server->channel >= 0) {
        close(server->channel);
        server->channel = -1;
    }
}

void gmd_fork_server_close(gmd_fork_server *server)
{
    if (!server) {
        return;
    }
    gmd_fork_server_end(server);
    munmap(server->shared, sizeof *server->shared);
    free(server->calls);
    free(server);
}
