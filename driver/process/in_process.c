/* in_process.c - one input after the other in the calling process. */
#include "gmd_in_process.h"

#include "child.h"
#include "gmd_end.h"
#include "gmd_open.h"
#include "gmd_restart.h"
#include "gmd_session_state.h"
#include "persistent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHOSEN_BY_LENGTH UINT64_MAX

struct gmd_in_process {
    gmd_run_options given;
    gmd_run_options options; /* in force */
    gmd_trace header;        /* likewise: a trace without requests */
    gmd_workload workload;
    shared_run *shared;
    gmd_session session;
    gmd_outcome opening;
    taken_run taken; /* of the latest input */
    uint64_t asked_refusal;
    bool has_run;
    bool needs_renewal; /* of the session, before anything else */
    bool is_spent;
};

static gmd_status take_header(gmd_in_process *p, const gmd_conditions *header, gmd_error *error)
{
    gmd_conditions kept;
    gmd_status status = gmd_conditions_copy(&kept, header, error);
    if (status == GMD_OK) {
        gmd_conditions_free(&p->header.conditions);
        p->header.conditions = kept;
        p->options = gmd_options_under(&p->given, &p->header.conditions);
    }
    return status;
}

/* Whose state this process holds, of a device that is not there any more: it cannot be opened
 * again. */
static char closed_library[sizeof((gmd_subject *)0)->path];

/* Or it starts anew with the next call. */
static void note_closed(const gmd_subject *subject)
{
    char message[512];
    if (!subject->restart || subject->restart("", message, sizeof message) != 0) {
        snprintf(closed_library, sizeof closed_library, "%s", subject->path);
    }
}

static gmd_status open_session(gmd_in_process *p, gmd_error *error)
{
    p->workload = (gmd_workload){
        .name = "input", .kind = "trace", .trace = &p->header, .body = gmd_play_trace};
    p->shared = child_map_shared(&p->given, &p->workload, true);
    if (!p->shared) {
        return gmd_fail(error, GMD_NO_MEMORY, "no memory for what a run leaves");
    }
    gmd_status status = session_open(&p->session, &p->options, &p->workload, p->shared, error);
    if (status == GMD_OK && strcmp(p->session.subject.path, closed_library) == 0) {
        status = gmd_fail(error, GMD_BAD_INPUT,
                          "%s was in use in this process before, and exports no gmd_restart: it "
                          "needs a process of its own",
                          p->given.subject.allocator);
    }
    p->session.persistent.is_on = p->session.persistent.is_in_process = true;
    p->session.muting.is_needless = mute_is_needless();
    child_keep_opening(&p->opening, p->shared);
    return status;
}

gmd_status gmd_in_process_open(gmd_in_process **out, const gmd_run_options *options,
                               gmd_error *error)
{
    *out = NULL;
    if (options->device.kind != GMD_DEVICE_SIM) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "a real device cannot be set back between inputs: expected --device sim");
    }
    const gmd_subject_source source = session_source(options);
    gmd_status status = gmd_subject_check(&source, error);
    gmd_in_process *p = status == GMD_OK ? calloc(1, sizeof *p) : NULL;
    if (!p) {
        return status != GMD_OK ? status
                                : gmd_fail(error, GMD_NO_MEMORY, "no host memory for a session");
    }
    persistent_keep_memory();
    p->given = *options;
    p->given.process.no_second_run =
        "many inputs are run here: gmd run of one makes the second run";
    p->asked_refusal = CHOSEN_BY_LENGTH;
    status = take_header(p, &options->conditions, error);
    if (status == GMD_OK) {
        status = open_session(p, error);
    }
    if (status == GMD_OK) {
        *out = p;
    } else {
        gmd_in_process_close(p);
    }
    return status;
}

void gmd_in_process_ask_after(gmd_in_process *p, uint64_t refusal)
{
    p->asked_refusal = refusal;
}

static uint64_t choose_refusal(const gmd_in_process *p, const gmd_trace *trace)
{
    static const uint8_t refusals[] = {1, 0, 2, 1, 4, 0, 3, 8};
    return p->asked_refusal == CHOSEN_BY_LENGTH ? refusals[trace->count % sizeof refusals]
                                                : p->asked_refusal;
}

static gmd_status renew(gmd_in_process *p, const gmd_conditions *header, gmd_error *error)
{
    bool is_same = gmd_conditions_same_device(&p->header.conditions, header);
    gmd_status status = is_same ? GMD_OK : take_header(p, header, error);
    if (status == GMD_OK) {
        status = session_renew(&p->session, &p->options, error);
    }
    p->needs_renewal = status != GMD_OK;
    return status;
}

/* As before the first request of the first input, under this header. */
static gmd_status set_back(gmd_in_process *p, const gmd_trace *trace, gmd_error *error)
{
    const gmd_conditions header = gmd_conditions_in_force(&trace->conditions, &p->given.conditions);
    bool is_same = gmd_conditions_same_device(&p->header.conditions, &header);
    if (!p->has_run && !p->needs_renewal && is_same) {
        return GMD_OK;
    }
    if (p->session.subject.restart) {
        child_begin_run(p->shared, NULL, GMD_STAGE_LOADING);
        return renew(p, &header, error);
    }
    if (!is_same) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "the allocator %s exports no gmd_restart: it cannot follow an input to "
                        "other devices, settings or schedules in one process",
                        p->given.subject.allocator);
    }
    child_begin_run(p->shared, &p->opening, GMD_STAGE_CLEAN_UP);
    return session_restart(&p->session, error);
}

static void play(gmd_in_process *p, const gmd_trace *trace)
{
    gmd_session *s = &p->session;
    const gmd_outcome *o = &p->taken.outcome;
    p->workload.trace = trace;
    p->has_run = true;
    s->persistent.asked_refusal = choose_refusal(p, trace);
    bool has_passed = persistent_play(s);
    p->workload.trace = &p->header;
    if (!child_judge_end(&p->given, &p->workload, p->shared, &p->opening, NULL, &p->taken)) {
        has_passed = false;
    }
    p->is_spent = !has_passed && (!s->subject.restart || o->violation_count);
}

gmd_status gmd_in_process_run(gmd_in_process *p, const gmd_trace *trace,
                              const gmd_outcome **outcome, gmd_error *error)
{
    *outcome = &p->taken.outcome;
    if (p->is_spent) {
        return gmd_fail(error, GMD_FAILED,
                        "an earlier input did not pass: nothing that runs after it in this process "
                        "can be trusted");
    }
    gmd_status status = set_back(p, trace, error);
    if (status == GMD_OK) {
        play(p, trace);
    }
    return status;
}

void gmd_in_process_close(gmd_in_process *p)
{
    if (!p) {
        return;
    }
    if (p->session.runtime.sim) {
        session_close(&p->session);
        note_closed(&p->session.subject);
    }
    child_unmap_shared(p->shared);
    gmd_trace_free(&p->header);
    free(p);
}
