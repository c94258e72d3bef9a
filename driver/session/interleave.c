#include "interleave.h"

#include "blocks.h"
#include "frames.h"
#include "gmd_accesses.h"
#include "gmd_assert.h"
#include "gmd_end.h"
#include "gmd_interpose.h"
#include "gmd_scheduler.h"
#include "notes.h"
#include "requests.h"
#include "validity.h"
#include "view.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NONE UINT32_MAX

#define PREEMPTIONS 3 /* that are told */

/* A thread lost the turn in the middle of the allocator. */
typedef struct preemption {
    unsigned from, to;
    uint32_t from_request, to_request; /* NONE */
    gmd_stand from_stand, to_stand;
    bool is_to_inside;
} preemption;

typedef struct interleaving {
    gmd_session *session;
    const gmd_trace *trace;
    const gmd_schedule *which;
    unsigned thread_count;
    pthread_t handles[GMD_MAX_THREADS];
    unsigned started; /* threads beside the main one */

    /* For each request: the latest earlier one on its block (NONE: there is none), and the latest
     * one before it that all threads wait for. */
    uint32_t *after, *after_barrier;
    bool *is_done;
    size_t first_undone, done_count;

    uint32_t under_way[GMD_MAX_THREADS]; /* request index; NONE */
    overlap overlap;
    preemption preemptions[PREEMPTIONS]; /* the latest, by their number */
    uint64_t preemption_count;
} interleaving;

/* --- which request may come before which ------------------------------------------------- */

static bool is_on_block(const gmd_request *r)
{
    return gmd_op_has_block(r->op);
}

/* What changes the world for all: the end of a stream, a limit, a fault that is planted, where
 * requests go. */
static bool is_barrier(const gmd_request *r)
{
    return gmd_op_is(r->op, GMD_IS_FOR_ALL);
}

static gmd_status plan(interleaving *in, gmd_error *error)
{
    const gmd_trace *t = in->trace;
    uint32_t *latest = malloc((t->blocks.count + 1) * sizeof *latest);
    in->after = malloc(t->count * sizeof *in->after);
    in->after_barrier = malloc(t->count * sizeof *in->after_barrier);
    in->is_done = calloc(t->count, sizeof *in->is_done);
    if (!latest || !in->after || !in->after_barrier || !in->is_done) {
        free(latest);
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for the order of %zu requests",
                        t->count);
    }
    memset(latest, 0xff, (t->blocks.count + 1) * sizeof *latest);
    uint32_t barrier = NONE;
    for (uint32_t i = 0; i < t->count; i++) {
        const gmd_request *r = &t->requests[i];
        in->after[i] = is_on_block(r) ? latest[r->block] : NONE;
        in->after_barrier[i] = barrier;
        if (is_on_block(r)) {
            latest[r->block] = i;
        }
        barrier = is_barrier(r) ? i : barrier;
    }
    free(latest);
    return GMD_OK;
}

static bool may_begin(void *context, unsigned thread)
{
    const interleaving *in = context;
    uint32_t i = in->under_way[thread];
    if (in->session->is_over) {
        return true; /* to leave */
    }
    if (is_barrier(&in->trace->requests[i]) && in->first_undone < i) {
        return false;
    }
    return (in->after[i] == NONE || in->is_done[in->after[i]]) &&
           (in->after_barrier[i] == NONE || in->is_done[in->after_barrier[i]]);
}

static void note_done(interleaving *in, uint32_t i)
{
    in->is_done[i] = true;
    in->done_count++;
    while (in->first_undone < in->trace->count && in->is_done[in->first_undone]) {
        in->first_undone++;
    }
}

/* --- the end before the end -------------------------------------------------------------- */

static const char *thread_name(const gmd_trace *t, unsigned thread, char *text, size_t size)
{
    if (thread == 0) {
        return "main";
    }
    if (thread < t->threads.count && t->threads.items[thread]) {
        return t->threads.items[thread];
    }
    snprintf(text, size, "t%u", thread);
    return text;
}

static void describe_at(const interleaving *in, unsigned thread, uint32_t i, char *text,
                        size_t size)
{
    char name[16], request[80];
    if (i == NONE) {
        snprintf(text, size, "%s", thread_name(in->trace, thread, name, sizeof name));
        return;
    }
    gmd_request_text(in->trace, &in->trace->requests[i], request, sizeof request);
    snprintf(text, size, "%s in request %" PRIu32 " (%s)",
             thread_name(in->trace, thread, name, sizeof name), i, request);
}

static void preempted(void *context, unsigned from, const gmd_stand *from_stand, unsigned to,
                      const gmd_stand *to_stand)
{
    interleaving *in = context;
    in->preemptions[in->preemption_count++ % PREEMPTIONS] =
        (preemption){.from = from,
                     .to = to,
                     .from_request = in->under_way[from],
                     .to_request = in->under_way[to],
                     .from_stand = *from_stand,
                     .to_stand = to_stand ? *to_stand : (gmd_stand){0},
                     .is_to_inside = to_stand != NULL};
}

