#include "retention.h"

#include "gmd_min.h"

#include <stdlib.h>
#include <string.h>

/* How many groups are looked at at the ends of iterations: those that keep most. */
enum { GROUPS = 64 };

/* A block that outlived the iteration after its own. One that saw the end of its own only is the
 * value of a variable until the next iteration gives it another. */
typedef struct member {
    uint64_t requested; /* 0 where it has a stack */
    uint32_t stack, lifetime;
} member;

static int compare_members(const void *a, const void *b)
{
    const member *x = a, *y = b;
    if (x->stack != y->stack) {
        return x->stack < y->stack ? -1 : 1;
    }
    if (x->requested != y->requested) {
        return x->requested < y->requested ? -1 : 1;
    }
    return (x->lifetime > y->lifetime) - (x->lifetime < y->lifetime);
}

static bool is_same_group(const member *a, const member *b)
{
    return a->stack == b->stack && a->requested == b->requested;
}

/* The iterations whose ends a block saw: from, up to but not with. Set-up counts as before all. */
static void ends_seen(const gmd_facts *f, const gmd_lifetime *l, uint32_t *from, uint32_t *to)
{
    const gmd_iterations *it = &f->iterations;
    uint32_t born = gmd_iteration_of(it, l->born);
    uint32_t freed = l->freed == GMD_NEVER ? it->count : gmd_iteration_of(it, l->freed);
    *from = born == GMD_SET_UP ? 0 : born;
    *to = freed == GMD_SET_UP || freed < *from ? *from : freed;
}

/* `born`: the iteration that it was allocated in. */
static bool outlives_next(const gmd_iterations *it, uint32_t born, const gmd_lifetime *l)
{
    return born + 2 <= it->count && l->freed >= it->starts[born + 2];
}

bool retained_group_has(const retained_group *group, const gmd_facts *f, const gmd_lifetime *l)
{
    const gmd_iterations *it = &f->iterations;
    bool is_of_group = gmd_origins_get(f->places.origins, l->origin).stack == group->stack &&
                       (group->stack || l->requested == group->requested);
    return is_of_group && l->born >= it->starts[0] &&
           outlives_next(it, gmd_iteration_of(it, l->born), l);
}

/* Blocks come in the order of their births, but those from before the recording, which are of no
 * iteration. */
static size_t list_members(const gmd_facts *f, member *members)
{
    const gmd_recording *r = &f->recording;
    const gmd_iterations *it = &f->iterations;
    size_t count = 0;
    uint32_t at = 0;
    for (size_t i = 0; i < r->lifetime_count; i++) {
        const gmd_lifetime *l = &r->lifetimes[i];
        if (l->born < it->starts[0]) {
            continue;
        }
        while (at + 1 < it->count && it->starts[at + 1] <= l->born) {
            at++;
        }
        if (outlives_next(it, at, l)) {
            uint32_t stack = gmd_origins_get(f->places.origins, l->origin).stack;
            members[count++] = (member){stack ? 0 : l->requested, stack, (uint32_t)i};
        }
    }
    return count;
}

/* --- the groups that keep most --------------------------------------------------------------- */

typedef struct candidate {
    const member *first;
    size_t count;
    uint64_t kept;
} candidate;

/* Keeps the candidates in order, the most first, and drops what comes behind the last place. */
static void insert(candidate *list, size_t *count, const candidate *c)
{
    size_t at = *count < GROUPS ? (*count)++ : GROUPS;
    for (; at > 0 && list[at - 1].kept < c->kept; at--) {
        if (at < GROUPS) {
            list[at] = list[at - 1];
        }
    }
    if (at < GROUPS) {
        list[at] = *c;
    }
}

static size_t choose_groups(const gmd_facts *f, const member *members, size_t count,
                            candidate *chosen)
{
    size_t chosen_count = 0;
    for (size_t i = 0, end; i < count; i = end) {
        candidate c = {.first = &members[i]};
        for (end = i; end < count && is_same_group(&members[end], &members[i]); end++) {
            c.kept += f->recording.lifetimes[members[end].lifetime].size;
        }
        c.count = end - i;
        insert(chosen, &chosen_count, &c);
    }
    return chosen_count;
}

/* --- one group ------------------------------------------------------------------------------- */

