#include "scout.h"

#include "child.h"

static void take_input(gmd_session *s, gmd_run_options *options, gmd_trace *trace,
                       gmd_request *requests, char **functions, const gmd_scout_input *input)
{
    trace->functions.items = functions + input->first_function;
    trace->functions.count = input->function_count;
    trace->requests = requests + input->first;
    trace->count = input->count;
    trace->threads.count = input->thread_count;
    trace->blocks.count = input->block_count;
    trace->streams.count = input->stream_count;
    trace->interleave = input->interleave;
    options->interleave =
        input->interleave.kind == GMD_SCHEDULE_UNSTATED ? NULL : &trace->interleave;
    s->is_scouting = true;
    s->scouted_refusal = input->probed_refusal;
}

/* The outcome as it was before the first request; the oracles' part is the judge's. */
static void forget_outcome(gmd_outcome *o)
{
    o->verdict = GMD_PASS;
    o->requests = o->device_calls = o->known_count = 0;
    o->violation_count = o->phase_count = o->phases_dropped = o->note_count = 0;
}

#define LAPSE_MAX                                                                                  \
    8 /* a third of a second each, at worst: then the parent decides what comes next */

/* False: it shows something, or cannot be run. */
static bool play_next(gmd_session *s, gmd_scout_list *list)
{
    gmd_outcome *o = &s->shared->outcome;
    gmd_error error = {""};
    if (atomic_load(&list->passed)) {
        forget_outcome(o);
        gmd_status status = gmd_session_restart(s, &error);
        if (status != GMD_OK) {
            gmd_outcome_error(o, status, &error);
            return false;
        }
    }
    s->lapses = 0;
    s->expects_lapses = list->expects_lapses;
    gmd_child_play(s);
    if (o->violation_count || o->verdict != GMD_PASS) {
        return false;
    }
    list->requests += o->requests;
    list->faults_planted += o->faults_planted;
    list->faults_unfired += o->faults_unfired;
    list->lapses += s->lapses;
    list->states[atomic_load(&list->passed)] = s->state_hash;
    atomic_fetch_add(&list->passed, 1);
    list->has_stopped = !list->expects_lapses && list->lapses >= LAPSE_MAX;
    return !list->has_stopped;
}

void gmd_scout_inputs(gmd_session *s, gmd_trace *trace, gmd_request *requests, gmd_scout_list *list)
{
    const gmd_run_options *given = s->options;
    gmd_run_options options = *given;
    s->options = &options;
    char **functions = trace->functions.items;
    bool goes_on = true;
    for (size_t i = 0; i < list->count && goes_on; i++) {
        take_input(s, &options, trace, requests, functions, &list->inputs[i]);
        goes_on = play_next(s, list);
    }
    s->options = given;
}
