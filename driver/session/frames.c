#include "frames.h"

#include "gmd_assert.h"
#include "gmd_host_heap.h"
#include "gmd_scheduler.h"
#include "gmd_tokens.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* --- interleaved threads ------------------------------------------------------------------ */

static _Thread_local unsigned this_thread;

void overlap_begin_thread(unsigned thread)
{
    this_thread = thread;
}

void overlap_note(overlap *in, unsigned thread_count)
{
    for (unsigned i = 0; i < thread_count; i++) {
        in->was_overlapped[i] = in->was_overlapped[i] || in->is_inside[i];
    }
}

unsigned overlap_others_inside(const gmd_session *session)
{
    const overlap *in = session->interleaving.overlap;
    return in ? in->inside_count - in->is_inside[this_thread] : 0;
}

static void put_aside(gmd_session *session, call_frame *frame)
{
    overlap *in = session->interleaving.overlap;
    GMD_ASSERT_INTERNAL(!in->is_inside[this_thread], "a thread makes one call at a time");
    frame->view = session->view;
    frame->stats_before = session->figures.before;
    frame->request_index = session->request_index;
    in->is_inside[this_thread] = true;
    in->was_overlapped[this_thread] = in->inside_count > 0;
    in->inside_count++;
    scheduler_enter_subject();
}

static void put_back(gmd_session *session, const call_frame *frame)
{
    overlap *in = session->interleaving.overlap;
    scheduler_leave_subject();
    GMD_ASSERT_INTERNAL(in->is_inside[this_thread] && in->inside_count,
                        "a call that ends has begun");
    in->is_inside[this_thread] = false;
    in->inside_count--;
    session->view = frame->view;
    session->figures.before = frame->stats_before;
    session->request_index = frame->request_index;
    session->view.is_overlapped = frame->view.is_overlapped || in->was_overlapped[this_thread];
    session->view.uses.list = NULL; /* another thread's free may have taken their place */
    session->view.uses.count = 0;
    if (in->faults_hit[this_thread]) {
        session->view.faults.hit += in->faults_hit[this_thread];
        memcpy(session->view.faults.functions, in->faulted[this_thread],
               sizeof session->view.faults.functions);
        memset(in->faulted[this_thread], 0, sizeof in->faulted[this_thread]);
        in->faults_hit[this_thread] = 0;
    }
}

/* Each once. */
static void list_faulted(const char *faulted[GMD_FAULTED_MAX], const char *function)
{
    size_t i = 0;
    while (i < GMD_FAULTED_MAX && faulted[i] && faulted[i] != function) {
        i++;
    }
    if (i < GMD_FAULTED_MAX) {
        faulted[i] = function;
    }
}

void frames_note_fault(gmd_session *s, const char *function)
{
    if (s->interleaving.overlap) {
        s->interleaving.overlap->faults_hit[this_thread]++;
        list_faulted(s->interleaving.overlap->faulted[this_thread], function);
    } else {
        s->view.faults.hit++;
        list_faulted(s->view.faults.functions, function);
    }
}

/* --- a wait without an end ---------------------------------------------------------------- */

static unsigned own_threads(void *context)
{
    const gmd_session *s = context;
    unsigned count = 1;
    if (s->interleaving.overlap) {
        return scheduler_has_foreign_threads() ? 0 : UINT_MAX;
    }
    for (unsigned i = 0; i < GMD_MAX_THREADS; i++) {
        count += s->threads.workers[i] != NULL;
    }
    return count;
}

void frames_watch_waits(gmd_session *s,
                        void (*stuck)(void *session, const char *what, const char *lock))
{
    s->self_deadlock =
        (self_deadlock_watch){.context = s, .own_threads = own_threads, .stuck = stuck};
}

/* --- calls -------------------------------------------------------------------------------- */

/* It can only be exchanged: for another one, and back. */
static int capture_mode(const gmd_runtime *rt)
{
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
    if (rt->cudaStreamBeginCapture) {
        rt->cudaThreadExchangeStreamCaptureMode(&mode);
        enum cudaStreamCaptureMode passing = mode;
        rt->cudaThreadExchangeStreamCaptureMode(&passing);
    }
    return (int)mode;
}

/* On a real device, too, these calls change nothing, the last error included. */
static void look_at_thread(const gmd_session *s, gmd_thread_state *state)
{
    if (s->runtime.sim) {
        gmd_sim_thread_state seen;
        s->runtime.sim->gmd_sim_thread(&seen);
        *state = (gmd_thread_state){seen.device, seen.last_error, seen.capture_mode};
        return;
    }
    *state = (gmd_thread_state){.device = -1};
    s->runtime.cudaGetDevice(&state->device);
    state->last_error = (int)s->runtime.cudaPeekAtLastError();
    state->capture_mode = capture_mode(&s->runtime);
}

void enter_allocator(gmd_session *s, const char *function, call_frame *frame)
{
    look_at_thread(s, &frame->thread_before);
    s->report.has_called = true;
    s->report.last_request = s->request_index;
    if (s->interleaving.overlap) {
        put_aside(s, frame);
    } else {
        GMD_ASSERT_INTERNAL(!s->report.is_under_way, "requests make one call at a time");
        s->report.is_under_way = true;
    }
    if (s->runtime.sim) {
        s->runtime.sim->gmd_sim_harness(false);
    }
    if (!s->interleaving.overlap) { /* else the scheduler sees who waits for whom */
        self_deadlock_enter(&s->self_deadlock);
    }
    host_heap_enter(function);
}

void leave_allocator(gmd_session *s, const call_frame *frame)
{
    if (s->runtime.sim) {
        s->runtime.sim->gmd_sim_harness(true);
    }
    if (s->interleaving.overlap) {
        put_back(s, frame);
    } else {
        GMD_ASSERT_INTERNAL(s->report.is_under_way, "a call that ends has begun");
        s->report.is_under_way = false;
    }
    s->report.thread_before = frame->thread_before;
    look_at_thread(s, &s->report.thread_after);
    s->view.thread.before = &s->report.thread_before;
    s->view.thread.after = &s->report.thread_after;
    const char *said = s->subject.last_error ? s->subject.last_error() : NULL;
    self_deadlock_leave();
    host_heap_leave();
    if (said) { /* it lasts until the allocator's next call, which may be for its statistics */
        snprintf(s->report.error_text, sizeof s->report.error_text, "%s", said);
        gmd_error_token(said, s->report.error_token);
    }
    s->view.thread.error_text = said ? s->report.error_text : NULL;
    s->view.thread.error_token = said ? s->report.error_token : NULL;
}

/* Between the requests of interleaved threads, too, when none of them is in the allocator. */
void enter_for_question(const gmd_session *s, const char *function)
{
    host_heap_enter(function);
    if (!overlap_others_inside(s)) {
        self_deadlock_enter(&s->self_deadlock);
    }
}

const char *frames_violation(const gmd_session *s)
{
    const overlap *in = s->interleaving.overlap;
    unsigned inside = 0;
    for (unsigned i = 0; in && i < GMD_MAX_THREADS; i++) {
        inside += in->is_inside[i];
    }
    if (in && inside != in->inside_count) {
        return "threads in the allocator are counted";
    }
    return s->report.is_under_way || (in && in->is_inside[this_thread])
               ? "each call of the allocator has ended when its request has"
               : NULL;
}