/* A group at the end of an iteration. */
typedef struct group_end {
    int64_t bytes;     /* that are there */
    uint64_t gone;     /* bytes that were there at the end before, and are not */
    uint32_t gone_of;  /* iterations whose blocks they were */
    uint32_t gone_old; /* the last of them that was counted */
    uint32_t longest;  /* the last end that a block of the iteration sees */
} group_end;

/* What all blocks of a group ask for; 0: they differ. */
static uint64_t size_of_all(const gmd_facts *f, const candidate *c)
{
    uint64_t requested = f->recording.lifetimes[c->first->lifetime].requested;
    for (size_t i = 1; i < c->count; i++) {
        if (f->recording.lifetimes[c->first[i].lifetime].requested != requested) {
            return 0;
        }
    }
    return requested;
}

/* In a recording that begins late: blocks from before it, of which no line is known, but which are
 * like those of the group and go in an iteration in which some of these do, too. */
static void add_earlier(const gmd_facts *f, const candidate *c, group_end *ends)
{
    const gmd_recording *r = &f->recording;
    const uint64_t requested = r->begins_late ? size_of_all(f, c) : 0;
    for (size_t i = 0; requested && i < r->lifetime_count; i++) {
        const gmd_lifetime *l = &r->lifetimes[i];
        uint32_t from, to;
        ends_seen(f, l, &from, &to);
        if (l->born == GMD_BEFORE && l->requested == requested && l->freed != GMD_NEVER && to > 0 &&
            ends[to].gone > 0) {
            ends[0].bytes += (int64_t)l->size;
            ends[to].bytes -= (int64_t)l->size;
            ends[to].gone += l->size;
            ends[to].gone_of += ends[to].gone_old != GMD_SET_UP;
            ends[to].gone_old = GMD_SET_UP;
        }
    }
}

/* Blocks come in the order of their iterations. */
static void sum_ends(const gmd_facts *f, const candidate *c, group_end *ends)
{
    memset(ends, 0, ((size_t)f->iterations.count + 1) * sizeof *ends);
    for (size_t i = 0; i < c->count; i++) {
        const gmd_lifetime *l = &f->recording.lifetimes[c->first[i].lifetime];
        uint32_t from, to;
        ends_seen(f, l, &from, &to);
        ends[from].bytes += (int64_t)l->size;
        ends[from].longest = to > ends[from].longest ? to : ends[from].longest;
        ends[to].bytes -= (int64_t)l->size;
        ends[to].gone += l->size;
        ends[to].gone_of += ends[to].gone_of == 0 || ends[to].gone_old != from;
        ends[to].gone_old = from;
    }
    add_earlier(f, c, ends);
    for (uint32_t i = 1; i <= f->iterations.count; i++) {
        ends[i].bytes += ends[i - 1].bytes;
    }
}

/* Ends of iterations that are compared: those of a loop, without the first ones, in which a program
 * makes what it keeps, and the last one, which may be cut, or in which a job gives all back. */
typedef struct ends_range {
    uint32_t from, to;
} ends_range;

static ends_range range_of_loop(const gmd_iterations *it, bool is_other)
{
    uint32_t first = is_other ? it->other : 0, end = is_other ? it->count : it->other;
    uint32_t warm_up = is_other ? 1 : it->warm_up;
    bool is_whole = !is_other && it->other < it->count; /* the other loop cuts it off */
    ends_range range = {first + (warm_up ? warm_up - 1 : 0), end - !is_whole};
    return end > first ? range : (ends_range){0};
}

static void measure_changes(ends_range range, const group_end *ends, retained_group *g)
{
    for (uint32_t i = range.from + 1; i < range.to; i++) {
        int64_t change = ends[i].bytes - ends[i - 1].bytes;
        uint64_t size = (uint64_t)(change < 0 ? -change : change);
        if (change > 0) {
            uint32_t pause = g->rises ? g->compared - g->last_rise : 0;
            g->longest_pause = pause > g->longest_pause ? pause : g->longest_pause;
            g->first_rise = g->rises ? g->first_rise : g->compared;
            g->last_rise = g->compared;
            g->last_rise_in = i;
            g->rises++;
            g->risen += size;
            bool is_late = i - range.from > (range.to - range.from) / 2;
            g->risen_late += is_late ? size : 0;
            g->late_rises += is_late;
            g->largest_rise = gmd_max(size, g->largest_rise);
        } else if (change < 0) {
            g->falls++;
            g->largest_fall = gmd_max(size, g->largest_fall);
        }
        g->compared++;
    }
    if (g->compared) {
        int64_t grown = ends[range.to - 1].bytes - ends[range.from].bytes;
        g->grown = grown > 0 ? (uint64_t)grown : 0;
    }
}