/* Where the threads stood when the turn went from one to the other. */
static void note_preemption(const interleaving *in, uint64_t number)
{
    const preemption *p = &in->preemptions[number % PREEMPTIONS];
    char from[120], to[120], from_at[160], to_at[160];
    describe_at(in, p->from, p->from_request, from, sizeof from);
    describe_at(in, p->to, p->to_request, to, sizeof to);
    scheduler_stand_text(&p->from_stand, from_at, sizeof from_at);
    if (p->is_to_inside) {
        scheduler_stand_text(&p->to_stand, to_at, sizeof to_at);
    } else {
        snprintf(to_at, sizeof to_at,
                 p->to_request == NONE ? "at its start" : "outside of the allocator");
    }
    session_note(in->session, "switch %" PRIu64 " of %" PRIu64 ": %s stood %s, and %s, %s, went on",
                 number + 1, in->preemption_count, from, from_at, to, to_at);
}

static void note_preemptions(const interleaving *in)
{
    uint64_t count = in->preemption_count;
    for (uint64_t i = count > PREEMPTIONS ? count - PREEMPTIONS : 0; i < count; i++) {
        note_preemption(in, i);
    }
}

static void note_interleaving(const interleaving *in)
{
    gmd_session *s = in->session;
    const gmd_schedule *which = in->which;
    if (which->kind == GMD_SCHEDULE_SEEDED) {
        session_note(s, "threads interleaved by seed %" PRIu64, which->seed);
    } else if (gmd_schedule_is_seeded(which)) {
        session_note(s, "threads interleaved by %s %" PRIu32 " steps %" PRIu32 " seed %" PRIu64,
                     which->kind == GMD_SCHEDULE_PCT ? "pct" : "bounded", which->depth,
                     which->steps, which->seed);
    } else {
        session_note(s, "threads interleaved by %zu explicit choices", which->choice_count);
    }
    unsigned lapses = scheduler_lapses();
    if (lapses) {
        session_note(s,
                     "a thread blocked or spun outside the scheduler's control %u times (not in a "
                     "lock of pthread): the same choices need not give the same interleaving",
                     lapses);
    }
    bool are_all_told = which->depth && in->preemption_count <= PREEMPTIONS;
    if (s->shared->outcome.violation_count || are_all_told) { /* it may show at the end */
        note_preemptions(in);
    }
}

/* Threads are in the middle of the allocator under test, and cannot be brought out of it. */
__attribute__((noreturn)) static void end_process(interleaving *in)
{
    note_interleaving(in);
    session_end_process(in->session);
}

static void describe(void *context, unsigned thread, char *text, size_t size)
{
    const interleaving *in = context;
    describe_at(in, thread, in->under_way[thread], text, size);
}

static void deadlocked(void *context, unsigned thread, const gmd_deadlock *d)
{
    interleaving *in = context;
    gmd_session *s = in->session;
    uint64_t index = in->under_way[thread] == NONE ? s->request_index : in->under_way[thread];
    outcome_violation(&s->shared->outcome, s->options->judging.known, GMD_KIND(progress, deadlock),
                      GMD_PARTIES({"lock", d->locks[0]}, {"lock2", d->locks[1]},
                                  {"lock3", d->locks[2]}, {"lock4", d->locks[3]},
                                  {"wait", d->waits}),
                      index, d->sentence);
    end_process(in);
}

/* --- requests ---------------------------------------------------------------------------- */

static void put_current(gmd_session *s, uint32_t index)
{
    s->shared->current = s->workload->trace->requests[index];
    s->shared->current_index = index;
}

/* For what is said of a crash, and of a call: whose request it was in. */
static void resumed(void *context, unsigned thread)
{
    interleaving *in = context;
    if (in->under_way[thread] != NONE) {
        put_current(in->session, in->under_way[thread]);
        in->session->request_index = in->under_way[thread];
    }
}

static void make_request(interleaving *in, uint32_t index)
{
    gmd_session *s = in->session;
    const gmd_request *r = &in->trace->requests[index];
    gmd_served served = GMD_SERVED;
    gmd_error error = {""};
    put_current(s, index);
    atomic_fetch_add_explicit(&s->shared->beats, 1, memory_order_release);
    holds_beat(s->holds);
    view_begin(s);
    s->request_index = index;
    s->view.request = r;
    s->view.request_index = index;
    s->view.is_overlapped = in->overlap.inside_count > 0;
    overlap_note(&in->overlap, in->thread_count);
    atomic_store_explicit(&s->shared->is_in_request, 1, memory_order_relaxed);
    gmd_status status = carry_out_request(s, r, &served, &error);
    if (status != GMD_OK) {
        session_stop(s, status, &error);
    }
    note_done(in, index);
    s->shared->outcome.requests = in->done_count;
    s->is_over = s->is_over || s->shared->outcome.violation_count > 0;
    if (s->is_over && in->overlap.inside_count > 0) {
        end_process(in);
    }
    GMD_ASSERT_VALID(session_state_due_violation(s));
    atomic_store_explicit(&s->shared->is_in_request, in->overlap.inside_count > 0,
                          memory_order_relaxed);
}

