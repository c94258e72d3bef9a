/* minimize_interleave.c - cases whose threads are interleaved: without it where that will do. */
#include "minimizer.h"

#include <stdlib.h>
#include <string.h>

/* All on one thread. */
static bool drop_threads(minimizer *m)
{
    gmd_conditions header = m->best->conditions;
    header.interleave = (gmd_schedule){.kind = GMD_SCHEDULE_UNSTATED};
    minimizer_begin(m);
    for (size_t i = 0; i < m->best->count; i++) {
        m->spare[i].thread = 0;
    }
    return minimizer_try(m, m->best->count, &header);
}

static bool drop_interleave(minimizer *m)
{
    gmd_conditions header = m->best->conditions;
    header.interleave = (gmd_schedule){.kind = GMD_SCHEDULE_UNSTATED};
    minimizer_begin(m);
    return minimizer_try(m, m->best->count, &header);
}

/* What comes after the violation in the file may have happened before it, and may not. */
static bool cut_end(minimizer *m)
{
    size_t count = (size_t)m->result->violation.request + 1;
    if (count >= m->best->count) {
        return false;
    }
    minimizer_begin(m);
    return minimizer_try(m, count, NULL);
}

static bool try_choices(minimizer *m, uint8_t *choices, size_t count)
{
    gmd_conditions header = m->best->conditions;
    header.interleave.choices = choices;
    header.interleave.choice_count = count;
    minimizer_begin(m);
    return minimizer_try(m, m->best->count, &header);
}

/* Fewer explicit choices, and as many of them as can be 0: going on with the same thread. */
static bool shorten_choices(minimizer *m)
{
    bool has_changed = false;
    const gmd_schedule *now = &m->best->conditions.interleave;
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

bool minimizer_untangle(minimizer *m)
{
    if (m->best->conditions.interleave.kind == GMD_SCHEDULE_UNSTATED) {
        return false;
    }
    if (drop_threads(m) || drop_interleave(m)) {
        return true;
    }
    bool has_changed = cut_end(m);
    return shorten_choices(m) || has_changed;
}