#define NO_FLOOR INT64_MAX

/* What a drop leaves, beside what the one before left. */
static void compare_floors(retained_group *g, int64_t before, int64_t floor, uint64_t usual)
{
    if (before != NO_FLOOR && floor != NO_FLOOR) {
        g->floors_up += (floor - before) * 2 >= (int64_t)usual;
        g->floors_down += (before - floor) * 2 >= (int64_t)usual;
    }
}

/* Iterations whose blocks must go at once: two are the value of a variable and the one before it,
 * where some go in most iterations. */
static uint32_t least_gone_of(ends_range range, const group_end *ends)
{
    uint32_t with_gone = 0;
    for (uint32_t i = range.from + 1; i < range.to; i++) {
        with_gone += ends[i].gone > 0;
    }
    return with_gone * 2 <= range.to - range.from ? 2 : 3;
}

/* Where more goes than an iteration adds, and blocks of several, whatever comes meanwhile. Two ends
 * after one another are one drop: it may come at an iteration's end. */
static void measure_drops(ends_range range, const group_end *ends, retained_group *g)
{
    enum { LEAST_PERCENT = 150 }; /* of what an iteration adds: less is what a variable let go */
    uint32_t least_of = least_gone_of(range, ends);
    uint64_t usual = g->rises ? g->risen / g->rises : 0, least = usual * LEAST_PERCENT / 100;
    uint32_t last = range.from, run_before = 0;
    int64_t floor = NO_FLOOR, before = NO_FLOOR;
    for (uint32_t i = range.from + 1; i < range.to && least; i++) {
        if (ends[i].gone < least || ends[i].gone_of < least_of) {
            continue;
        }
        uint32_t run = i - last;
        if (g->drops == 0) {
            g->runs[0] = run;
        } else if (run > 1) {
            g->runs[1] = g->drops == 1 || run < g->runs[1] ? run : g->runs[1];
            g->runs[2] = run > g->runs[2] ? run : g->runs[2];
        }
        if (g->drops == 0 || run > 1) {
            compare_floors(g, before, floor, usual);
            before = floor;
            g->longer_runs += g->drops && run > run_before;
            run_before = run;
            g->drops++;
        }
        g->largest_drop = gmd_max(ends[i].gone, g->largest_drop);
        floor = ends[i].bytes;
        last = i;
    }
    compare_floors(g, before, floor, usual);
    g->last_run = range.to > last ? range.to - 1 - last : 0;
}

/* A recording that begins late does not know the line of what was there before: a line whose blocks
 * come and go seems to grow until that is gone. */
static ends_range range_of_group(const gmd_facts *f, bool is_other, const retained_group *g)
{
    ends_range range = range_of_loop(&f->iterations, is_other);
    range.from += f->recording.begins_late && g->is_any_freed && range.from < range.to;
    return range;
}

/* The one of two loops in which it grows more. */
static void measure_loops(const gmd_facts *f, const group_end *ends, retained_group *g)
{
    retained_group other = *g;
    measure_changes(range_of_group(f, false, g), ends, g);
    measure_drops(range_of_group(f, false, g), ends, g);
    if (f->iterations.other < f->iterations.count) {
        other.is_of_other_loop = true;
        measure_changes(range_of_group(f, true, g), ends, &other);
        *g = other.grown > g->grown ? other : *g;
    }
}

bool retained_group_is_even(const retained_group *g)
{
    enum { LEAST_RISES = 3 };
    return g->rises >= LEAST_RISES && g->longest_pause * g->rises <= 2 * g->compared;
}

/* Whether it has stopped to rise for longer than it ever paused, and old blocks make way for new
 * ones: a buffer that has no more room. */
static bool is_full(const retained_group *g)
{
    return g->replaced > 0 && g->compared - 1 - g->last_rise > g->longest_pause;
}

/* Whether rises that still come in most iterations, by amounts that vary, are less in the second
 * half by chance: as counts of rises, the halves are within sqrt(3) standard deviations. */
