#include "probe.h"

#include "clean_up.h"
#include "frames.h"
#include "gmd_probe.h"
#include "journal_writer.h"
#include "notes.h"
#include "pools.h"
#include "view.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* A fork costs as much as some hundred requests: the first refusals are all looked into, later ones
 * only now and then. By the requests' numbers, so that a run can be repeated. */
enum { PROBES_AT_FIRST = 16, PROBE_SPACING = 16384, FREE_ALL_EVERY = 16 };

static bool is_due(gmd_session *s)
{
    s->refusals.count++;
    bool is_one_of_the_first = s->refusals.count <= PROBES_AT_FIRST;
    return (is_one_of_the_first || s->request_index - s->refusals.last_asked >= PROBE_SPACING) &&
           s->judge.listener_count[GMD_HOOK_AFTER_REFUSAL] > 0;
}

#define NOTHING_LEARNT                                                                             \
    (gmd_refusal)                                                                                  \
    {                                                                                              \
        .room = GMD_STAT_UNKNOWN, .room_idle = GMD_STAT_UNKNOWN, .taken = GMD_STAT_UNKNOWN         \
    }

/* --- questions --------------------------------------------------------------------------- */

static uint64_t held(gmd_session *s, int device)
{
    view_refresh(s);
    return figures_held(&s->figures, device);
}

static uint64_t room_now(gmd_session *s, int device)
{
    view_refresh(s);
    return view_room(s, device);
}

/* `room`, or NULL: what is left while the block is there. */
static gmd_reply ask(gmd_session *s, const gmd_request *r, gmd_refusal *out, uint64_t *room)
{
    cudaStream_t stream = NULL;
    streams_find(&s->streams, r->device, r->stream, &stream);
    call_frame frame;
    enter_allocator(s, "gmd_malloc", &frame);
    void *memory = s->subject.malloc((size_t)r->bytes, r->device, stream);
    leave_allocator(s, &frame);
    if (s->view.thread.error_text) {
        snprintf(out->error, sizeof out->error, "%s", s->view.thread.error_text);
        snprintf(out->error_token, sizeof out->error_token, "%s", s->view.thread.error_token);
    }
    if (memory && room) {
        *room = room_now(s, r->device);
    }
    if (memory) {
        s->subject.free(memory, (size_t)r->bytes, r->device, stream);
    }
    return memory ? GMD_SERVED_NOW : GMD_REFUSED;
}

static void empty_cache(gmd_session *s)
{
    call_frame frame;
    enter_allocator(s, "gmd_empty_cache", &frame);
    s->subject.empty_cache();
    leave_allocator(s, &frame);
}

static void make_idle(gmd_session *s)
{
    for (int device = 0; device < s->device_count; device++) {
        streams_sync(&s->streams, device, GMD_ALL_STREAMS, s->request_index, NULL);
    }
}

static void refresh_all(gmd_session *s)
{
    for (int device = 0; device < s->device_count; device++) {
        view_device(s, device);
        view_refresh(s);
    }
}

static void free_all(gmd_session *s)
{
    if (s->persistent
            .is_on) { /* nobody forks: the run's own blocks are freed, and the oracles know */
        refresh_all(s);
        free_everything(s);
        return;
    }
    const session_block *block = NULL;
    for (uint32_t id = 0; (block = live_blocks_next(&s->blocks, &id)) != NULL;) {
        const gmd_live_block *b = &block->live;
        cudaStream_t stream = NULL;
        if (streams_get(&s->streams, b->device, b->stream, &stream, NULL) ==
            GMD_OK) { /* a new one, where it was destroyed */
            s->subject.free((void *)(uintptr_t)b->address, (size_t)b->bytes, b->device, stream);
        }
    }
}

/* A capture forbids the allocator to wait for freed blocks: it may have refused rightly, and serve
 * rightly when work has ended since. */
static bool may_be_served_since(const gmd_session *s, const gmd_request *r)
{
    return s->captures.is_under_way && streams_may_free(&s->streams, r->device);
}

