#include "gmd_play.h"

#include "gmd_contract.h"
#include "gmd_faults.h"
#include "gmd_one_core.h"
#include "gmd_session.h"
#include "gmd_session_state.h"
#include "interleave.h"

#include <stdio.h>

/* Before the first request: not after a million of them. */
static gmd_status check_faults(const gmd_session *session, const gmd_trace *trace, gmd_error *error)
{
    for (size_t i = 0; i < trace->count; i++) {
        const gmd_request *r = &trace->requests[i];
        const char *function = r->op == GMD_OP_FAULT && r->function < trace->functions.count
                                   ? trace->functions.items[r->function]
                                   : NULL;
        if (function && gmd_fault_check(r, function, error) != GMD_OK) {
            char place[600];
            snprintf(place, sizeof place, "%.500s:%u", session->workload->name, r->line);
            if (r->line) {
                gmd_error_prefix(error, place);
            }
            return GMD_BAD_INPUT;
        }
    }
    return GMD_OK;
}

typedef struct course { /* of a trace's requests, one after the other */
    gmd_session *session;
    const gmd_trace *trace;
    size_t next;
    bool is_over;
} course;

static unsigned next_thread(const course *c)
{
    bool is_alone = gmd_contract_has(c->session->options->judging.contract, GMD_CLAUSE_THREADS,
                                     GMD_THREADS_ONE); /* it is main */
    return is_alone ? 0 : c->trace->requests[c->next].thread % GMD_MAX_THREADS;
}

/* On the thread of the next request: that one, and those after it that are for the same thread. */
static void play_stretch(void *context)
{
    course *c = context;
    unsigned thread = next_thread(c);
    do {
        const gmd_request *request = &c->trace->requests[c->next++];
        c->is_over = gmd_session_request(c->session, request) == GMD_STOP;
        c->is_over = c->is_over || c->next == c->trace->count;
    } while (!c->is_over && next_thread(c) == thread);
}

static gmd_status play_in_order(gmd_session *session, gmd_error *error)
{
    const gmd_trace *trace = session->workload->trace;
    course c = {.session = session, .trace = trace, .is_over = trace->count == 0};
    gmd_status status = GMD_OK;
    while (!c.is_over && status == GMD_OK) {
        status = threads_call(&session->threads, next_thread(&c), play_stretch, &c, error);
    }
    return status;
}

/* A thread that spins until another has done something needs that one to run beside it; a real
 * device's runtime may have such threads. */
static gmd_status play_on_one_core(gmd_session *session,
                                   gmd_status (*play)(gmd_session *session, gmd_error *error),
                                   gmd_error *error)
{
    one_core_state core = {.is_on = false};
    if (session->workload->trace->threads.count > 1 && session->runtime.sim &&
        !session->interleaving.expects_lapses) {
        one_core_begin(&core);
    }
    gmd_status status = play(session, error);
    one_core_end(&core);
    return status;
}

gmd_status gmd_play_trace(void *context, gmd_session *session, gmd_error *error)
{
    (void)context;
    const gmd_trace *trace = session->workload->trace;
    if (check_faults(session, trace, error) != GMD_OK) {
        return GMD_BAD_INPUT;
    }
    bool is_interleaved = interleaving_of(session->options, trace) != NULL;
    if (is_interleaved && session->runtime.sim) {
        return play_on_one_core(session, play_interleaved, error);
    }
    if (is_interleaved) { /* its driver takes locks of its own, on threads of its own */
        gmd_session_note(session, "on a real device the threads run one request after the other");
    }
    return play_on_one_core(session, play_in_order, error);
}