static bool is_less_by_chance(const retained_group *g)
{
    enum { MOST_ITERATIONS_PERCENT = 60 };
    const double most_variances = 3;
    uint32_t late_iterations = g->compared / 2;
    double late = (double)g->risen_late, early = (double)g->risen - late;
    double usual = (double)g->risen / g->rises;
    return g->late_rises * 100 >= late_iterations * MOST_ITERATIONS_PERCENT &&
           (early - late) * (early - late) <= most_variances * usual * (double)g->risen;
}

/* Whether it grows by ever less: a cache that has most of what it will ever be asked for. */
static bool slows_down(const retained_group *g)
{
    enum { LEAST_RISES = 8, LATE_PERCENT = 60 }; /* of what came in the first half */
    uint64_t early = g->risen - g->risen_late;
    return g->may_be_slowing ||
           (g->rises >= LEAST_RISES && g->risen_late * 100 < early * LATE_PERCENT &&
            !is_less_by_chance(g));
}

/* Whether what goes is made up for, all the time: a queue that grows at one end faster than it is
 * emptied at the other. */
static bool outgrows(const retained_group *g)
{
    enum { MOST_FREED_PERCENT = 60 };
    return g->falls == 0 && retained_group_is_even(g) &&
           g->freed * 100 <= g->kept * MOST_FREED_PERCENT;
}

/* Whether it is a value that a larger one replaced once or twice. */
static bool is_one_value(const retained_group *g)
{
    enum { LEAST_RISES = 4 }; /* of a tensor that each iteration appends to */
    return g->blocks < 2 && g->rises < LEAST_RISES;
}

bool retained_group_grows(const retained_group *g)
{
    enum {
        LEAST_RISES = 2,     /* once is no habit */
        RISES_PERCENT = 20,  /* what is kept in some of the iterations only, adds up, too */
        FALLS_PERCENT = 10,  /* of the growth: what goes again is not kept */
        FREED_PERCENT = 20,  /* of the bytes, likewise */
        LARGEST_PERCENT = 60 /* of the growth: a single rise is a cache that is filled */
    };
    if (g->rises < LEAST_RISES ||
        (g->rises * 100 < g->compared * RISES_PERCENT && !retained_group_is_even(g))) {
        return false;
    }
    bool is_from_early = g->first_rise * 2 < g->compared + 1;
    bool is_up_to_late = (g->last_rise + 1) * 3 >= g->compared * 2;
    return !is_full(g) && !slows_down(g) && !is_one_value(g) && is_from_early && is_up_to_late &&
           g->largest_fall * 100 <= g->grown * FALLS_PERCENT &&
           (g->freed * 100 <= g->kept * FREED_PERCENT || outgrows(g)) &&
           (g->rises == LEAST_RISES || g->largest_rise * 100 <= g->grown * LARGEST_PERCENT);
}

/* The event by which a block was freed late, though before the job's end; NULL: it was not. */
static const gmd_snapshot_event *freed_late_by(const gmd_facts *f, const gmd_lifetime *l)
{
    uint32_t from, to;
    ends_seen(f, l, &from, &to);
    return to + 1 < f->iterations.count ? gmd_event_at(&f->recording, l->freed) : NULL;
}

/* Whether a free comes out of a library's function, which lets go of nothing that is older. */
static bool is_inside_library(const gmd_facts *f, const gmd_snapshot_event *e)
{
    unsigned parts = gmd_places_parts(&f->places, e->origin);
    return (parts & GMD_PART_INSIDE) && !(parts & (GMD_PART_OPTIMIZER | GMD_PART_BACKWARD));
}

/* With context='alloc' a free has the stack of its allocation, and does not tell who frees. */
static bool is_copied(const gmd_facts *f, const gmd_lifetime *l, const gmd_snapshot_event *e)
{
    const gmd_origins *origins = f->places.origins;
    return is_inside_library(f, e) &&
           gmd_origins_get(origins, e->origin).stack == gmd_origins_get(origins, l->origin).stack;
}

