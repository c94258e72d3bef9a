/* iterations.c - where iterations begin: by annotations of the program if it has any that repeat,
 * else by the requests that come again and again, each as often as there are iterations. */
#include "gmd_iterations.h"

#include "gmd_hash.h"
#include "gmd_min.h"

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

/* What one request of a program is known by, over its iterations: its stack and its size; or the
 * stack alone, where each iteration has sizes of its own. */
typedef enum request_key { BY_STACK_AND_SIZE, BY_STACK } request_key;

static uint64_t key_of(const gmd_recording *r, size_t event, request_key by)
{
    const gmd_snapshot_event *e = &r->snapshot->events[event];
    uint32_t stack = gmd_origins_get(&r->snapshot->origins, e->origin).stack;
    return gmd_hash_add(gmd_hash_number(by == BY_STACK ? 0 : e->size + 1), stack);
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
    uint64_t key = key_of(r, event, BY_STACK_AND_SIZE);
    for (size_t i = r->first - 1; i + 1 < first_end; i++) {
        if (is_alloc(r, i) && key_of(r, i, BY_STACK_AND_SIZE) == key) {
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

/* What the program asked the device for from one moment up to another. What backward() asks for
 * follows from that, and not in step with it where it goes through the graphs of all iterations so
 * far: it is left out where stacks tell. */
static uint32_t list_requests(const gmd_recording *r, const gmd_places *places, uint32_t from,
                              uint32_t end, request_key by, request *to)
{
    uint32_t count = 0;
    for (size_t i = from ? from - 1 : 0; i + 1 < end; i++) {
        unsigned parts = gmd_places_parts(places, r->snapshot->events[i].origin);
        if (is_alloc(r, i) && !(parts & GMD_PART_BACKWARD)) {
            to[count] = (request){key_of(r, i, by), (uint32_t)i + 1, count};
            count++;
        }
    }
    return count;
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

/* A key's requests in groups of equally many, one group for each iteration. */
typedef struct beat {
    const request *first;
    size_t each, count; /* requests of a group; groups */
} beat;

static uint32_t beat_moment(const beat *b, size_t i)
{
    return b->first[i * b->each].moment;
}

static uint64_t gap_before(const repetition *it, size_t i)
{
    return it->first[i].number - it->first[i - 1].number;
}

/* Requests that come in bursts, as those of a model's layers: the gaps between bursts are far
 * longer than those in them. Where all gaps are about the same, each request is a group of its own.
 */
static beat beat_of(const repetition *it)
{
    enum { FAR_LONGER = 4 };
    uint64_t longest = 0;
    size_t bursts = 1;
    for (size_t i = 1; i < it->count; i++) {
        longest = gmd_max(gap_before(it, i), longest);
    }
    for (size_t i = 1; i < it->count; i++) {
        bursts += gap_before(it, i) * FAR_LONGER >= longest;
    }
    size_t each = it->count / bursts;
    bool is_even = it->count % bursts == 0;
    for (size_t i = 1; is_even && i < it->count; i++) {
        is_even = (i % each == 0) == (gap_before(it, i) * FAR_LONGER >= longest);
    }
    return is_even ? (beat){it->first, each, bursts} : (beat){it->first, 1, it->count};
}

/* Requests from the start of a group to that of the next one, at most. */
static uint64_t longest_gap(const beat *b)
{
    uint64_t longest = 0;
    for (size_t i = 1; i < b->count; i++) {
        uint64_t gap = b->first[i * b->each].number - b->first[(i - 1) * b->each].number;
        longest = gmd_max(gap, longest);
    }
    return longest;
}

/* Whether groups come at about even distances, and over at least half of the recording: a loop of
 * the set-up is over soon. */
static bool is_regular(const beat *b, uint32_t requests)
{
    enum { MOST_OF_OTHERS = 4 };
    uint64_t longest = longest_gap(b);
    uint64_t span = b->first[(b->count - 1) * b->each].number - b->first[0].number;
    return longest * (b->count - 2) <= MOST_OF_OTHERS * (span - longest) && span * 2 >= requests;
}

/* Keys that come equally often: how many, and the one of them that comes first. */
typedef struct frequency {
    uint32_t keys;
    beat first;
} frequency;

/* How many keys come often enough for an iteration, however often. */
static uint32_t count_frequencies(const request *sorted, uint32_t count, frequency *by_count)
{
    repetition it;
    uint32_t often = 0;
    for (size_t at = 0; next_repetition(sorted, count, &at, &it);) {
        beat b = beat_of(&it);
        often += it.count >= LEAST_ITERATIONS;
        if (b.count < LEAST_ITERATIONS || !is_regular(&b, count)) {
            continue;
        }
        frequency *f = &by_count[b.count];
        f->keys++;
        if (!f->first.first || b.first->moment < f->first.first->moment) {
            f->first = b;
        }
    }
    return often;
}

/* Whether the groups lie in one iteration each, which the anchor's groups begin. The first one may
 * come before the anchor's first: then all do. The last iteration may be cut before the last one.
 */
static bool keeps_step(const beat *b, const beat *anchor)
{
    bool comes_before = b->first->moment < anchor->first->moment;
    if (comes_before && b->count < anchor->count) {
        return false;
    }
    for (size_t i = 0; i < b->count; i++) {
        uint32_t first = beat_moment(b, i), last = b->first[(i + 1) * b->each - 1].moment;
        bool follows =
            comes_before
                ? last <= beat_moment(anchor, i) && (i == 0 || first > beat_moment(anchor, i - 1))
                : first >= beat_moment(anchor, i) &&
                      (i + 1 == anchor->count || last < beat_moment(anchor, i + 1));
        if (!follows) {
            return false;
        }
    }
    return true;
}

/* Whether equally many requests come between any two groups of the anchor, wherever in an iteration
 * those are. */
static bool is_evenly_between(const repetition *it, size_t each, const beat *anchor)
{
    size_t at = 0;
    while (at < it->count && it->first[at].moment < beat_moment(anchor, 0)) {
        at++;
    }
    bool is_even = at <= each;
    for (size_t i = 1; is_even && i < anchor->count; i++) {
        size_t from = at;
        while (at < it->count && it->first[at].moment < beat_moment(anchor, i)) {
            at++;
        }
        is_even = at - from == each;
    }
    return is_even;
}

/* Whether a key keeps step with an anchor, in as many groups, or in one less. */
static bool is_in_step(const repetition *it, uint32_t requests, const beat *anchor, beat *b)
{
    for (size_t missing = 0; missing < 2 && missing < anchor->count; missing++) {
        size_t groups = anchor->count - missing;
        *b = (beat){it->first, it->count / groups, groups};
        if (it->count >= groups && it->count % groups == 0 && is_regular(b, requests) &&
            (keeps_step(b, anchor) || is_evenly_between(it, b->each, anchor))) {
            return true;
        }
    }
    return false;
}

/* Keys that keep step with an anchor, and their requests. */
typedef struct in_step {
    uint32_t keys;
    uint64_t requests;
} in_step;

static in_step count_in_step(const request *sorted, uint32_t count, const beat *anchor)
{
    in_step found = {0};
    repetition it;
    beat b;
    for (size_t at = 0; next_repetition(sorted, count, &at, &it);) {
        if (is_in_step(&it, count, anchor, &b)) {
            found.keys++;
            found.requests += it.count;
        }
    }
    return found;
}

/* --- loops of the program, and those inside of a pass ---------------------------------------- */

/* Whether something happens between two moments that is no part of a module's call: the program has
 * come back to its own loop. The layers of a model repeat, too, but inside one call. */
static bool leaves_modules(const gmd_recording *r, const gmd_places *places, uint32_t from,
                           uint32_t end)
{
    for (uint32_t moment = from; moment < end; moment++) {
        const gmd_snapshot_event *e = gmd_event_at(r, moment);
        if (e->device == r->device &&
            !(gmd_places_parts(places, e->origin) & (GMD_PART_MODULE | GMD_PART_BACKWARD))) {
            return true;
        }
    }
    return false;
}

/* Whether more than one of the program's lines has a part in what happens between two moments. */
static bool has_several_lines(const gmd_recording *r, const gmd_places *places, uint32_t from,
                              uint32_t end)
{
    uint32_t line = GMD_NO_PLACE;
    for (uint32_t moment = from; moment < end; moment++) {
        const gmd_snapshot_event *e = gmd_event_at(r, moment);
        uint32_t frame =
            e->device == r->device ? gmd_places_frame(places, e->origin) : GMD_NO_PLACE;
        if (frame != GMD_NO_PLACE && line != GMD_NO_PLACE && frame != line) {
            return true;
        }
        line = frame != GMD_NO_PLACE ? frame : line;
    }
    return false;
}

/* Whether the groups are of a loop that is over when the recording ends: something else goes on for
 * as long as many of them. */
static bool is_over(const beat *b, uint32_t requests)
{
    enum { MOST_GROUPS = 4 };
    if (b->count == 0 || !b->first) {
        return false;
    }
    uint64_t last = b->first[(b->count - 1) * b->each].number;
    return requests - last > MOST_GROUPS * longest_gap(b);
}

static bool may_be_first_pass(const gmd_recording *r)
{
    return r->ended_by_oom || r->ends_early;
}

/* A job that ran out of memory in its first pass has repeated nothing but what builds its model,
 * and the layers of it; a recording that stops there has nothing else. Where stacks cannot tell
 * layers from a loop, no iterations are found in such a one. */
static bool is_loop(const gmd_recording *r, const gmd_places *places, const beat *anchor,
                    uint32_t requests)
{
    enum { LEAST_PERCENT = 80 };
    if (may_be_first_pass(r) && is_over(anchor, requests)) {
        return false;
    }
    if (!places->has_modules && !may_be_first_pass(r)) {
        return true;
    }
    size_t returned = 0;
    for (size_t i = 0; i + 1 < anchor->count; i++) {
        uint32_t from = beat_moment(anchor, i), end = beat_moment(anchor, i + 1);
        returned += places->has_modules ? leaves_modules(r, places, from, end)
                                        : has_several_lines(r, places, from, end);
    }
    return returned * 100 >= (anchor->count - 1) * LEAST_PERCENT;
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

typedef struct search { /* for a loop among the requests of a stretch of the recording */
    const gmd_recording *r;
    const gmd_places *places;
    request *requests; /* by key, then by moment */
    uint32_t count;
    frequency *by_count;
    uint32_t least_keys; /* that must keep step */
} search;

/* What begins each iteration; `count` 0: nothing repeats. In a loop within a loop the outer one
 * counts: all of the inner keep step with it. */
static beat find_anchor(const search *s)
{
    /* A few requests repeat by chance. Where an iteration applies its layers as often as it likes,
     * their requests outnumber all others, and half of the keys must keep step. */
    enum { LEAST_PERCENT = 15, KEYS_PERCENT = 50 };
    size_t candidates[CANDIDATES];
    uint32_t most = 0, regular = 0;
    beat best = {0};
    uint32_t often = count_frequencies(s->requests, s->count, s->by_count);
    for (size_t n = LEAST_ITERATIONS; n <= s->count; n++) {
        regular += s->by_count[n].keys;
    }
    size_t candidate_count = list_candidates(s->by_count, s->count, candidates);
    for (size_t i = 0; i < candidate_count; i++) {
        const beat *anchor = &s->by_count[candidates[i]].first;
        in_step found = count_in_step(s->requests, s->count, anchor);
        bool is_better = found.keys > most || (found.keys == most && anchor->count < best.count);
        bool is_enough = found.requests * 100 >= (uint64_t)s->count * LEAST_PERCENT ||
                         (uint64_t)found.keys * 100 >= (uint64_t)often * KEYS_PERCENT;
        if (found.keys >= s->least_keys && is_better && is_enough &&
            is_loop(s->r, s->places, anchor, s->count)) {
            best = *anchor;
            most = found.keys;
        }
    }
    return 3 * (uint64_t)most >= regular ? best : (beat){0};
}

/* What comes first of all that keeps step with the anchor begins an iteration. */
static beat earliest_in_step(const search *s, const beat *anchor)
{
    repetition it;
    beat earliest = *anchor, b;
    for (size_t at = 0; next_repetition(s->requests, s->count, &at, &it);) {
        if (it.first->moment < earliest.first->moment && is_in_step(&it, s->count, anchor, &b) &&
            b.count == anchor->count) {
            earliest = b;
        }
    }
    return earliest;
}

static bool add_starts(gmd_iterations *it, const gmd_recording *r, const beat *begins)
{
    uint32_t *starts = realloc(it->starts, (it->count + begins->count + 1) * sizeof *starts);
    if (!starts) {
        return false;
    }
    it->starts = starts;
    for (size_t i = 0; i < begins->count; i++) {
        add_start(it, r, beat_moment(begins, i));
    }
    return true;
}

/* Adds the iterations of the loop between two moments, if there is one. False: no host memory. */
static bool add_repeated(gmd_iterations *it, const gmd_recording *r, const gmd_places *places,
                         uint32_t from, uint32_t end, request_key by)
{
    enum { LEAST_STACKS = 3 }; /* without sizes any two lines take turns */
    size_t most = (size_t)(end - from) + 2;
    search s = {.r = r,
                .places = places,
                .least_keys = by == BY_STACK ? LEAST_STACKS : 1,
                .requests = malloc(most * sizeof *s.requests),
                .by_count = calloc(most, sizeof *s.by_count)};
    bool ok = s.requests && s.by_count;
    if (ok) {
        s.count = list_requests(r, places, from, end, by, s.requests);
        qsort(s.requests, s.count, sizeof *s.requests, compare_requests);
        beat anchor = find_anchor(&s);
        beat begins = anchor.count ? earliest_in_step(&s, &anchor) : anchor;
        ok = begins.count == 0 || add_starts(it, r, &begins);
    }
    free(s.requests);
    free(s.by_count);
    return ok;
}

static bool find_repeated(gmd_iterations *it, const gmd_recording *r, const gmd_places *places)
{
    /* Lines alone do not tell a loop from its parts. */
    bool may_vary = places->has_modules && !may_be_first_pass(r);
    bool ok =
        r->first == 0 || add_repeated(it, r, places, r->first, r->last + 1, BY_STACK_AND_SIZE);
    if (ok && r->first && it->count == 0 && may_vary) {
        ok = add_repeated(it, r, places, r->first, r->last + 1, BY_STACK);
    }
    if (!ok) {
        return false;
    }
    it->source = it->count ? GMD_ITERATIONS_FROM_EVENTS : GMD_ITERATIONS_UNKNOWN;
    return true;
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

/* Whether they are known by their ends. */
static bool ends_iterations(const gmd_iterations *it, const gmd_recording *r)
{
    return it->source == GMD_ITERATIONS_ANNOTATED &&
           boundary_of(r, it->annotation) == GMD_ANNOTATION_END;
}

/* The median length, and how many iterations come before the first of about that length. */
static bool measure(gmd_iterations *it, const gmd_recording *r)
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
    it->has_rest = it->count > 1 && ends_iterations(it, r) &&
                   (uint64_t)length_of(it, it->count - 1) * 2 < median;
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

enum { FEW_STEPS = 3 };

/* The longest of few iterations, or the usual length of many, without the last one, with which
 * comes whatever is after it. */
static uint64_t longest_of_steps(const gmd_iterations *it)
{
    uint64_t longest = 0;
    for (uint32_t i = 0; i + 1 < it->count; i++) {
        longest = gmd_max(longest, length_of(it, i));
    }
    return it->count <= FEW_STEPS ? longest : it->period_events;
}

/* What comes after an optimizer's last step and is longer than any part of an iteration: another
 * loop, if something repeats in it. Only stacks tell loops from the layers of a model. */
static bool find_other(gmd_iterations *it, const gmd_recording *r, const gmd_places *places)
{
    enum { LEAST_LENGTHS = 2, LEAST_ALONE = 9 };
    uint32_t steps = it->count, tail = it->starts[steps - 1];
    it->other = steps;
    if (!places->has_modules || it->source != GMD_ITERATIONS_ANNOTATED ||
        length_of(it, steps - 1) < LEAST_LENGTHS * longest_of_steps(it)) {
        return true;
    }
    bool ok = add_repeated(it, r, places, tail, r->last + 1, BY_STACK_AND_SIZE);
    if (ok && it->count == steps) {
        ok = add_repeated(it, r, places, tail, r->last + 1, BY_STACK);
    }
    bool may_be_step = steps <= FEW_STEPS && it->count - steps < LEAST_ALONE;
    it->count = may_be_step ? steps : it->count; /* a long one, to whose end there was no time */
    it->starts[it->count] = r->last + 1;
    return ok;
}

gmd_status gmd_iterations_find(gmd_iterations *iterations, const gmd_recording *recording,
                               const gmd_places *places, gmd_error *error)
{
    *iterations = (gmd_iterations){0};
    if (recording->first == 0) {
        return GMD_OK; /* segments only */
    }
    bool ok = find_annotated(iterations, recording) &&
              (iterations->count || find_repeated(iterations, recording, places));
    if (ok && iterations->count) {
        iterations->starts[iterations->count] = recording->last + 1;
        ok = measure(iterations, recording) && find_other(iterations, recording, places);
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
    const uint32_t *starts = iterations->starts, count = iterations->count;
    if (count == 0 || moment < starts[0]) {
        return GMD_SET_UP;
    }
    if (moment >= starts[count]) {
        return count;
    }
    uint32_t at = 0;
    for (uint32_t left = count; left > 1;) { /* without a branch that depends on the moment */
        uint32_t half = left / 2;
        at += starts[at + half] <= moment ? half : 0;
        left -= half;
    }
    return at;
}
