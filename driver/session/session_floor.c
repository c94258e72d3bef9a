/* session_floor.c - who has the floor: while it is the allocator, its calls of the CUDA API are
 * noted for the oracles, and what it does to the thread is seen. The driver's own calls are the
 * harness's: no planted fault hits them, and nobody takes them for the allocator's. */
#include "gmd_log.h"
#include "gmd_scheduler.h"
#include "gmd_self_deadlock.h"
#include "gmd_tokens.h"
#include "interleave.h"
#include "journal.h"

#include "gmd_grow.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

static void note_memory(gmd_session *s, const gmd_sim_call *call)
{
    s->device_calls++;
    gmd_book_call(s, call);
    if (s->interleaving) {
        return; /* whose request's they are cannot be told */
    }
    if (!GMD_GROW(&s->calls, &s->call_capacity, s->call_count + 1)) {
        return;
    }
    bool is_unmapped = call->kind == GMD_SIM_CALL_UNMAP;
    s->calls[s->call_count++] =
        (gmd_device_call){.is_free = call->kind == GMD_SIM_CALL_FREE || is_unmapped,
                          .is_mapping = call->kind == GMD_SIM_CALL_MAP || is_unmapped,
                          .is_pooled = call->is_pooled,
                          .device = call->device,
                          .address = call->address,
                          .size = call->size};
}

static void note_misuse(gmd_session *s, const gmd_sim_call *call)
{
    if (s->misuse_count < GMD_MISUSE_MAX) {
        s->misuses[s->misuse_count++] = (gmd_misuse){.function = call->function,
                                                     .sentence = call->misuse,
                                                     .rule = call->misuse_rule,
                                                     .address = call->address,
                                                     .size = call->size,
                                                     .result = call->result};
    }
}

void gmd_session_list_faulted(const char *faulted[GMD_FAULTED_MAX], const char *function)
{
    size_t i = 0;
    while (i < GMD_FAULTED_MAX && faulted[i] && faulted[i] != function) {
        i++;
    }
    if (i < GMD_FAULTED_MAX) {
        faulted[i] = function;
    }
}

static void log_call(const gmd_sim_call *call)
{
    char memory[64] = "";
    if (call->size) {
        snprintf(memory, sizeof memory, "; %" PRIu64 " B at 0x%" PRIx64, call->size, call->address);
    }
    GMD_LOG(DEVICE, "%s: result %d%s%s%s; device %d%s", call->function, call->result,
            call->failed_by_fault ? " by a planted fault" : "", call->misuse ? ", misuse: " : "",
            call->misuse ? call->misuse : "", call->device, memory);
}

static void note_call(void *context, const gmd_sim_call *call)
{
    gmd_session *s = context;
    s->api_calls++;
    if (GMD_LOG_IS_ON(DEVICE)) {
        log_call(call);
    }
    if (s->call_log) {
        gmd_call_log_add(s->call_log, call->function, (uint32_t)s->request_index);
    }
    if (s->features.map) {
        gmd_features_call(&s->features, call);
    }
    if (call->kind != GMD_SIM_CALL_OTHER && call->result == 0 && call->size != 0) {
        note_memory(s, call);
    }
    if (call->misuse) {
        note_misuse(s, call);
    }
    if (call->failed_by_fault && s->interleaving) {
        gmd_interleave_note_fault(s, call->function);
    } else if (call->failed_by_fault) {
        s->view.faults_hit++;
        gmd_session_list_faulted(s->view.faulted, call->function);
    }
}

/* --- a wait without an end --------------------------------------------------------------- */

static unsigned own_threads(void *context)
{
    const gmd_session *s = context;
    unsigned count = 1;
    if (s->interleaving) {
        return gmd_scheduler_has_foreign_threads() ? 0 : UINT_MAX;
    }
    for (unsigned i = 0; i < GMD_MAX_THREADS; i++) {
        count += s->threads.workers[i] != NULL;
    }
    return count;
}

/* The thread is in the middle of the allocator under test, and cannot be brought out of it. */
static void stuck(void *context, const char *what, const char *lock)
{
    gmd_session *s = context;
    char sentence[400], request[100] = "";
    const gmd_trace *trace = s->workload->trace;
    if (trace && s->view.request) {
        gmd_request_text(trace, s->view.request, request, sizeof request);
    }
    snprintf(sentence, sizeof sentence,
             "deadlock: %s waits for %s, and no other thread is there that could end the wait",
             *request ? request : "a call", what);
    gmd_outcome_violation(&s->shared->outcome, s->options->known, GMD_KIND(progress, deadlock),
                          GMD_PARTIES({"lock", lock}, {"wait", *lock ? NULL : "alone"}),
                          s->request_index, sentence);
    gmd_session_end_process(s);
}

/* Between the requests of interleaved threads, too, when none of them is in the allocator. */
void gmd_session_enter_alone(const gmd_session *s)
{
    if (!gmd_interleave_others_inside(s)) {
        gmd_self_deadlock_enter(&s->alone);
    }
}

void gmd_session_watch_calls(gmd_session *s)
{
    s->alone = (gmd_self_deadlock){.context = s, .own_threads = own_threads, .stuck = stuck};
    if (s->runtime.sim) {
        s->runtime.sim->gmd_sim_harness(true);
        s->runtime.sim->gmd_sim_observe(note_call, s);
    }
}

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

void gmd_session_give_floor(gmd_session *s, gmd_call_frame *frame)
{
    look_at_thread(s, &frame->thread_before);
    if (s->interleaving) {
        gmd_interleave_enter(s, frame);
    }
    if (s->runtime.sim) {
        s->runtime.sim->gmd_sim_harness(false);
    }
    if (!s->interleaving) { /* else the scheduler sees who waits for whom */
        gmd_self_deadlock_enter(&s->alone);
    }
}

void gmd_session_take_floor(gmd_session *s, const gmd_call_frame *frame)
{
    if (s->runtime.sim) {
        s->runtime.sim->gmd_sim_harness(true);
    }
    if (s->interleaving) {
        gmd_interleave_leave(s, frame);
    }
    s->thread_before = frame->thread_before;
    look_at_thread(s, &s->thread_after);
    s->view.thread_before = &s->thread_before;
    s->view.thread_after = &s->thread_after;
    const char *said = s->subject.last_error ? s->subject.last_error() : NULL;
    gmd_self_deadlock_leave();
    if (said) { /* it lasts until the allocator's next call, which may be for its statistics */
        snprintf(s->error_text, sizeof s->error_text, "%s", said);
        gmd_error_token(said, s->error_token);
    }
    s->view.error_text = said ? s->error_text : NULL;
    s->view.error_token = said ? s->error_token : NULL;
}