/* Where most were freed: found by a vote, then counted. */
static void find_freeing_line(const gmd_facts *f, const candidate *c, retained_group *g)
{
    uint64_t lead = 0, total = 0, there = 0, inside = 0, copied = 0;
    for (size_t i = 0; i < c->count; i++) {
        const gmd_snapshot_event *e =
            freed_late_by(f, &f->recording.lifetimes[c->first[i].lifetime]);
        if (e) {
            uint32_t frame = gmd_places_frame(&f->places, e->origin);
            g->freed_in = lead ? g->freed_in : frame;
            lead += frame == g->freed_in ? 1 : (uint64_t)-1;
        }
    }
    for (size_t i = 0; i < c->count; i++) {
        const gmd_lifetime *l = &f->recording.lifetimes[c->first[i].lifetime];
        const gmd_snapshot_event *e = freed_late_by(f, l);
        if (e) {
            total++;
            uint32_t frame = gmd_places_frame(&f->places, e->origin);
            there += frame == g->freed_in;
            g->freed_in_other = frame == g->freed_in ? g->freed_in_other : frame;
            inside += is_inside_library(f, e) && !is_copied(f, l, e);
            copied += is_copied(f, l, e);
        }
    }
    g->freed_percent = total ? (uint32_t)(there * 100 / total) : 0;
    g->hides_frees = total > 0 && copied == total;
    g->freed_inside_percent = total ? (uint32_t)(inside * 100 / total) : 0;
}

/* Whether a block goes though a younger one stays that had seen two ends by then. Only the last
 * iterations are asked, so that time is linear. */
static bool is_overtaken(const group_end *ends, uint32_t from, uint32_t to)
{
    enum { NEW = 2, MOST_ASKED = 64 };
    uint32_t first = to > MOST_ASKED && to - MOST_ASKED > from ? to - MOST_ASKED : from + 1;
    for (uint32_t i = first; i + NEW < to; i++) {
        if (ends[i].longest > to + 1) {
            return true;
        }
    }
    return false;
}

/* Blocks that went before the job's end. */
static void count_gone(const gmd_facts *f, const candidate *c, const group_end *ends,
                       retained_group *g)
{
    for (size_t i = 0; i < c->count; i++) {
        uint32_t from, to;
        ends_seen(f, &f->recording.lifetimes[c->first[i].lifetime], &from, &to);
        if (to + 1 < f->iterations.count) {
            g->gone++;
            g->replaced += g->rises && to > g->last_rise_in;
            g->overtaken += is_overtaken(ends, from, to);
        }
    }
}

/* The same of blocks from before the recording, which are older than the first one of the group. */
static void compare_earlier(const gmd_facts *f, const candidate *c, retained_group *g)
{
    const gmd_recording *r = &f->recording;
    const gmd_lifetime *first = &r->lifetimes[c->first->lifetime];
    const uint64_t requested = r->begins_late ? size_of_all(f, c) : 0;
    for (size_t i = 0; requested && first->freed != GMD_NEVER && i < r->lifetime_count; i++) {
        const gmd_lifetime *l = &r->lifetimes[i];
        uint32_t from[2], to[2];
        ends_seen(f, l, &from[0], &to[0]);
        ends_seen(f, first, &from[1], &to[1]);
        if (l->born == GMD_BEFORE && l->requested == requested && l->freed != GMD_NEVER &&
            to[0] == to[1] && to[0] + 1 < f->iterations.count) {
            g->oldest_first += l->freed < first->freed;
            g->youngest_first += l->freed > first->freed;
        }
    }
}

/* In which order blocks went that went together. */
static void compare_order(const gmd_facts *f, const candidate *c, retained_group *g)
{
    for (size_t i = 1; i < c->count; i++) {
        const gmd_lifetime *older = &f->recording.lifetimes[c->first[i - 1].lifetime];
        const gmd_lifetime *younger = &f->recording.lifetimes[c->first[i].lifetime];
        uint32_t from[2], to[2];
        ends_seen(f, older, &from[0], &to[0]);
        ends_seen(f, younger, &from[1], &to[1]);
        if (to[0] == to[1] && to[0] + 1 < f->iterations.count && from[0] != from[1]) {
            g->oldest_first += older->freed < younger->freed;
            g->youngest_first += older->freed > younger->freed;
        }
    }
}