static void ask_when_emptied(gmd_session *s, const gmd_request *r, gmd_refusal *out)
{
    uint64_t before = room_now(s, r->device), left = GMD_STAT_UNKNOWN;
    out->when_emptied = ask(s, r, out, &left);
    bool is_known = left != GMD_STAT_UNKNOWN && before != GMD_STAT_UNKNOWN && left <= before;
    out->taken = is_known ? before - left : GMD_STAT_UNKNOWN;
}

/* Each question changes what is there, which only the next one is to see. */
static void ask_all(gmd_session *s, const gmd_request *r, bool frees_all, gmd_refusal *out)
{
    if (may_be_served_since(s, r)) {
        return;
    }
    out->at_once = ask(s, r, out, NULL);
    if (out->at_once == GMD_SERVED_NOW ||
        s->captures.is_under_way) { /* the rest waits, or gives back */
        return;
    }
    make_idle(s);
    out->when_idle = ask(s, r, out, NULL);
    if (out->when_idle == GMD_SERVED_NOW || !s->subject.empty_cache) {
        return;
    }
    out->held_idle = held(s, r->device);
    out->room_idle = view_room(s, r->device);
    empty_cache(s);
    out->held_emptied = held(s, r->device);
    ask_when_emptied(s, r, out);
    if (out->when_emptied == GMD_REFUSED && session_leave_pool(s, r->device)) {
        empty_cache(s);
        out->when_reopened =
            session_reenter_pool(s, r->device) ? ask(s, r, out, NULL) : GMD_NOT_ASKED;
    }
    if (out->when_emptied == GMD_SERVED_NOW || out->when_reopened == GMD_SERVED_NOW || !frees_all) {
        return;
    }
    session_end_pools(s);
    free_all(s);
    session_release_pools(s);
    view_device(s, r->device);
    empty_cache(s);
    out->held_at_start = s->figures.held_at_start[r->device];
    out->held_free = held(s, r->device);
    if (out->held_free > out->held_at_start) { /* lazily: with the second emptying */
        empty_cache(s);
        out->held_free = held(s, r->device);
    }
    out->room = view_room(s, r->device);
    out->when_all_is_free = ask(s, r, out, NULL);
}

/* --- where they are asked ---------------------------------------------------------------- */

static void limit_time(double seconds)
{
    signal(SIGALRM, SIG_DFL);
    struct itimerval timer = {.it_value = {.tv_sec = (time_t)seconds}};
    timer.it_value.tv_usec = (suseconds_t)((seconds - (double)timer.it_value.tv_sec) * 1e6);
    setitimer(ITIMER_REAL, &timer, NULL);
}

static _Noreturn void be_the_child(gmd_session *s, const gmd_request *r, bool frees_all)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    limit_time(s->options->process.call_budget_s / 2); /* the parent's own time runs */
    journal_writer_close(s);        /* what is asked here is no part of the run */
    s->interleaving.overlap = NULL; /* the other threads did not come along */
    s->runtime.sim->gmd_sim_set_yield(NULL, NULL);
    s->runtime.sim->gmd_sim_clear_faults();
    ask_all(s, r, frees_all, &s->shared->refusal);
    s->shared->refusal_is_complete = true;
    _exit(0);
}

/* False: nothing was learnt. A child that hangs may do so only because it is one: threads that the
 * allocator has started do not come along. */
