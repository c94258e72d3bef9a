/* oom_outcomes.c - how a job went on after each of its out-of-memories.
 *
 * cuDNN tries workspaces until one is served: the job goes on with all that it has. An exception
 * that the program catches unwinds its stack: before the next request, most of what the iteration
 * had made is freed. A job that ends asks for nothing more. */
#include "gmd_oom_outcomes.h"

#include "gmd_size.h"

typedef struct walk {
    const gmd_facts *facts;
    gmd_oom_outcome *outcomes;
    size_t count;       /* of OOMs so far */
    uint32_t iteration; /* the next to begin */
    uint32_t start;     /* when the one that runs began; GMD_NEVER: none that counts */
    uint64_t made;      /* bytes of blocks that it made and still holds */
    uint64_t had;       /* what that was at the last OOM */
    uint64_t thrown;    /* bytes of it that were freed since */
    uint64_t asked;     /* bytes since */
    bool is_open;       /* nothing was asked for since */
    bool has_lost;      /* the program catches what is raised */
} walk;

/* A job that looks for its batch size in the first iterations loses nothing that it wants. */
static void follow_iterations(walk *w, uint32_t moment)
{
    const gmd_iterations *it = &w->facts->iterations;
    for (; it->count && w->iteration <= it->count && it->starts[w->iteration] <= moment;
         w->iteration++) {
        bool counts = w->iteration >= it->warm_up && w->iteration < it->count;
        w->start = counts ? it->starts[w->iteration] : GMD_NEVER;
        w->made = 0;
    }
}

static void note_request(walk *w)
{
    enum { MOST_PERCENT = 75 }; /* the batch may stay, or what is made outside of the `try` */
    if (w->is_open && w->had && w->thrown * 100 >= w->had * MOST_PERCENT &&
        w->outcomes[w->count - 1] != GMD_OOM_ENDED) {
        w->outcomes[w->count - 1] = GMD_OOM_LOST;
        w->has_lost = true;
    }
    w->is_open = false;
}

static void note_block(walk *w, uint32_t moment)
{
    const gmd_recording *r = &w->facts->recording;
    uint32_t index = r->lifetime_of_event[moment - 1];
    if (index == GMD_NO_LIFETIME) {
        return;
    }
    const gmd_lifetime *l = &r->lifetimes[index];
    if (l->born == moment) {
        note_request(w);
        w->asked += l->requested;
        w->made += w->start != GMD_NEVER ? l->size : 0;
    } else if (l->freed == moment && w->start != GMD_NEVER && l->born >= w->start) {
        w->made -= l->size;
        w->thrown += l->size;
    }
}

static void note_oom(walk *w, uint32_t moment)
{
    bool is_end = moment == w->facts->recording.ended_by_oom;
    note_request(w);
    w->outcomes[w->count++] = is_end ? GMD_OOM_ENDED : GMD_OOM_SURVIVED;
    w->had = w->made;
    w->thrown = w->asked = 0;
    w->is_open = true;
}

/* The recording knows of a first OOM that ended the job. A job that has worked around some may end
 * with the last, after which it asks for no more than an error's message takes. */
static void note_end(walk *w)
{
    if (w->count && !w->facts->recording.ended_by_oom && !w->has_lost && w->asked < GMD_MIB) {
        w->outcomes[w->count - 1] = GMD_OOM_ENDED;
    }
}

void gmd_oom_outcomes_find(gmd_oom_outcome *outcomes, const gmd_facts *facts)
{
    const gmd_recording *r = &facts->recording;
    walk w = {.facts = facts, .start = GMD_NEVER};
    w.outcomes = outcomes;
    for (uint32_t moment = r->first; moment && moment <= r->last; moment++) {
        const gmd_snapshot_event *e = gmd_event_at(r, moment);
        if (e->device != r->device) {
            continue;
        }
        follow_iterations(&w, moment);
        if (e->action == GMD_ACTION_OOM) {
            note_oom(&w, moment);
        } else {
            note_block(&w, moment);
        }
    }
    note_end(&w);
}

const char *gmd_oom_outcome_name(gmd_oom_outcome outcome)
{
    static const char *const names[] = {
#define GMD_OOM_OUTCOME_NAME(name, text) text,
        GMD_OOM_OUTCOMES(GMD_OOM_OUTCOME_NAME)
#undef GMD_OOM_OUTCOME_NAME
    };
    return names[outcome];
}

const char *gmd_oom_outcome_title(gmd_oom_outcome outcome)
{
    static const char *const titles[] = {[GMD_OOM_SURVIVED] =
                                             "Out of memory, which the job survived",
                                         [GMD_OOM_LOST] = "Out of memory, which cost an iteration",
                                         [GMD_OOM_ENDED] = "Out of memory, which ended the job"};
    return titles[outcome];
}