/* What was kept, and what of it did not see the job's end. */
static void count_kept(const gmd_facts *f, const candidate *c, retained_group *g)
{
    for (size_t i = 0; i < c->count; i++) {
        const gmd_lifetime *l = &f->recording.lifetimes[c->first[i].lifetime];
        uint32_t from, to;
        ends_seen(f, l, &from, &to);
        bool is_freed = to + 1 < f->iterations.count;
        g->kept += l->size;
        g->freed += is_freed ? l->size : 0;
        g->blocks += !is_freed;
        g->is_any_freed = g->is_any_freed || l->freed != GMD_NEVER;
    }
}

/* What a line that grows adds from its first iteration to its last, if those that are not compared
 * add as much as the others. What it needs in each iteration is no part of it. */
static uint64_t bytes_by_growth(const retained_group *g)
{
    enum { NOT_COMPARED = 2 };
    return g->grown + g->grown * NOT_COMPARED / g->compared;
}

/* What is there of a line that grows at the end. All that was recorded counts, if it is about as
 * much as the line adds: more is what it needs in each iteration. Blocks from before the recording
 * count if they have the same size: a history whose beginning was overwritten knows the stacks of
 * those that live. */
static void measure_end(const gmd_facts *f, retained_group *g)
{
    enum { WITHIN_PERCENT = 15 };
    const gmd_recording *r = &f->recording;
    uint64_t there = 0, earlier = 0;
    for (size_t i = 0; i < r->lifetime_count; i++) {
        const gmd_lifetime *l = &r->lifetimes[i];
        bool is_alike = l->requested == g->requested;
        if (l->freed != GMD_NEVER || (!is_alike && (!g->stack || l->born == GMD_BEFORE)) ||
            gmd_origins_get(f->places.origins, l->origin).stack != g->stack) {
            continue;
        }
        if (l->born != GMD_BEFORE) {
            there += l->size;
        } else if (g->stack) {
            earlier += l->size;
        }
    }
    g->added = gmd_min(g->most, bytes_by_growth(g));
    if (there > g->added && there * 100 <= g->added * (100 + WITHIN_PERCENT)) {
        g->added = there;
    }
    g->most = g->added + earlier;
}

/* Whether an annotation is of a step of an optimizer whose state is as large as the model, and no
 * history: "Optimizer.step#Adam.step". */
static bool is_without_history(const char *annotation)
{
    static const char prefix[] = "Optimizer.step#";
    static const char *const names[] = {"SGD",       "Adam",    "AdamW",     "Adamax", "NAdam",
                                        "RAdam",     "RMSprop", "Adagrad",   "Rprop",  "Adadelta",
                                        "Adafactor", "ASGD",    "SparseAdam"};
    if (strncmp(annotation, prefix, sizeof prefix - 1) != 0) {
        return true;
    }
    const char *name = annotation + sizeof prefix - 1;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t length = strlen(names[i]);
        if (strncmp(name, names[i], length) == 0 && name[length] == '.') {
            return true;
        }
    }
    return false;
}

/* Whether an optimizer steps that may keep a history of its steps. */
static bool may_keep_history(const gmd_facts *f)
{
    const gmd_snapshot *s = f->snapshot;
    for (size_t i = 0; i < s->annotation_count; i++) {
        if (!is_without_history(gmd_origins_text(&s->origins, s->annotations[i].name, NULL))) {
            return true;
        }
    }
    return false;
}

/* Without frames, what is allocated in nearly each step is of a closure, or of models that are made
 * anew: the state of a model that is trained part by part comes now and then. */
static bool may_be_of_closure(const gmd_facts *f, const retained_group *g)
{
    enum { LEAST_PERCENT = 80, LEAST_RISES = 5 };
    return !f->places.has_frames && g->rises >= LEAST_RISES &&
           g->rises * 100 >= g->compared * LEAST_PERCENT && !may_keep_history(f);
}

static bool is_of_optimizer(const gmd_facts *f, uint32_t lifetime)
{
    return f->places.has_frames
               ? gmd_places_parts(&f->places, f->recording.lifetimes[lifetime].origin) &
                     GMD_PART_OPTIMIZER
               : f->categories.of_lifetime[lifetime] == GMD_OPTIMIZER_STATE;
}

static bool is_seldom(const retained_group *g)
{
    enum { MOST_PERCENT = 35 };
    return g->rises * 100 < g->compared * MOST_PERCENT;
}

