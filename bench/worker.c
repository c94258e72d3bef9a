/* worker.c - gmd-bench-worker: one allocator in a process of its own, measured round by round as
 * `gmd bench` asks (protocol.h). A program apart, because the program gmd puts functions of its own
 * in front of the C library's locks, and what is measured would go through them. */
#define _GNU_SOURCE /* sched_setaffinity, RUSAGE_THREAD */
#include "clock.h"
#include "cores.h"
#include "crew.h"
#include "instructions.h"
#include "loops.h"
#include "protocol.h"
#include "subject_open.h"

#include "gmd_min.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define WARM_UP_NS     50000000u   /* until caches, tables and free lists have their size */
#define WARM_UP_MAX_NS 2000000000u /* for loops that need a number of operations first */
#define WARM_UP_PART   8 /* an untimed part of each round, as another process had the core before */

#define COUNTED_OPERATIONS 8     /* operations whose instructions are counted */
#define COUNTED_WARM_UP    1000  /* operations before them: a number, which is always the same */
#define COUNTED_STEPS_MAX  60000 /* steps for all of them; more is slow enough to tell */

#define HISTORY_ENTRIES  65536
#define EVENTS_OF_A_PAIR 3 /* alloc, free requested, free completed */

typedef struct worker {
    bench_setup setup;
    bench_calls calls;
    const benchmark *of; /* NULL: none is prepared */
    bench_loop loop;
    bench_crew crew;
    uint64_t round_ns, round_count; /* how long a round is to be, and the operations of one */
} worker;

/* --- preparing --------------------------------------------------------------------------- */

/* How many operations must have been done before they repeat: each block of a churn was replaced
 * several times. */
static uint64_t least_warm_up(const benchmark *of)
{
    return of->kind == BENCH_CHURN ? 8 * (uint64_t)of->live : 1;
}

/* Also finds out how many operations make a round. */
static gmd_status warm_up(worker *w, gmd_error *error)
{
    uint64_t done = 0, count = 1, start = bench_now_ns(), each_start, elapsed;
    do {
        each_start = bench_now_ns();
        gmd_status status = bench_loop_run(&w->loop, count, error);
        if (status != GMD_OK) {
            return status;
        }
        uint64_t now = bench_now_ns();
        w->round_count = count * w->round_ns / (now - each_start + 1) + 1;
        done += count;
        elapsed = now - start;
        count = now - each_start < w->round_ns / 4 ? count * 2 : count;
    } while (elapsed < WARM_UP_NS || (done < least_warm_up(w->of) && elapsed < WARM_UP_MAX_NS));
    return GMD_OK;
}

static void finish(worker *w)
{
    if (!w->of) {
        return;
    }
    if (w->of->kind == BENCH_THREADS) {
        bench_crew_close(&w->crew);
    }
    bench_loop_close(&w->loop);
    w->of = NULL;
}

static gmd_status open_loop(worker *w, const benchmark *of, uint64_t seed, gmd_error *error)
{
    gmd_status status = bench_loop_open(&w->loop, &w->calls, of, seed, error);
    if (status == GMD_OK && of->kind == BENCH_THREADS) {
        status =
            bench_crew_open(&w->crew, &w->calls, of, w->setup.cores, w->setup.core_count, error);
    }
    if (status != GMD_OK) {
        bench_loop_close(&w->loop);
        return status;
    }
    w->of = of;
    if (of->kind != BENCH_FIRST && of->kind != BENCH_THREADS) {
        status = warm_up(w, error);
    }
    return status;
}

static void prepare(worker *w, const bench_request *request, bench_reply *reply)
{
    const benchmark *of = &bench_catalogue[request->index];
    gmd_error error = {""};
    w->round_ns = request->round_ns;
    w->round_count = 1;
    const char *lack = bench_loop_lacks(&w->calls, of);
    if (lack) {
        reply->answer = BENCH_SKIPPED;
        snprintf(reply->text, sizeof reply->text, "%s", lack);
    } else if (open_loop(w, of, request->seed, &error) != GMD_OK) {
        finish(w);
        reply->answer = BENCH_FAILED;
        memcpy(reply->text, error.text, sizeof reply->text);
    }
}

/* --- a round ----------------------------------------------------------------------------- */

static gmd_status time_loop(worker *w, uint64_t count, double *ns, bool *is_disturbed,
                            gmd_error *error)
{
    gmd_status status = GMD_OK;
    if (w->of->kind != BENCH_FIRST) {
        status = bench_loop_run(&w->loop, count / WARM_UP_PART, error);
    }
    if (status != GMD_OK) {
        return status;
    }
    long preemptions = bench_preemptions();
    uint64_t start = bench_now_ns();
    status = bench_loop_run(&w->loop, count, error);
    *ns = (double)(bench_now_ns() - start) / (double)count;
    *is_disturbed = *is_disturbed || bench_preemptions() != preemptions;
    return status;
}

static gmd_status keep_history(worker *w, uint64_t entries, gmd_error *error)
{
    char message[512] = "";
    if (w->calls.record_history(entries, 0, message, sizeof message) == 0) {
        return GMD_OK;
    }
    message[sizeof message - 1] = '\0';
    return gmd_fail(error, GMD_FAILED, "gmd_record_history was refused: %s", message);
}

/* Runs the same pairs without the history and with it. The history is filled first: events that use
 * its memory for the first time cost more. */
