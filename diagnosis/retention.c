#include "retention.h"

#include "gmd_min.h"

#include <stdlib.h>
#include <string.h>

/* How many groups are looked at at the ends of iterations: those that keep most. */
enum { GROUPS = 64 };

typedef struct member { /* a block that outlived its iteration */
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
        if (to > from && !is_of_set_up) {
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

static uint64_t kept_by(const gmd_facts *f, const member *m)
{
    const gmd_lifetime *l = &f->recording.lifetimes[m->lifetime];
    uint32_t from, to;
    ends_seen(f, l, &from, &to);
    return to - from > 1 ? l->size : 0;
}

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
            c.kept += kept_by(f, &members[end]);
        }
        c.count = end - i;
        if (c.kept) {
            insert(chosen, &chosen_count, &c);
        }
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

/* What the iterations after warm-up do to the group. The last one counts as little as the first: it
 * may be cut, and a job that ends gives all back. */
static void measure_changes(const gmd_facts *f, const int64_t *ends, int64_t *changes,
                            retained_group *g)
{
    uint32_t from = f->iterations.warm_up, to = f->iterations.count - 1;
    size_t count = 0;
    for (uint32_t i = from > 0 ? from : 1; i < to; i++) {
        int64_t change = ends[i] - ends[i - 1];
        changes[count++] = change;
        g->rises += change > 0;
        g->falls += change < 0;
        if (change < 0 && (uint64_t)-change > g->largest_fall) {
            g->largest_fall = (uint64_t)-change;
        }
    }
    if (count) {
        qsort(changes, count, sizeof *changes, compare_changes);
        g->growth = changes[count / 2];
    }
}

/* The user's line in which a block was freed late, though before the job's end; false: it was not.
 */
static bool freed_late_in(const gmd_facts *f, const gmd_lifetime *l, uint32_t *frame)
{
    const gmd_snapshot_event *e = gmd_event_at(&f->recording, l->freed);
    uint32_t from, to;
    ends_seen(f, l, &from, &to);
    if (!e || to - from < 2 || to + 1 >= f->iterations.count) {
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

static retained_group measure_group(const gmd_facts *f, const candidate *c, int64_t *ends,
                                    int64_t *changes)
{
    const gmd_lifetime *first = &f->recording.lifetimes[c->first->lifetime];
    retained_group g = {.stack = c->first->stack,
                        .requested = c->first->requested,
                        .frame = gmd_places_frame(&f->places, first->origin),
                        .kept = c->kept,
                        .freed_in = GMD_NO_PLACE};
    sum_ends(f, c, ends);
    for (uint32_t i = 0; i < f->iterations.count; i++) {
        if (ends[i] > (int64_t)g.most) {
            g.most = (uint64_t)ends[i];
            g.most_at = i;
        }
    }
    measure_changes(f, ends, changes, &g);
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