/* Whether it rises at even distances, and as much late as early: no cache fills like that. */
static bool is_steady(const retained_group *g)
{
    enum { LEAST_RISES = 7, LATE_PERCENT = 40 };
    return g->rises >= LEAST_RISES && retained_group_is_even(g) && g->falls == 0 &&
           g->risen_late * 100 >= g->risen * LATE_PERCENT;
}

static retained_group measure_group(const gmd_facts *f, const candidate *c, group_end *ends)
{
    const gmd_lifetime *first = &f->recording.lifetimes[c->first->lifetime];
    retained_group g = {.stack = c->first->stack,
                        .requested = first->requested,
                        .frame = gmd_places_frame(&f->places, first->origin),
                        .first_born = first->born,
                        .is_of_optimizer = is_of_optimizer(f, c->first->lifetime),
                        .freed_in = GMD_NO_PLACE,
                        .freed_in_other = GMD_NO_PLACE};
    count_kept(f, c, &g);
    sum_ends(f, c, ends);
    for (uint32_t i = 0; i < f->iterations.count; i++) {
        g.most = ends[i].bytes > (int64_t)g.most ? (uint64_t)ends[i].bytes : g.most;
    }
    measure_loops(f, ends, &g);
    g.is_of_optimizer = g.is_of_optimizer && !may_be_of_closure(f, &g);
    g.may_be_slowing = f->recording.begins_late && is_seldom(&g) && !is_steady(&g);
    count_gone(f, c, ends, &g);
    compare_order(f, c, &g);
    compare_earlier(f, c, &g);
    find_freeing_line(f, c, &g);
    if (retained_group_grows(&g)) {
        measure_end(f, &g);
    }
    return g;
}

static bool measure_groups(retention *kept, const gmd_facts *f, const candidate *chosen,
                           size_t count)
{
    group_end *ends = malloc(((size_t)f->iterations.count + 2) * sizeof *ends);
    kept->groups = malloc((count + 1) * sizeof *kept->groups);
    bool ok = ends && kept->groups;
    for (size_t i = 0; ok && i < count; i++) {
        kept->groups[kept->count++] = measure_group(f, &chosen[i], ends);
    }
    free(ends);
    return ok;
}

typedef struct total_walk {
    const gmd_iterations *iterations;
    int64_t *ends; /* bytes of all blocks, by iteration */
    uint32_t at;
    uint64_t before; /* bytes after the event before */
} total_walk;

static void note_total(void *context, uint32_t moment, const gmd_amount *amount)
{
    total_walk *w = context;
    while (w->at < w->iterations->count && moment >= w->iterations->starts[w->at + 1]) {
        w->ends[w->at++] = (int64_t)w->before;
    }
    w->before = amount->allocated;
}

static bool measure_total(retention *kept, const gmd_facts *f)
{
    const gmd_iterations *it = &f->iterations;
    total_walk w = {.iterations = it, .ends = malloc(((size_t)it->count + 1) * sizeof *w.ends)};
    if (!w.ends) {
        return false;
    }
    gmd_recording_walk(&f->recording, note_total, &w);
    while (w.at < it->count) {
        w.ends[w.at++] = (int64_t)w.before;
    }
    for (int is_other = 0; is_other < 2; is_other++) {
        ends_range range = range_of_loop(it, is_other);
        if (range.to > range.from) {
            uint32_t last = range.to - 1, middle = range.from + (last - range.from) / 2;
            kept->total_grown[is_other] = w.ends[last] - w.ends[range.from];
            kept->total_grown_late[is_other] = w.ends[last] - w.ends[middle];
        }
    }
    free(w.ends);
    return true;
}

gmd_status retention_find(retention *kept, const gmd_facts *facts, gmd_error *error)
{
    *kept = (retention){0};
    if (facts->iterations.count < 2) {
        return GMD_OK;
    }
    candidate chosen[GROUPS];
    member *members = malloc((facts->recording.lifetime_count + 1) * sizeof *members);
    bool ok = members != NULL && measure_total(kept, facts);
    if (ok) {
        size_t count = list_members(facts, members);
        qsort(members, count, sizeof *members, compare_members);
        ok = measure_groups(kept, facts, chosen, choose_groups(facts, members, count, chosen));
    }
    free(members);
    if (!ok) {
        retention_free(kept);
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for what outlives its iteration");
    }
    return GMD_OK;
}

void retention_free(retention *kept)
{
    free(kept->groups);
    *kept = (retention){0};
}