static void play_thread(interleaving *in, unsigned thread)
{
    overlap_begin_thread(thread);
    if (in->session->runtime.sim) { /* its first calls are not the allocator's */
        in->session->runtime.sim->gmd_sim_harness(true);
    }
    scheduler_join(thread);
    for (uint32_t i = 0; i < in->trace->count && !in->session->is_over; i++) {
        if (in->trace->requests[i].thread != thread) {
            continue;
        }
        in->under_way[thread] = i;
        scheduler_yield();
        scheduler_wait(may_begin, in);
        if (!in->session->is_over) {
            make_request(in, i);
        }
        scheduler_changed();
    }
    in->under_way[thread] = NONE;
    scheduler_leave();
}

typedef struct thread_argument {
    interleaving *in;
    unsigned thread;
} thread_argument;

static void *run_thread(void *argument)
{
    thread_argument a = *(thread_argument *)argument;
    free(argument);
    play_thread(a.in, a.thread);
    return NULL;
}

/* --- the run ----------------------------------------------------------------------------- */

/* A thread that cannot be started leaves the others waiting for it: this happens before any joins.
 */
static gmd_status start_threads(interleaving *in, gmd_error *error)
{
    for (unsigned i = 1; i < in->thread_count; i++) {
        thread_argument *a = malloc(sizeof *a);
        if (!a) {
            return gmd_fail(error, GMD_NO_MEMORY, "no host memory for a thread");
        }
        *a = (thread_argument){in, i};
        int result = pthread_create(&in->handles[i], NULL, run_thread, a);
        if (result != 0) {
            free(a);
            return gmd_fail(error, GMD_FAILED, "a thread cannot be started: %s", strerror(result));
        }
        in->started++;
    }
    return GMD_OK;
}

static scheduler_policy policy_of(const gmd_schedule *which)
{
    return which->kind == GMD_SCHEDULE_EXPLICIT  ? SCHEDULER_EXPLICIT
           : which->kind == GMD_SCHEDULE_BOUNDED ? SCHEDULER_BOUNDED
           : which->kind == GMD_SCHEDULE_PCT     ? SCHEDULER_PCT
                                                 : SCHEDULER_RANDOM;
}

static gmd_status play(interleaving *in, gmd_error *error)
{
    gmd_session *s = in->session;
    const gmd_schedule *which = in->which;
    scheduler_config config = {
        .thread_count = in->thread_count,
        .policy = policy_of(which),
        .choices = which->choices,
        .choice_count = which->choice_count,
        .seed = which->seed,
        .point_count = which->kind == GMD_SCHEDULE_PCT ? which->depth - 1 : which->depth,
        .steps = which->steps,
        .expects_lapses = s->interleaving.expects_lapses,
        .context = in,
        .resumed = resumed,
        .preempted = preempted,
        .deadlocked = deadlocked,
        .describe = describe,
    };
    gmd_status status = scheduler_start(&config, error);
    if (status != GMD_OK) {
        return status;
    }
    status = start_threads(in, error);
    if (status != GMD_OK) { /* those that have started wait for ever */
        session_stop(s, status, error);
        end_process(in);
    }
    if (s->runtime.sim) {
        s->runtime.sim->gmd_sim_set_yield(scheduler_at_call, NULL);
    }
    gmd_accesses_yield(scheduler_at_access);
    play_thread(in, 0);
    for (unsigned i = 1; i <= in->started; i++) {
        pthread_join(in->handles[i], NULL);
    }
    if (s->runtime.sim) {
        s->runtime.sim->gmd_sim_set_yield(NULL, NULL);
    }
    gmd_accesses_yield(NULL);
    s->interleaving.lapses = scheduler_lapses();
    scheduler_stop();
    return GMD_OK;
}

gmd_status play_interleaved(gmd_session *session, gmd_error *error)
{
    const gmd_trace *trace = session->workload->trace;
    interleaving in = {.session = session,
                       .trace = trace,
                       .which = interleaving_of(session->options, trace),
                       .thread_count = trace->threads.count};
    memset(in.under_way, 0xff, sizeof in.under_way);
    gmd_status status = plan(&in, error);
    if (status == GMD_OK && !live_blocks_reserve(&session->blocks, trace->blocks.count)) {
        status =
            gmd_fail(error, GMD_NO_MEMORY, "no host memory for %u blocks", trace->blocks.count);
    }
    if (status == GMD_OK) {
        session->interleaving.overlap = &in.overlap;
        status = play(&in, error);
        session->interleaving.overlap = NULL;
        session->view.is_busy = false;
        session->view.is_overlapped = false;
        session->request_index = session->is_over ? session->request_index : trace->count;
        note_interleaving(&in);
    }
    free(in.after);
    free(in.after_barrier);
    free(in.is_done);
    return status;
}
