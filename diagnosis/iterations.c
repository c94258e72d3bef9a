/* iterations.c - where iterations begin: by annotations of the program if it has any that repeat,
 * else by the requests that come again and again, each as often as there are iterations. */
#include "gmd_iterations.h"

#include "gmd_hash.h"

#include <stdlib.h>
#include <string.h>

/* Steps that are annotated are iterations even if there are few; requests may repeat by chance. */
enum { LEAST_ANNOTATED = 2, LEAST_ITERATIONS = 3 };

/* --- moments --------------------------------------------------------------------------------- */

static bool is_alloc(const gmd_recording *r, size_t event)
{
    uint32_t lifetime = r->lifetime_of_event[event];
    return lifetime != GMD_NO_LIFETIME && r->lifetimes[lifetime].born == event + 1;
}

/* What one request of a program is known by, over its iterations. */
static uint64_t key_of(const gmd_recording *r, size_t event)
{
    const gmd_snapshot_event *e = &r->snapshot->events[event];
    uint32_t stack = gmd_origins_get(&r->snapshot->origins, e->origin).stack;
    return gmd_hash_add(gmd_hash_number(e->size + 1), stack);
}

/* --- by annotations -------------------------------------------------------------------------- */

static bool begins_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* How well an annotation tells iterations apart: torch.profiler's own steps best, then PyTorch's
 * hooks of optimizers. 0: not at all. */
static int rank_annotation(const char *name)
{
    static const char *const names[] = {"Optimizer.zero_grad#", "Optimizer.step#", "ProfilerStep#"};
    for (int rank = sizeof names / sizeof *names; rank > 0; rank--) {
        if (begins_with(name, names[rank - 1])) {
            return rank;
        }
    }
    return 0;
}

static bool marks_iteration(const gmd_annotation *a)
{
    return a->stage == GMD_ANNOTATION_START;
}

/* The text that names iterations best: among equal ones the most frequent, then the first. 0: none.
 */
static uint32_t choose_annotation(const gmd_recording *r, const uint32_t *counts)
{
    const gmd_snapshot *s = r->snapshot;
    uint32_t best = 0;
    int best_rank = 0;
    for (size_t i = 0; i < s->annotation_count; i++) {
        const gmd_annotation *a = &s->annotations[i];
        uint32_t count = counts[a->name];
        int rank = rank_annotation(gmd_origins_text(&s->origins, a->name, NULL));
        bool is_better = rank > best_rank || (rank == best_rank && count > counts[best]);
        if (rank && count >= LEAST_ANNOTATED && is_better) {
            best = a->name;
            best_rank = rank;
        }
    }
    return best;
}

/* Steps of optimizers end iterations; whatever else is annotated begins them. */
static gmd_annotation_stage boundary_of(const gmd_recording *r, uint32_t name)
{
    const char *text = gmd_origins_text(&r->snapshot->origins, name, NULL);
    return begins_with(text, "Optimizer.step#") ? GMD_ANNOTATION_END : GMD_ANNOTATION_START;
}

static void add_start(gmd_iterations *it, const gmd_recording *r, uint32_t moment)
{
    bool is_new = it->count == 0 || moment > it->starts[it->count - 1];
    if (moment <= r->last && is_new) {
        it->starts[it->count++] = moment;
    }
}

/* Where the first iteration begins, if only the ends are known: where what the second one begins
 * with is asked for the first time. */
static uint32_t begin_of_first(const gmd_recording *r, uint32_t first_end)
{
    size_t event = first_end - 1;
    while (event < r->last &&
           !(r->snapshot->events[event].device == r->device && is_alloc(r, event))) {
        event++;
    }
    if (event >= r->last) {
        return r->first;
    }
    uint64_t key = key_of(r, event);
    for (size_t i = r->first - 1; i + 1 < first_end; i++) {
        if (is_alloc(r, i) && key_of(r, i) == key) {
            return (uint32_t)i + 1;
        }
    }
    return r->first;
}

static void take_annotations(gmd_iterations *it, const gmd_recording *r, uint32_t name)
{
    const gmd_snapshot *s = r->snapshot;
    gmd_annotation_stage boundary = boundary_of(r, name);
    bool needs_first = boundary == GMD_ANNOTATION_END;
    for (size_t i = 0; i < s->annotation_count; i++) {
        const gmd_annotation *a = &s->annotations[i];
        if (a->name != name || a->stage != boundary) {
            continue;
        }
        uint32_t moment = gmd_moment_after(r, a->time_us);
        if (needs_first) {
            add_start(it, r, begin_of_first(r, moment));
            needs_first = false;
        }
        add_start(it, r, moment);
    }
    it->source = GMD_ITERATIONS_ANNOTATED;
    it->annotation = name;
}