static gmd_status time_history(worker *w, double *ns, bool *is_disturbed, gmd_error *error)
{
    double without = 0, with = 0;
    gmd_status status = time_loop(w, w->round_count / 2 + 1, &without, is_disturbed, error);
    if (status == GMD_OK) {
        status = keep_history(w, HISTORY_ENTRIES, error);
    }
    if (status != GMD_OK) {
        return status;
    }
    status = bench_loop_run(&w->loop, HISTORY_ENTRIES / EVENTS_OF_A_PAIR + 1, error);
    if (status == GMD_OK) {
        status = time_loop(w, w->round_count / 2 + 1, &with, is_disturbed, error);
    }
    gmd_status off = keep_history(w, 0, error);
    *ns = (with - without) / EVENTS_OF_A_PAIR;
    return status == GMD_OK ? off : status;
}

static void measure(worker *w, bench_reply *reply)
{
    gmd_error error = {""};
    gmd_status status;
    uint64_t start = bench_now_ns();
    if (!w->of) {
        status = gmd_fail(&error, GMD_FAILED, "no benchmark is prepared");
    } else if (w->of->kind == BENCH_THREADS) {
        status = bench_crew_measure(&w->crew, w->round_ns, &reply->ns_per_op, &reply->is_disturbed,
                                    &error);
    } else if (w->of->kind == BENCH_HISTORY) {
        status = time_history(w, &reply->ns_per_op, &reply->is_disturbed, &error);
    } else {
        status = time_loop(w, w->round_count, &reply->ns_per_op, &reply->is_disturbed, &error);
    }
    reply->elapsed_ns = bench_now_ns() - start;
    if (status != GMD_OK) {
        reply->answer = BENCH_FAILED;
        memcpy(reply->text, error.text, sizeof reply->text);
    }
}

/* --- instructions ------------------------------------------------------------------------ */

static bool run_counted(void *context)
{
    gmd_error error;
    worker *w = context;
    return bench_loop_run(&w->loop, COUNTED_OPERATIONS, &error) == GMD_OK;
}

static gmd_status count_loop(worker *w, const benchmark *of, uint64_t seed, bench_reply *reply,
                             gmd_error *error)
{
    bench_instructions counted;
    uint64_t least = least_warm_up(of);
    gmd_status status = bench_loop_open(&w->loop, &w->calls, of, seed, error);
    if (status == GMD_OK) {
        status = bench_loop_run(&w->loop, gmd_max(least, COUNTED_WARM_UP), error);
    }
    if (status == GMD_OK) {
        status = bench_count_instructions(run_counted, w, COUNTED_STEPS_MAX, &counted, error);
    }
    bench_loop_close(&w->loop);
    if (status == GMD_OK) {
        reply->instructions_per_op = (double)counted.count / COUNTED_OPERATIONS;
        reply->is_stepped = counted.by == BENCH_STEPS;
        reply->is_least = counted.is_least;
    }
    return status;
}

static void count(worker *w, const bench_request *request, bench_reply *reply)
{
    const benchmark *of = &bench_catalogue[request->index];
    gmd_error error = {""};
    const char *lack = bench_loop_lacks(&w->calls, of);
    if (lack) {
        reply->answer = BENCH_SKIPPED;
        snprintf(reply->text, sizeof reply->text, "%s", lack);
    } else if (count_loop(w, of, request->seed, reply, &error) != GMD_OK) {
        reply->answer = BENCH_FAILED;
        memcpy(reply->text, error.text, sizeof reply->text);
    }
}

/* --- the process ------------------------------------------------------------------------- */

static bool answer(const bench_reply *reply)
{
    return send(BENCH_SOCKET, reply, sizeof *reply, MSG_NOSIGNAL) == (ssize_t)sizeof *reply;
}

static bool start(worker *w)
{
    gmd_error error = {""};
    bench_reply reply = {.answer = BENCH_DONE};
    reply.status = bench_subject_open(&w->setup, &w->calls, &error);
    if (reply.status != GMD_OK) {
        reply.answer = BENCH_REFUSED;
        memcpy(reply.text, error.text, sizeof reply.text);
    } else if (w->setup.core_count) {
        bench_cores_pin(w->setup.cores[0]); /* after a real runtime has made threads of its own */
    }
    return answer(&reply) && reply.answer == BENCH_DONE;
}

int main(void)
{
    static worker w;
    ssize_t size = recv(BENCH_SOCKET, &w.setup, sizeof w.setup, 0);
    if (size != (ssize_t)sizeof w.setup) {
        fprintf(stderr, "gmd-bench-worker is a part of gmd; `gmd bench` starts it\n");
        return 2;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(STDERR_FILENO, STDOUT_FILENO); /* standard output is gmd's, perhaps for JSON */
    if (!start(&w)) {
        return 0;
    }
    bench_request request;
    while (recv(BENCH_SOCKET, &request, sizeof request, 0) == (ssize_t)sizeof request) {
        bench_reply reply = {.answer = BENCH_DONE};
        switch (request.verb) {
        case BENCH_PREPARE:
            finish(&w);
            prepare(&w, &request, &reply);
            break;
        case BENCH_MEASURE:
            measure(&w, &reply);
            break;
        case BENCH_COUNT:
            finish(&w);
            count(&w, &request, &reply);
            break;
        case BENCH_FINISH:
            finish(&w);
            break;
        }
        if (!answer(&reply)) {
            break;
        }
    }
    return 0;
}
