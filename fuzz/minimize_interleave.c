/* minimize_interleave.c - cases whose threads are interleaved: without it where that will do; and
 * since a candidate with fewer requests needs another interleaving, several are tried for each. */
#include "minimize_internal.h"

#include <stdlib.h>
#include <string.h>

#define SEEDS_TRIED 24 /* for each candidate, all in one process */

static bool is_seeded(const gmd_trace *t)
{
    return t->interleave.kind == GMD_SCHEDULE_SEEDED && t->threads.count > 1;
}

/* The first of the inputs from `at` on that seems to show the cause; `count`: none does. */
static size_t scout(gmd_minimizer *m, const gmd_persistent_input *inputs, size_t at, size_t count)
{
    while (at < count) {
        gmd_persistent_result scouted;
        gmd_error error;
        if (gmd_runner_scout(m->runner, &inputs[at], count - at, &scouted, &error) != GMD_OK) {
            return count;
        }
        at += scouted.passed;
        if (scouted.is_suspect && gmd_cause_find(scouted.outcome, m->cause)) {
            return at;
        }
        if (!scouted.is_suspect && !scouted.passed) {
            return count;
        }
        at += scouted.is_suspect;
    }
    return count;
}

bool gmd_minimizer_find_seed(gmd_minimizer *m, const gmd_trace *candidate, uint64_t *seed)
{
    gmd_persistent_input inputs[SEEDS_TRIED];
    if (!is_seeded(candidate)) {
        return false;
    }
    for (uint64_t i = 0; i < SEEDS_TRIED; i++) {
        inputs[i] = (gmd_persistent_input){.trace = *candidate};
        inputs[i].trace.interleave.seed = i;
    }
    *seed = scout(m, inputs, 0, SEEDS_TRIED);
    return *seed < SEEDS_TRIED;
}

/* All on one thread. */
static bool drop_threads(gmd_minimizer *m)
{
    gmd_trace header = *m->best;
    header.interleave = (gmd_schedule){.kind = GMD_SCHEDULE_UNSTATED};
    gmd_minimizer_begin(m);
    for (size_t i = 0; i < m->best->count; i++) {
        m->spare[i].thread = 0;
    }
    return gmd_minimizer_try(m, m->best->count, &header);
}

static bool drop_interleave(gmd_minimizer *m)
{
    gmd_trace header = *m->best;
    header.interleave = (gmd_schedule){.kind = GMD_SCHEDULE_UNSTATED};
    gmd_minimizer_begin(m);
    return gmd_minimizer_try(m, m->best->count, &header);
}

/* What comes after the violation in the file may have happened before it, and may not. */
static bool cut_end(gmd_minimizer *m)
{
    size_t count = (size_t)m->result->violation.request + 1;
    if (count >= m->best->count) {
        return false;
    }
    gmd_minimizer_begin(m);
    return gmd_minimizer_try(m, count, NULL);
}

static bool try_choices(gmd_minimizer *m, uint8_t *choices, size_t count)
{
    gmd_trace header = *m->best;
    header.interleave.choices = choices;
    header.interleave.choice_count = count;
    gmd_minimizer_begin(m);
    return gmd_minimizer_try(m, m->best->count, &header);
}

/* Fewer explicit choices, and as many of them as can be 0: going on with the same thread. */
static bool shorten_choices(gmd_minimizer *m)
{
    bool has_changed = false;
    const gmd_schedule *now = &m->best->interleave;
    if (now->kind != GMD_SCHEDULE_EXPLICIT || !now->choice_count) {
        return false;
    }
    uint8_t *choices = malloc(now->choice_count);
    for (size_t cut = now->choice_count; choices && cut > 0 && !m->is_over; cut /= 2) {
        while (cut <= now->choice_count && !m->is_over) {
            memcpy(choices, now->choices, now->choice_count);
            if (!try_choices(m, choices, now->choice_count - cut)) {
                break;
            }
            has_changed = true;
        }
    }
    for (size_t i = 0; choices && i < now->choice_count && !m->is_over; i++) {
        memcpy(choices, now->choices, now->choice_count);
        choices[i] = 0;
        has_changed =
            (now->choices[i] && try_choices(m, choices, now->choice_count)) || has_changed;
    }
    free(choices);
    return has_changed;
}

bool gmd_minimizer_untangle(gmd_minimizer *m)
{
    if (m->best->interleave.kind == GMD_SCHEDULE_UNSTATED) {
        return false;
    }
    if (drop_threads(m) || drop_interleave(m)) {
        return true;
    }
    bool has_changed = cut_end(m);
    return shorten_choices(m) || has_changed;
}