static bool ask_in_a_child(gmd_session *s, const gmd_request *r, bool frees_all, gmd_refusal *out)
{
    s->shared->refusal = NOTHING_LEARNT;
    s->shared->refusal_is_complete = false;
    pid_t child = fork();
    if (child == 0) {
        be_the_child(s, r, frees_all);
    }
    if (child < 0) {
        gmd_error error;
        session_stop(s, gmd_fail(&error, GMD_FAILED, "fork: %s", strerror(errno)), &error);
        return false;
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    *out = s->shared->refusal; /* the allocator may have written there, too */
    out->error[sizeof out->error - 1] = '\0';
    out->error_token[sizeof out->error_token - 1] = '\0';
    int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (number == SIGALRM || number == SIGKILL) {
        return false;
    }
    out->died_of_signal = number;
    out->has_ended_process = !number && !s->shared->refusal_is_complete;
    return true;
}

/* A second refusal leaves the allocator as the first did, but for its counters. */
static bool ask_in_place(gmd_session *s, const gmd_request *r, gmd_refusal *out)
{
    if (s->options->judging.is_compared || may_be_served_since(s, r)) {
        return false;
    }
    *out = NOTHING_LEARNT;
    out->at_once = ask(s, r, out, NULL);
    if (out->at_once == GMD_REFUSED && s->subject.empty_cache && !s->captures.is_under_way) {
        empty_cache(s);
        out->when_emptied = ask(s, r, out, NULL);
    }
    return true;
}

/* Without a fork, which costs more than the whole input: what is asked ends it. Only what is said
 * of an input that runs by itself counts, so that this may be rougher. */
static void ask_in_place_and_end(gmd_session *s, const gmd_request *r)
{
    gmd_refusal refusal = NOTHING_LEARNT;
    gmd_view refused = s->view;
    if (s->runtime.sim) {
        s->runtime.sim->gmd_sim_clear_faults();
    }
    ask_all(s, r, true, &refusal);
    s->view = refused;
    s->view.refusal = &refusal;
    judge_ask(&s->judge, GMD_HOOK_AFTER_REFUSAL, &s->view);
    s->view.refusal = NULL;
    refresh_all(s);
    s->persistent.ends_here = true;
}

/* Neither the limit nor the device is full of what is live. */
static bool is_doubtful(const gmd_session *s, const gmd_request *r)
{
    uint64_t bound = s->view.limits.bytes, live = s->blocks.bytes[r->device];
    if (s->view.limits.device_bytes && s->view.limits.device_bytes < bound) {
        bound = s->view.limits.device_bytes;
    }
    return live <= bound && r->bytes <= bound - live;
}

static bool is_asked_about(gmd_session *s, const gmd_request *r)
{
    bool is_last = s->request_index + 1 == s->workload->trace->count;
    s->refusals.count++;
    s->refusals.doubtful += is_doubtful(s, r);
    return s->refusals.count == s->persistent.asked_refusal ||
           (is_last && s->persistent.asked_refusal == GMD_LAST_REQUEST) ||
           (is_doubtful(s, r) &&
            s->persistent.asked_refusal == GMD_DOUBTFUL_REFUSAL(s->refusals.doubtful));
}

void session_probe(gmd_session *s, const gmd_request *r)
{
    bool is_alone = !s->view.is_busy && !s->view.is_overlapped; /* no thread frees in between */
    if (s->persistent.is_on) {
        bool is_wanted = is_asked_about(s, r) && !s->interleaving.overlap;
        if (is_wanted && !s->is_over && s->judge.listener_count[GMD_HOOK_AFTER_REFUSAL]) {
            ask_in_place_and_end(s, r);
        }
        return;
    }
    if (!is_alone || s->is_over || s->shared->outcome.violation_count > 0 || !is_due(s)) {
        return;
    }
    bool frees_all = s->refusals.asked < PROBES_AT_FIRST || s->refusals.asked % FREE_ALL_EVERY == 0;
    s->refusals.asked++;
    s->refusals.last_asked = s->request_index;
    gmd_refusal refusal;
    const char *said = s->view.thread.error_text, *token = s->view.thread.error_token;
    bool is_answered =
        s->runtime.sim ? ask_in_a_child(s, r, frees_all, &refusal) : ask_in_place(s, r, &refusal);
    s->view.thread.error_text = said;
    s->view.thread.error_token = token;
    if (is_answered) {
        s->view.refusal = &refusal;
        judge_ask(&s->judge, GMD_HOOK_AFTER_REFUSAL, &s->view);
        s->view.refusal = NULL;
    }
    if (!s->runtime.sim) {
        view_refresh(s); /* the counters */
    }
}
