#include "memory_limit.h"
#include "gmd_min.h"

#include <stdlib.h>

/* Whether the run may have been given back because its request was refused: then reserved bytes and
 * those asked for passed the limit together. */
static bool is_candidate(const free_run *run)
{
    const run_facts *f = &run->facts;
    return f->follower == FOLLOWED_BY_NEW_MEMORY && !f->is_between_pages && !f->continues &&
           !f->would_have_served && f->is_all && (!f->knows_retries || f->has_retried);
}

static uint64_t passed_with(const free_run *run)
{
    return run->needed > UINT64_MAX - run->reserved ? UINT64_MAX : run->reserved + run->needed;
}

/* Some of what was cached was left: neither an empty_cache() nor a retry. */
static bool is_partial(const free_run *run)
{
    const run_facts *f = &run->facts;
    return f->follower == FOLLOWED_BY_NEW_MEMORY && !f->is_between_pages && !f->is_all &&
           !f->has_retried;
}

/* How many of the `possible` runs are retries at the limit. */
static uint64_t count_retries(const free_runs *runs, uint64_t possible, uint64_t own,
                              uint64_t recorded_retries)
{
    if (recorded_retries != GMD_RETRIES_UNKNOWN) {
        uint64_t succeeded =
            recorded_retries > runs->ooms[0] ? recorded_retries - runs->ooms[0] : 0;
        return gmd_min(succeeded, possible);
    }
    return possible * 4 > own ? possible : 0;
}

static int compare_descending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

/* Below what the limit is because of the retries. False: no host memory. */
static bool find_below_for_retries(const free_runs *runs, uint64_t recorded_retries,
                                   uint64_t *below)
{
    uint64_t *passed = malloc((runs->count + 1) * sizeof *passed), own = 0;
    size_t possible = 0;
    *below = UINT64_MAX;
    if (!passed) {
        return false;
    }
    for (size_t i = 0; i < runs->count; i++) {
        const free_run *run = &runs->items[i];
        bool explains = is_candidate(run) && passed_with(run) > runs->at_least;
        if (explains) {
            passed[possible++] = passed_with(run);
        }
        own += !explains && run->facts.follower != FOLLOWED_BY_REFUSAL;
    }
    if (possible) {
        qsort(passed, possible, sizeof *passed, compare_descending);
        uint64_t retries = count_retries(runs, possible, own, recorded_retries);
        *below = retries ? passed[retries - 1] : UINT64_MAX;
    }
    free(passed);
    return true;
}

static uint64_t share_of(uint64_t bytes, double threshold)
{
    double whole = threshold > 0 ? (double)bytes / threshold : 1e19;
    return whole < 1e18 ? (uint64_t)whole : UINT64_MAX;
}

/* A part of the cache was given back as garbage, with more reserved than the threshold's share of
 * the limit, or as oversize blocks, for a request that was refused. */
static uint64_t below_for_partial(const free_run *run, const gmd_recorded_settings *settings)
{
    uint64_t collected = share_of(run->reserved, settings->gc_threshold);
    uint64_t refused = passed_with(run);
    if (settings->max_split_bytes == UINT64_MAX || !run->is_oversize) {
        return collected;
    }
    return settings->gc_threshold > 0 && collected > refused ? collected : refused;
}

bool memory_limit_infer(const free_runs *runs, const gmd_recorded_settings *settings,
                        const gmd_history_hints *hints, uint64_t *limit_bytes)
{
    uint64_t below;
    if (!find_below_for_retries(runs, hints->recorded_retries, &below)) {
        return false;
    }
    below = gmd_min(below, runs->below);
    for (size_t i = 0; i < runs->count; i++) {
        if (is_partial(&runs->items[i])) {
            below = gmd_min(below, below_for_partial(&runs->items[i], settings));
        }
    }
    *limit_bytes = below == UINT64_MAX || below <= runs->at_least ? 0 : below - 1;
    return true;
}

bool memory_limit_is_contradicted(const free_runs *runs)
{
    uint64_t limit = runs->limit_bytes;
    return runs->below <= runs->at_least ||
           (limit && (runs->at_least > limit || runs->below <= limit));
}
