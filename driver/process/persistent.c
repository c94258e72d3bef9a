#include "persistent.h"

#include "child.h"
#include "gmd_open.h"
#include "gmd_restart.h"
#include "gmd_session_state.h"

#include <malloc.h>

static void take_header(gmd_run_options *options, const gmd_run_options *given,
                        const persistent_entry *input)
{
    const persistent_header *h = &input->header;
    *options = *given;
    if (input->has_header) {
        options->conditions = h->conditions;
        options->conditions.conf = h->conf;
    }
}

static void take_input(gmd_session *s, gmd_run_options *options, gmd_trace *trace,
                       gmd_request *requests, char **functions, const persistent_entry *input)
{
    trace->functions.items = functions + input->first_function;
    trace->functions.count = input->function_count;
    trace->requests = requests + input->first;
    trace->count = input->count;
    trace->threads.count = input->thread_count;
    trace->blocks.count = input->block_count;
    trace->streams.count = input->stream_count;
    trace->conditions.interleave = input->interleave;
    options->conditions.interleave = input->interleave;
    s->persistent.is_on = true;
    holds_hurry(s->holds);
    features_start(&s->features, options->recording.features);
    s->persistent.asked_refusal = input->probed_refusal;
}

#define LAPSE_MAX                                                                                  \
    8 /* a third of a second each, at worst: then the parent decides what comes next */

#define KEPT_BYTES   (64 << 20)
#define UNMAPPED_MAX (32 << 20) /* the most that glibc takes */

void persistent_keep_memory(void)
{
    mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
    mallopt(M_MMAP_THRESHOLD, UNMAPPED_MAX);
}

bool persistent_play(gmd_session *s)
{
    const gmd_outcome *o = &s->shared->outcome;
    s->interleaving.lapses = 0;
    child_play(s);
    return !o->violation_count && o->verdict == GMD_PASS;
}

/* The session as it was before its first input. */
static gmd_status set_back(gmd_session *s, const gmd_outcome *opening,
                           const gmd_run_options *options, gmd_error *error)
{
    /* A real device cannot be set back: what an allocator made anew forgets, it would keep. */
    if (s->subject.restart && s->runtime.sim) {
        child_begin_run(s->shared, NULL, GMD_STAGE_LOADING);
        return session_renew(s, options, error);
    }
    child_begin_run(s->shared, opening, GMD_STAGE_CLEAN_UP);
    return session_restart(s, error);
}

static void add_costs(persistent_list *list, const gmd_outcome *o)
{
    for (uint32_t i = 0; i < o->oracle_count; i++) {
        list->costs[i].asked += o->oracles[i].asked;
        list->costs[i].seconds += o->oracles[i].seconds;
    }
}

/* False: it shows something, or cannot be run. */
static bool play_next(gmd_session *s, const gmd_outcome *opening, const gmd_run_options *options,
                      bool is_fresh, persistent_list *list)
{
    gmd_outcome *o = &s->shared->outcome;
    gmd_error error = {""};
    gmd_status status = is_fresh ? GMD_OK : set_back(s, opening, options, &error);
    if (status != GMD_OK) {
        outcome_error(o, status, &error);
        return false;
    }
    s->judge.features = s->features.map ? &s->features : NULL;
    s->interleaving.expects_lapses = list->expects_lapses;
    if (!persistent_play(s)) {
        return false;
    }
    list->fresh[atomic_load(&list->passed)] = s->features.fresh;
    list->requests += o->requests;
    list->faults_planted += o->faults_planted;
    list->faults_unfired += o->faults_unfired;
    list->known += o->known_count;
    add_costs(list, o);
    list->lapses += s->interleaving.lapses;
    list->states[atomic_load(&list->passed)] = s->persistent.state_hash;
    atomic_fetch_add(&list->passed, 1);
    list->has_stopped = !list->expects_lapses && list->lapses >= LAPSE_MAX;
    return !list->has_stopped;
}

void persistent_play_all(gmd_session *s, const gmd_outcome *opening, gmd_trace *trace,
                         gmd_request *requests, persistent_list *list)
{
    const gmd_run_options *given = s->options;
    gmd_run_options options = *given;
    s->options = &options;
    char **functions = trace->functions.items;
    bool goes_on = true;
    for (size_t i = 0; i < list->count && goes_on; i++) {
        const persistent_entry *input = &list->inputs[i];
        take_header(&options, given, input);
        take_input(s, &options, trace, requests, functions, input);
        bool is_fresh = i == 0 && list->is_fresh && !input->has_header;
        goes_on = play_next(s, opening, &options, is_fresh, list);
    }
    s->options = given;
}
