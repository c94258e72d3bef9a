#define _GNU_SOURCE
#include "rounds.h"

#include "clean_up.h"
#include "gmd_min.h"
#include "gmd_size.h"
#include "gmd_tokens.h"
#include "notes.h"
#include "requests.h"
#include "view.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    REQUEST_MAX = 2048, /* of a round */
    WARM_UP = 4,        /* rounds before anything is judged */
    GROWING = 8,        /* rounds, one after the other, that make growth steady */
    ROUND_MAX = 64,
    STABLE = 2, /* rounds without growth, after which nothing more is to be seen */
};

/* What one device loses is no reason why another one refuses. */
typedef struct device_rounds {
    uint64_t held[ROUND_MAX]; /* after each */
    uint64_t peak_live;
    unsigned growing;
} device_rounds;

typedef struct rounds {
    gmd_session *session;
    const gmd_trace *trace;
    bool was_served[REQUEST_MAX];
    device_rounds devices[GMD_MAX_DEVICES];
    unsigned round, stable;
} rounds;

static bool is_repeated(const gmd_request *r)
{
    switch (r->op) {
    case GMD_OP_ALLOC:
    case GMD_OP_FREE:
    case GMD_OP_USE:
    case GMD_OP_RECORD:
    case GMD_OP_WAIT:
    case GMD_OP_SYNC:
    case GMD_OP_ADVANCE:
        return true;
    default:
        return false;
    }
}

/* Whether the workload is a round that can be repeated, with nothing planted in it. */
static bool can_repeat(const gmd_session *s)
{
    const gmd_trace *t = s->workload->trace;
    if (!t || !t->count || t->count > REQUEST_MAX || t->threads.count > 1 || !s->runtime.sim ||
        s->persistent.is_on || s->options->judging.is_compared || s->options->judging.oracles_off ||
        s->options->process.is_second_run) {
        return false;
    }
    bool has_allocation = false;
    for (size_t i = 0; i < t->count; i++) {
        const gmd_request *r = &t->requests[i];
        if (gmd_op_is(r->op, GMD_IS_FOR_ALL)) {
            return false;
        }
        has_allocation = has_allocation || r->op == GMD_OP_ALLOC;
    }
    return has_allocation;
}

static uint64_t held(const gmd_session *s, int device)
{
    gmd_sim_device_state state = {0};
    s->runtime.sim->gmd_sim_device(device, &state);
    return state.physical_bytes;
}

static void make_idle(gmd_session *s)
{
    for (int device = 0; device < s->device_count; device++) {
        streams_sync(&s->streams, device, GMD_ALL_STREAMS, s->moment, NULL);
    }
}

/* Served at last, once all that an allocator can be asked to give back was given back? */
static bool is_served_after_all(gmd_session *s, const gmd_request *r)
{
    cudaStream_t stream = NULL;
    streams_find(&s->streams, r->device, r->stream, &stream);
    make_idle(s);
    if (s->subject.empty_cache) {
        s->subject.empty_cache();
    }
    return s->subject.malloc((size_t)r->bytes, r->device, stream) != NULL;
}

/* False: a request that was served before is refused for good. */
static bool make_request(rounds *r, size_t index)
{
    gmd_session *s = r->session;
    gmd_request request = r->trace->requests[index];
    gmd_served served = GMD_SERVED;
    gmd_error error;
    request.expect = request.op == GMD_OP_ALLOC ? GMD_EXPECT_ANY : request.expect;
    view_begin(s);
    s->view.request = &request;
    s->view.request_index = index;
    if (carry_out_request(s, &request, &served, &error) != GMD_OK) {
        _exit(EXIT_SUCCESS); /* nothing was learnt */
    }
    if (request.op != GMD_OP_ALLOC) {
        return true;
    }
    device_rounds *d = &r->devices[request.device];
    if (served == GMD_SERVED) {
        r->was_served[index] = true;
        d->peak_live = gmd_max(s->blocks.bytes[request.device], d->peak_live);
        return true;
    }
    return !r->was_served[index] || d->growing < GROWING || is_served_after_all(s, &request);
}

static void note_loss(const rounds *r, size_t index)
{
    lost_memory *lost = &r->session->shared->lost;
    const device_rounds *d = &r->devices[r->trace->requests[index].device];
    lost->request = index;
    lost->rounds = r->round;
    lost->held_first = d->held[r->round - d->growing - 1];
    lost->held_last = d->held[r->round - 1];
    lost->live = d->peak_live;
    lost->is_found = true;
    _exit(EXIT_SUCCESS);
}