static bool find_annotated(gmd_iterations *it, const gmd_recording *r)
{
    const gmd_snapshot *s = r->snapshot;
    uint32_t *counts = calloc(gmd_origins_text_count(&s->origins), sizeof *counts);
    it->starts = malloc((s->annotation_count + 3) * sizeof *it->starts);
    if (!counts || !it->starts) {
        free(counts);
        return false;
    }
    for (size_t i = 0; i < s->annotation_count; i++) {
        counts[s->annotations[i].name] += marks_iteration(&s->annotations[i]);
    }
    uint32_t name = choose_annotation(r, counts);
    if (name) {
        take_annotations(it, r, name);
    }
    free(counts);
    return true;
}

/* --- by requests that repeat ----------------------------------------------------------------- */

typedef struct request {
    uint64_t key;
    uint32_t moment;
    uint32_t number; /* among the device's allocations */
} request;

static int compare_requests(const void *a, const void *b)
{
    const request *x = a, *y = b;
    if (x->key != y->key) {
        return x->key < y->key ? -1 : 1;
    }
    return (x->moment > y->moment) - (x->moment < y->moment);
}

static uint32_t list_requests(const gmd_recording *r, request *to)
{
    uint32_t count = 0;
    for (size_t i = r->first ? r->first - 1 : 0; i < r->last; i++) {
        if (is_alloc(r, i)) {
            to[count] = (request){key_of(r, i), (uint32_t)i + 1, count};
            count++;
        }
    }
    return count;
}

/* Whether requests of one key come at about even distances, and over at least half of the
 * recording: a loop of the set-up is over soon. */
static bool is_regular(const request *first, size_t count, uint32_t requests)
{
    enum { MOST_OF_MEAN = 4 };
    uint64_t span = first[count - 1].number - first[0].number, longest = 0;
    for (size_t i = 1; i < count; i++) {
        uint64_t gap = first[i].number - first[i - 1].number;
        longest = gap > longest ? gap : longest;
    }
    return longest * (count - 1) <= MOST_OF_MEAN * span && span * 2 >= requests;
}

typedef struct repetition { /* the requests of one key */
    const request *first;
    size_t count;
} repetition;

/* The next key's, from `*at` on; false: no more. */
static bool next_repetition(const request *sorted, size_t count, size_t *at, repetition *found)
{
    size_t start = *at;
    if (start >= count) {
        return false;
    }
    while (*at < count && sorted[*at].key == sorted[start].key) {
        (*at)++;
    }
    *found = (repetition){&sorted[start], *at - start};
    return true;
}

/* Keys that come equally often: how many, and the one of them that comes first. */
typedef struct frequency {
    uint32_t keys;
    const request *first;
} frequency;

static void count_frequencies(const request *sorted, uint32_t count, frequency *by_count)
{
    repetition it;
    for (size_t at = 0; next_repetition(sorted, count, &at, &it);) {
        if (it.count < LEAST_ITERATIONS || !is_regular(it.first, it.count, count)) {
            continue;
        }
        frequency *f = &by_count[it.count];
        f->keys++;
        if (!f->first || it.first->moment < f->first->moment) {
            f->first = it.first;
        }
    }
}

/* Whether equally many of the requests lie in each iteration; `n` of the anchor's begin them. The
 * first ones may come before the anchor's first: then all do. */
static bool keeps_step(const repetition *it, const request *anchor, size_t n)
{
    size_t each = it->count / n;
    if (it->count % n != 0) {
        return false;
    }
    bool comes_before = it->first[0].moment < anchor[0].moment;
    for (size_t i = 0; i < n; i++) {
        const request *first = &it->first[i * each], *last = first + each - 1;
        bool follows = comes_before ? last->moment <= anchor[i].moment &&
                                          (i == 0 || first->moment > anchor[i - 1].moment)
                                    : first->moment >= anchor[i].moment &&
                                          (i + 1 == n || last->moment < anchor[i + 1].moment);
        if (!follows) {
            return false;
        }
    }
    return true;
}

/* How many keys keep step with `n` iterations. */
static uint32_t count_in_step(const request *sorted, uint32_t count, size_t n,
                              const request *anchor)
{
    uint32_t in_step = 0;
    repetition it;
    for (size_t at = 0; next_repetition(sorted, count, &at, &it);) {
        in_step +=
            it.count >= n && is_regular(it.first, it.count, count) && keeps_step(&it, anchor, n);
    }
    return in_step;
}

enum { CANDIDATES = 8 };

