/* class_eval_graph.c - an evaluation that builds graphs nobody uses.
 *
 * It looks at iterations without a backward pass: without graphs each layer's output is freed as
 * soon as the next layer has it; with them all are there until the iteration's output goes. */
#include "classes.h"

#include "gmd_size.h"

#include <inttypes.h>
#include <stdlib.h>

typedef struct pass {   /* one iteration */
    uint64_t allocated; /* bytes, by way of modules */
    uint64_t held;      /* of them, still there when the last of them was allocated */
    uint64_t blocks;
    uint32_t last; /* moment of the last of them */
    bool has_backward;
} pass;

static bool is_of_module(const class_view *view, const gmd_lifetime *l)
{
    const retained_group group = {
        .stack = gmd_origins_get(view->facts->places.origins, l->origin).stack};
    return group_passes(view, &group, "torch/nn/modules/module.py");
}

/* In a recording with frames, what has none is allocated by the thread of backward(). */
static void note_block(const class_view *view, pass *passes, const gmd_lifetime *l)
{
    uint32_t at = gmd_iteration_of(&view->facts->iterations, l->born);
    if (at == GMD_SET_UP || at >= view->facts->iterations.count) {
        return;
    }
    if (gmd_origins_get(view->facts->places.origins, l->origin).stack == 0) {
        passes[at].has_backward = true;
    } else if (is_of_module(view, l)) {
        passes[at].allocated += l->size;
        passes[at].blocks++;
        passes[at].last = l->born > passes[at].last ? l->born : passes[at].last;
    }
}

static void note_held(const class_view *view, pass *passes, const gmd_lifetime *l)
{
    uint32_t at = gmd_iteration_of(&view->facts->iterations, l->born);
    if (at == GMD_SET_UP || at >= view->facts->iterations.count || !is_of_module(view, l)) {
        return;
    }
    passes[at].held += l->freed > passes[at].last ? l->size : 0;
}

static pass *list_passes(const class_view *view)
{
    const gmd_facts *f = view->facts;
    pass *passes = calloc((size_t)f->iterations.count + 1, sizeof *passes);
    for (size_t i = 0; passes && i < f->recording.lifetime_count; i++) {
        note_block(view, passes, &f->recording.lifetimes[i]);
    }
    for (size_t i = 0; passes && i < f->recording.lifetime_count; i++) {
        note_held(view, passes, &f->recording.lifetimes[i]);
    }
    return passes;
}

static bool builds_graph(const pass *p)
{
    enum { LEAST_BLOCKS = 4, HELD_PERCENT = 40 };
    return !p->has_backward && p->blocks >= LEAST_BLOCKS &&
           p->held * 100 >= p->allocated * HELD_PERCENT;
}

bool look_for_eval_graph(const class_view *view, gmd_job_finding *finding)
{
    const gmd_facts *f = view->facts;
    pass *passes = list_passes(view);
    uint32_t building = 0, largest = 0;
    char held[24];
    for (uint32_t i = 0; passes && i < f->iterations.count; i++) {
        if (builds_graph(&passes[i])) {
            building++;
            largest = passes[i].held > passes[largest].held || !building ? i : largest;
        }
    }
    bool is_found = building >= 2;
    for (size_t i = 0; i < view->retained->count; i++) {
        is_found = is_found && !group_grows(view, &view->retained->groups[i]);
    }
    if (is_found) {
        finding->bytes = passes[largest].held;
        finding->confidence = 0.85;
        for (size_t i = 0; i < f->recording.lifetime_count; i++) {
            const gmd_lifetime *l = &f->recording.lifetimes[i];
            if (gmd_iteration_of(&f->iterations, l->born) == largest && is_of_module(view, l) &&
                l->freed > passes[largest].last) {
                blame_line(finding, gmd_places_frame(&f->places, l->origin), l->size, false);
            }
        }
        say_evidence(finding,
                     "%" PRIu32 " of %" PRIu32 " iterations have no backward(), and yet %s of what "
                     "the modules make is held until the iteration's end, as a graph would.",
                     building, f->iterations.count, gmd_format_size(finding->bytes, held));
        say_fix(finding,
                "with torch.no_grad():  # or torch.inference_mode(), around the evaluation");
    }
    free(passes);
    return is_found;
}
