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

static size_t list_members(const gmd_facts *f, member *members)
{
    const gmd_recording *r = &f->recording;
    size_t count = 0;
    for (size_t i = 0; i < r->lifetime_count; i++) {
        const gmd_lifetime *l = &r->lifetimes[i];
        uint32_t from, to;
        ends_seen(f, l, &from, &to);
        bool is_of_set_up = gmd_iteration_of(&f->iterations, l->born) == GMD_SET_UP;
        if (to - from > 1 && !is_of_set_up) {
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

static int compare_changes(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Bytes of the group at the end of each iteration. */
static void sum_ends(const gmd_facts *f, const candidate *c, int64_t *ends)
{
    memset(ends, 0, (f->iterations.count + 1) * sizeof *ends);
    for (size_t i = 0; i < c->count; i++) {
        const gmd_lifetime *l = &f->recording.lifetimes[c->first[i].lifetime];
        uint32_t from, to;
        ends_seen(f, l, &from, &to);
        ends[from] += (int64_t)l->size;
        ends[to] -= (int64_t)l->size;
    }
    for (uint32_t i = 1; i <= f->iterations.count; i++) {
        ends[i] += ends[i - 1];
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

static void measure_changes(ends_range range, const int64_t *ends, int64_t *changes,
                            retained_group *g)
{
    for (uint32_t i = range.from + 1; i < range.to; i++) {
        int64_t change = ends[i] - ends[i - 1];
        uint64_t size = (uint64_t)(change < 0 ? -change : change);
        if (change > 0) {
            g->first_rise = g->rises ? g->first_rise : g->compared;
            g->last_rise = g->compared;
            g->rises++;
            g->risen += size;
            g->largest_rise = gmd_max(size, g->largest_rise);
        } else if (change < 0) {
            g->falls++;
            g->largest_fall = gmd_max(size, g->largest_fall);
        }
        changes[g->compared++] = change;
    }
    if (g->compared) {
        int64_t grown = ends[range.to - 1] - ends[range.from];
        g->grown = grown > 0 ? (uint64_t)grown : 0;
        qsort(changes, g->compared, sizeof *changes, compare_changes);
        g->growth = changes[g->compared / 2];
    }
}

/* Where more goes than an iteration adds. Two ends after one another
 * are one drop: it may come at an iteration's end. */
static void measure_drops(ends_range range, const int64_t *ends, retained_group *g)
{
    enum { LEAST_PERCENT = 150 }; /* of what an iteration adds: less is what a variable let go */
    uint64_t least = g->rises ? g->risen / g->rises * LEAST_PERCENT / 100 : 0;
    uint32_t last = range.from;
    for (uint32_t i = range.from + 1; i < range.to && least; i++) {
        if (ends[i] > ends[i - 1] || (uint64_t)(ends[i - 1] - ends[i]) < least) {
            continue;
        }
        uint32_t run = i - last;
        if (g->drops == 0) {
            g->runs[0] = run;
        } else if (run > 1) {
            g->runs[1] = g->drops == 1 || run < g->runs[1] ? run : g->runs[1];
            g->runs[2] = run > g->runs[2] ? run : g->runs[2];
        }
        g->drops += g->drops == 0 || run > 1;
        last = i;
    }
    g->last_run = range.to > last ? range.to - 1 - last : 0;
}

/* The one of two loops in which it grows more. */
static void measure_loops(const gmd_iterations *it, const int64_t *ends, int64_t *changes,
                          retained_group *g)
{
    retained_group other = *g;
    measure_changes(range_of_loop(it, false), ends, changes, g);
    measure_drops(range_of_loop(it, false), ends, g);
    if (it->other < it->count) {
        other.is_of_other_loop = true;
        measure_changes(range_of_loop(it, true), ends, changes, &other);
        *g = other.grown > g->grown ? other : *g;
    }
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
    if (g->rises < LEAST_RISES || g->rises * 100 < g->compared * RISES_PERCENT) {
        return false;
    }
    bool is_from_early = g->first_rise * 2 < g->compared + 1;
    bool is_up_to_late = (g->last_rise + 1) * 3 > g->compared * 2;
    return is_from_early && is_up_to_late && g->largest_fall * 100 <= g->grown * FALLS_PERCENT &&
           g->freed * 100 <= g->kept * FREED_PERCENT &&
           (g->rises == LEAST_RISES || g->largest_rise * 100 <= g->grown * LARGEST_PERCENT);
}

/* The user's line in which a block was freed late, though before the job's end; false: it was not.
 */
static bool freed_late_in(const gmd_facts *f, const gmd_lifetime *l, uint32_t *frame)
{
    const gmd_snapshot_event *e = gmd_event_at(&f->recording, l->freed);
    uint32_t from, to;
    ends_seen(f, l, &from, &to);
    if (!e || to + 1 >= f->iterations.count) {
        return false;
    }
    *frame = gmd_places_frame(&f->places, e->origin);
    return true;
}

/* Where most were freed: found by a vote, then counted. */
static void find_freeing_line(const gmd_facts *f, const candidate *c, retained_group *g)
{
    uint64_t lead = 0, total = 0, there = 0;
    uint32_t frame;
    for (size_t i = 0; i < c->count; i++) {
        if (freed_late_in(f, &f->recording.lifetimes[c->first[i].lifetime], &frame)) {
            g->freed_in = lead ? g->freed_in : frame;
            lead += frame == g->freed_in ? 1 : (uint64_t)-1;
        }
    }
    for (size_t i = 0; i < c->count; i++) {
        if (freed_late_in(f, &f->recording.lifetimes[c->first[i].lifetime], &frame)) {
            total++;
            there += frame == g->freed_in;
        }
    }
    g->freed_percent = total ? (uint32_t)(there * 100 / total) : 0;
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
    }
}

static retained_group measure_group(const gmd_facts *f, const candidate *c, int64_t *ends,
                                    int64_t *changes)
{
    const gmd_lifetime *first = &f->recording.lifetimes[c->first->lifetime];
    retained_group g = {.stack = c->first->stack,
                        .requested = first->requested,
                        .frame = gmd_places_frame(&f->places, first->origin),
                        .is_of_backward =
                            (gmd_places_parts(&f->places, first->origin) & GMD_PART_BACKWARD) != 0,
                        .freed_in = GMD_NO_PLACE};
    count_kept(f, c, &g);
    sum_ends(f, c, ends);
    for (uint32_t i = 0; i < f->iterations.count; i++) {
        if (ends[i] > (int64_t)g.most) {
            g.most = (uint64_t)ends[i];
            g.most_at = i;
        }
    }
    measure_loops(&f->iterations, ends, changes, &g);
    find_freeing_line(f, c, &g);
    return g;
}

static bool measure_groups(retention *kept, const gmd_facts *f, const candidate *chosen,
                           size_t count)
{
    int64_t *ends = malloc((f->iterations.count + 2) * sizeof *ends);
    int64_t *changes = malloc((f->iterations.count + 2) * sizeof *changes);
    kept->groups = malloc((count + 1) * sizeof *kept->groups);
    bool ok = ends && changes && kept->groups;
    for (size_t i = 0; ok && i < count; i++) {
        kept->groups[kept->count++] = measure_group(f, &chosen[i], ends, changes);
    }
    free(ends);
    free(changes);
    return ok;
}

gmd_status retention_find(retention *kept, const gmd_facts *facts, gmd_error *error)
{
    *kept = (retention){0};
    if (facts->iterations.count < 2) {
        return GMD_OK;
    }
    candidate chosen[GROUPS];
    member *members = malloc((facts->recording.lifetime_count + 1) * sizeof *members);
    bool ok = members != NULL;
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