/* Room for as many more rounds as make growth steady, and for several rounds' live blocks. */
static void limit_devices(const rounds *r)
{
    for (int device = 0; device < r->session->device_count; device++) {
        const device_rounds *d = &r->devices[device];
        uint64_t growth = d->growing ? d->held[r->round] - d->held[r->round - 1] : 0;
        uint64_t room = gmd_max(2 * growth * GROWING, 4 * d->peak_live);
        r->session->runtime.sim->gmd_sim_budget(device,
                                                d->held[r->round] + room + GMD_SIM_PAGE_BYTES);
    }
}

/* Whether any device holds more than after the round before. */
static bool note_held(rounds *r)
{
    bool has_grown = false;
    for (int device = 0; device < r->session->device_count; device++) {
        device_rounds *d = &r->devices[device];
        d->held[r->round] = held(r->session, device);
        bool grows = r->round > 0 && d->held[r->round] > d->held[r->round - 1];
        d->growing = grows ? d->growing + 1 : 0;
        has_grown = has_grown || grows;
    }
    return has_grown;
}

/* False: there is nothing more to see. */
static bool end_round(rounds *r)
{
    free_everything(r->session);
    make_idle(r->session);
    bool has_grown = note_held(r);
    r->stable = has_grown ? 0 : r->stable + 1;
    if (r->round == WARM_UP && has_grown) {
        limit_devices(r);
    }
    return r->stable <= STABLE && (has_grown || r->round < WARM_UP) && !r->session->is_over;
}

static void limit_time(double seconds)
{
    signal(SIGALRM, SIG_DFL);
    struct itimerval timer = {.it_value = {.tv_sec = (time_t)seconds}};
    timer.it_value.tv_usec = (suseconds_t)((seconds - (double)timer.it_value.tv_sec) * 1e6);
    setitimer(ITIMER_REAL, &timer, NULL);
}

static _Noreturn void be_the_child(gmd_session *s)
{
    static rounds r;
    r.session = s;
    r.trace = s->workload->trace;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    limit_time(s->options->process.call_budget_s / 2);
    memset(s->judge.listener_count, 0, sizeof s->judge.listener_count);
    s->runtime.sim->gmd_sim_clear_faults();
    free_everything(s);
    make_idle(s);
    for (bool goes_on = true; goes_on && r.round < ROUND_MAX; r.round++) {
        for (size_t i = 0; i < r.trace->count; i++) {
            if (is_repeated(&r.trace->requests[i]) && !make_request(&r, i)) {
                note_loss(&r, i);
            }
        }
        goes_on = end_round(&r);
    }
    _exit(EXIT_SUCCESS);
}

static void tell(gmd_session *s, const lost_memory *lost)
{
    char request[120], message[600], held_first[24], held_last[24], live[24];
    const gmd_trace *t = s->workload->trace;
    gmd_request_text(t, &t->requests[lost->request], request, sizeof request);
    snprintf(message, sizeof message,
             "the same %zu requests made %" PRIu64
             " times, everything freed and waited for after each round: the allocator held %s "
             "of the device and at last %s, more after every round, and then refused '%s', which "
             "it had served before; at "
             "most %s were ever live: freed blocks are not used again",
             t->count, lost->rounds, gmd_format_bytes(lost->held_first, held_first),
             gmd_format_bytes(lost->held_last, held_last), request,
             gmd_format_bytes(lost->live, live));
    outcome_violation(&s->shared->outcome, s->options->judging.known,
                      GMD_KIND(progress, not_reused), GMD_NO_PARTIES, s->request_index, message);
}

void session_repeat(gmd_session *s)
{
    if (!can_repeat(s)) {
        return;
    }
    s->shared->lost = (lost_memory){0};
    pid_t child = fork();
    if (child == 0) {
        be_the_child(s);
    }
    if (child < 0) {
        gmd_error error;
        session_stop(s, gmd_fail(&error, GMD_FAILED, "fork: %s", strerror(errno)), &error);
        return;
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (s->shared->lost.is_found && s->shared->lost.request < s->workload->trace->count) {
        tell(s, &s->shared->lost);
    } else if (number && number != SIGALRM && number != SIGKILL) {
        char message[200], token[GMD_SIGNAL_TOKEN];
        gmd_signal_token(number, token);
        snprintf(message, sizeof message,
                 "crashed with signal %d (%s) when the same requests were made again, from where "
                 "everything was freed and waited for",
                 number, strsignal(number));
        outcome_violation_at_end(&s->shared->outcome, s->options->judging.known,
                                 GMD_KIND(progress, crash_in_repetition),
                                 GMD_PARTIES({"signal", token}), s->request_index, message);
    }
    s->is_over = s->is_over || s->shared->outcome.violation_count > 0;
}