/* The numbers that most keys come by, the most first; how many. */
static size_t list_candidates(const frequency *by_count, size_t most, size_t candidates[CANDIDATES])
{
    size_t count = 0;
    for (size_t n = LEAST_ITERATIONS; n <= most; n++) {
        if (by_count[n].keys == 0) {
            continue;
        }
        size_t at = count < CANDIDATES ? count++ : CANDIDATES;
        for (; at > 0 && by_count[candidates[at - 1]].keys < by_count[n].keys; at--) {
            if (at < CANDIDATES) {
                candidates[at] = candidates[at - 1];
            }
        }
        if (at < CANDIDATES) {
            candidates[at] = n;
        }
    }
    return count;
}

/* The number of iterations, each of which a request of `*anchor` begins; 0: nothing repeats. In a
 * loop within a loop the outer one counts: all of the inner keep step with it. */
static size_t find_anchor(const request *sorted, uint32_t count, frequency *by_count,
                          const request **anchor)
{
    size_t candidates[CANDIDATES], best = 0;
    uint32_t best_in_step = 0, regular = 0;
    count_frequencies(sorted, count, by_count);
    for (size_t n = LEAST_ITERATIONS; n <= count; n++) {
        regular += by_count[n].keys;
    }
    size_t candidate_count = list_candidates(by_count, count, candidates);
    for (size_t i = 0; i < candidate_count; i++) {
        size_t n = candidates[i];
        uint32_t in_step = count_in_step(sorted, count, n, by_count[n].first);
        if (in_step > best_in_step || (in_step == best_in_step && n < best)) {
            best = n;
            best_in_step = in_step;
            *anchor = by_count[n].first;
        }
    }
    return 3 * (uint64_t)best_in_step >= regular ? best : 0;
}

static bool take_requests(gmd_iterations *it, const gmd_recording *r, const request *anchor,
                          size_t n)
{
    uint32_t *starts = malloc((n + 1) * sizeof *starts);
    if (!starts) {
        return false;
    }
    free(it->starts);
    it->starts = starts;
    for (size_t i = 0; i < n; i++) {
        add_start(it, r, anchor[i].moment);
    }
    it->source = GMD_ITERATIONS_FROM_EVENTS;
    return true;
}

static bool find_repeated(gmd_iterations *it, const gmd_recording *r)
{
    request *requests = malloc((r->lifetime_count + 1) * sizeof *requests);
    frequency *by_count = calloc(r->lifetime_count + 2, sizeof *by_count);
    bool ok = requests && by_count;
    if (ok) {
        const request *anchor;
        uint32_t count = list_requests(r, requests);
        qsort(requests, count, sizeof *requests, compare_requests);
        size_t n = find_anchor(requests, count, by_count, &anchor);
        ok = n == 0 || take_requests(it, r, anchor, n);
    }
    free(requests);
    free(by_count);
    return ok;
}

/* --- the whole ------------------------------------------------------------------------------- */

static int compare_numbers(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static uint32_t length_of(const gmd_iterations *it, uint32_t i)
{
    return it->starts[i + 1] - it->starts[i];
}

/* The median length, and how many iterations come before the first of about that length. */
static bool measure(gmd_iterations *it)
{
    enum { NEAR_PERCENT = 20 };
    uint32_t *lengths = malloc(it->count * sizeof *lengths);
    if (!lengths) {
        return false;
    }
    for (uint32_t i = 0; i < it->count; i++) {
        lengths[i] = length_of(it, i);
    }
    qsort(lengths, it->count, sizeof *lengths, compare_numbers);
    uint64_t median = lengths[it->count / 2];
    it->period_events = median;
    it->warm_up = 1;
    while (it->warm_up < it->count / 3) {
        uint64_t length = length_of(it, it->warm_up);
        if (length * 100 <= median * (100 + NEAR_PERCENT) &&
            length * 100 >= median * (100 - NEAR_PERCENT)) {
            break;
        }
        it->warm_up++;
    }
    free(lengths);
    return true;
}

gmd_status gmd_iterations_find(gmd_iterations *iterations, const gmd_recording *recording,
                               gmd_error *error)
{
    *iterations = (gmd_iterations){0};
    if (recording->first == 0) {
        return GMD_OK; /* segments only */
    }
    bool ok = find_annotated(iterations, recording) &&
              (iterations->count || find_repeated(iterations, recording));
    if (ok && iterations->count) {
        iterations->starts[iterations->count] = recording->last + 1;
        ok = measure(iterations);
    }
    if (!ok) {
        gmd_iterations_free(iterations);
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for the recording's iterations");
    }
    return GMD_OK;
}

void gmd_iterations_free(gmd_iterations *iterations)
{
    free(iterations->starts);
    *iterations = (gmd_iterations){0};
}

uint32_t gmd_iteration_of(const gmd_iterations *iterations, uint32_t moment)
{
    uint32_t low = 0, high = iterations->count;
    if (high == 0 || moment < iterations->starts[0]) {
        return GMD_SET_UP;
    }
    if (moment >= iterations->starts[high]) {
        return high;
    }
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (iterations->starts[middle] <= moment) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}
