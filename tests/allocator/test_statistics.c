/* Peaks over heaps that do not look at each other: exact, against a plain sum. */
#include "allocator_test.h"

#include "statistics.h"

#include <string.h>

#define HEAPS 5

typedef struct model {
    statistics all;
    heap_statistics heaps[HEAPS];
    uint64_t sum, peak, looked; /* looked: raises for which the device was needed */
} model;

static void open_model(model *m, int heaps)
{
    *m = (model){.sum = 0};
    for (int i = 0; i < heaps; i++) {
        statistics_add_heap(&m->all, &m->heaps[i]);
    }
}

static void raise(model *m, int which, uint64_t amount)
{
    heap_statistics *h = &m->heaps[which];
    if (!h->is_only &&
        (int64_t)statistics_room(h, POOL_SMALL, FIGURE_ALLOCATED_BYTES, amount) < 0) {
        m->looked++;
        statistics_make_room(&m->all, h, POOL_SMALL, FIGURE_ALLOCATED_BYTES, amount);
    }
    statistics_raise(h, POOL_SMALL, FIGURE_ALLOCATED_BYTES, amount);
    h->counts[POOL_SMALL][FIGURE_ALLOCATION].allocated++; /* the heap is not idle */
    m->sum += amount;
    m->peak = m->sum > m->peak ? m->sum : m->peak;
}

static void lower(model *m, int which, uint64_t amount)
{
    statistics_lower(&m->heaps[which], POOL_SMALL, FIGURE_ALLOCATED_BYTES, amount);
    m->sum -= amount;
}

static void expect_exact(const model *m)
{
    figure f = statistics_sum(&m->all, POOL_ALL, FIGURE_ACTIVE_BYTES);
    assert_int_equal(f.current, m->sum);
    assert_int_equal(f.peak, m->peak);
}

static void random_walk(model *m, int heaps, int steps)
{
    uint64_t held[HEAPS] = {0}, random = 99;
    for (int i = 0; i < steps; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        int which = (int)((random >> 33) % (uint64_t)heaps);
        uint64_t amount = (random >> 40) % 10000;
        if ((random >> 60) & 1 && held[which] >= amount) {
            lower(m, which, amount);
            held[which] -= amount;
        } else {
            raise(m, which, amount);
            held[which] += amount;
        }
        expect_exact(m);
    }
}

TEST(the_peak_of_several_heaps_is_that_of_their_sum)
{
    model m;
    open_model(&m, HEAPS);
    random_walk(&m, HEAPS, 20000);
}

typedef struct rows { /* of a figure: in each pool, and in both */
    uint64_t sum[POOL_KINDS + 1], peak[POOL_KINDS + 1], raised[POOL_KINDS + 1];
} rows;

static void note(rows *r, int row, int64_t change)
{
    r->sum[row] += (uint64_t)change;
    r->peak[row] = r->sum[row] > r->peak[row] ? r->sum[row] : r->peak[row];
    r->raised[row] += change > 0 ? (uint64_t)change : 0;
}

static void expect_rows(const model *m, const rows *r, heap_figure which)
{
    for (int row = 0; row <= POOL_ALL; row++) {
        figure f = statistics_sum(&m->all, (pool_kind)row, which);
        assert_int_equal(f.current, r->sum[row]);
        assert_int_equal(f.peak, r->peak[row]);
        assert_int_equal(f.allocated, r->raised[row]);
    }
}

/* By raising and lowering, or by what can be either. */
static void change(model *m, heap_statistics *h, pool_kind kind, heap_figure which, int64_t by,
                   bool is_either)
{
    uint64_t amount = (uint64_t)(by > 0 ? by : 0);
    if (!h->is_only && (int64_t)statistics_room(h, kind, which, amount) < 0) {
        statistics_make_room(&m->all, h, kind, which, amount);
    }
    if (is_either) {
        statistics_change(h, kind, which, by);
    } else if (by > 0) {
        statistics_raise(h, kind, which, amount);
    } else {
        statistics_lower(h, kind, which, (uint64_t)-by);
    }
}

static void walk_both_pools(int heaps, heap_figure which, bool is_either)
{
    model m;
    rows r = {.sum = {0}};
    uint64_t held[HEAPS][POOL_KINDS] = {{0}}, random = 7;
    open_model(&m, heaps);
    for (int i = 0; i < 5000; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        int heap = (int)((random >> 33) % (uint64_t)heaps), kind = (int)(random >> 50 & 1);
        int64_t by = (int64_t)((random >> 40) % 1000 + 1);
        if (held[heap][kind] && random >> 61) { /* all of it, mostly: peaks of one pool are below */
            by = -(int64_t)held[heap][kind];
        }
        held[heap][kind] += (uint64_t)by;
        change(&m, &m.heaps[heap], (pool_kind)kind, which, by, is_either);
        note(&r, kind, by);
        note(&r, POOL_ALL, by);
        expect_rows(&m, &r, which);
    }
}

TEST(each_pool_has_a_peak_of_its_own)
{
    for (int heaps = 1; heaps <= HEAPS; heaps += 2) {
        walk_both_pools(heaps, FIGURE_ALLOCATED_BYTES, false);
        walk_both_pools(heaps, FIGURE_INACTIVE_SPLIT_BYTES, true);
    }
}

TEST(the_peak_of_a_single_heap_needs_no_look_at_the_device)
{
    model m;
    open_model(&m, 1);
    raise(&m, 0, 500);
    expect_exact(&m);
    assert_int_equal(m.looked, 0);
}

TEST(a_heap_that_comes_later_changes_no_peak)
{
    model m;
    open_model(&m, 1);
    raise(&m, 0, 1000);
    lower(&m, 0, 400);
    statistics_add_heap(&m.all, &m.heaps[1]);
    expect_exact(&m);
    raise(&m, 1, 300);
    expect_exact(&m);
    raise(&m, 1, 300);
    expect_exact(&m);
}

TEST(a_heap_that_was_alone_comes_to_its_highest_again_beside_another)
{
    model m;
    open_model(&m, 1);
    raise(&m, 0, 1000);
    lower(&m, 0, 1000);
    statistics_add_heap(&m.all, &m.heaps[1]);
    raise(&m, 1, 100);
    uint64_t looked = m.looked;
    raise(&m, 0, 800);
    assert_int_equal(m.looked, looked);
}

TEST(a_heap_that_goes_leaves_peaks_and_totals)
{
    model m;
    open_model(&m, 2);
    raise(&m, 0, 1000);
    raise(&m, 1, 500);
    lower(&m, 1, 500);
    statistics_remove_heap(&m.all, &m.heaps[1]);
    expect_exact(&m);
    assert_int_equal(statistics_sum(&m.all, POOL_SMALL, FIGURE_ALLOCATED_BYTES).allocated, 1500);
    raise(&m, 0, 400);
    expect_exact(&m);
    raise(&m, 0, 400);
    expect_exact(&m);
}

TEST(after_a_reset_the_peak_is_what_there_is)
{
    model m;
    open_model(&m, 3);
    random_walk(&m, 3, 500);
    statistics_reset_peaks(&m.all);
    m.peak = m.sum;
    expect_exact(&m);
    raise(&m, 2, 7);
    expect_exact(&m);
}

/* What the ceilings are for: a rhythm that has been seen needs the device no more. */
TEST(a_steady_rhythm_needs_the_device_no_more)
{
    model m;
    open_model(&m, HEAPS);
    for (int i = 0; i < HEAPS; i++) {
        raise(&m, i, 512);
    }
    for (int i = 0; i < HEAPS; i++) {
        lower(&m, i, 512);
    }
    uint64_t looked = m.looked;
    for (int round = 0; round < 1000; round++) {
        for (int i = 0; i < HEAPS; i++) {
            raise(&m, i, 512);
            lower(&m, i, 512);
        }
    }
    assert_true(m.looked - looked <= HEAPS);
}

TEST(two_heaps_that_take_turns_do_not_starve_each_other)
{
    model m;
    open_model(&m, 2);
    raise(&m, 0, 512);
    lower(&m, 0, 512);
    for (int i = 0; i < 1000; i++) {
        raise(&m, 0, 512);
        lower(&m, 0, 512);
    }
    uint64_t looked_in_all = m.looked;
    assert_true(looked_in_all <= 2);
}

TEST(a_heap_that_is_alone_again_needs_no_look_at_the_device)
{
    model m;
    open_model(&m, 2);
    statistics_remove_heap(&m.all, &m.heaps[1]);
    raise(&m, 0, 500);
    assert_int_equal(m.looked, 0);
}

/* What it had once would be kept from the others for ever. */
TEST(an_idle_heap_gives_up_its_share_of_the_peak)
{
    model m;
    open_model(&m, 2);
    raise(&m, 0, 1000);
    lower(&m, 0, 1000);
    for (int i = 0; i < 3; i++) { /* asked twice, the other one is seen to be idle */
        raise(&m, 1, 900);
        lower(&m, 1, 900);
    }
    uint64_t looked = m.looked;
    for (int i = 0; i < 1000; i++) {
        raise(&m, 1, 900);
        lower(&m, 1, 900);
    }
    assert_int_equal(m.looked, looked);
}

/* --- more heaps than are looked at ------------------------------------------------------- */

#define CROWD 1000

typedef struct crowd {
    statistics all;
    heap_statistics heaps[CROWD];
    uint64_t held[CROWD][POOL_KINDS];
    rows rows; /* of FIGURE_ALLOCATED_BYTES, and of what is active where nothing is pending */
} crowd;

static void open_crowd(crowd *c, int heaps)
{
    memset(c, 0, sizeof *c);
    for (int i = 0; i < heaps; i++) {
        statistics_add_heap(&c->all, &c->heaps[i]);
    }
}

/* As a request with the device to itself does. */
static void change_one(crowd *c, int which, pool_kind kind, int64_t by)
{
    heap_statistics *h = &c->heaps[which];
    uint64_t amount = by > 0 ? (uint64_t)by : 0;
    statistics_look(&c->all);
    statistics_share(&c->all, h);
    statistics_make_room(&c->all, h, kind, FIGURE_ALLOCATION, by > 0);
    statistics_make_room(&c->all, h, kind, FIGURE_ALLOCATED_BYTES, amount);
    statistics_change(h, kind, FIGURE_ALLOCATION, by > 0 ? 1 : -1);
    statistics_change(h, kind, FIGURE_ALLOCATED_BYTES, by);
    c->held[which][kind] += (uint64_t)by;
    note(&c->rows, kind, by);
    note(&c->rows, POOL_ALL, by);
}

static void expect_exact_crowd(const crowd *c)
{
    for (int row = 0; row <= POOL_ALL; row++) {
        figure bytes = statistics_sum(&c->all, (pool_kind)row, FIGURE_ALLOCATED_BYTES);
        figure active = statistics_sum(&c->all, (pool_kind)row, FIGURE_ACTIVE_BYTES);
        assert_int_equal(bytes.current, c->rows.sum[row]);
        assert_int_equal(bytes.peak, c->rows.peak[row]);
        assert_int_equal(bytes.allocated, c->rows.raised[row]);
        assert_int_equal(active.peak, c->rows.peak[row]);
    }
    assert_null(statistics_violation(&c->all));
}

/* Takes what there is, or allocates; one block for each heap and pool at a time. */
static void step(crowd *c, int which, pool_kind kind, uint64_t bytes)
{
    uint64_t held = c->held[which][kind];
    change_one(c, which, kind, held ? -(int64_t)held : (int64_t)bytes);
}

static uint64_t count_sharing(const statistics *s)
{
    uint64_t count = 0;
    for (const heap_statistics *h = s->sharing; h; h = h->next) {
        count++;
    }
    return count;
}

TEST(the_peak_of_a_thousand_heaps_is_that_of_their_sum)
{
    static crowd c;
    uint64_t random = 5;
    open_crowd(&c, CROWD);
    for (int i = 0; i < 20000; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        step(&c, (int)((random >> 33) % CROWD), (pool_kind)(random >> 50 & 1),
             (random >> 40) % 10000 + 1);
        expect_exact_crowd(&c);
    }
}

/* Each peak is beyond the last one, and no heap uses the one before. */
TEST(the_peak_of_heaps_that_are_used_one_after_the_other_is_that_of_their_sum)
{
    static crowd c;
    open_crowd(&c, CROWD);
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < CROWD; i++) {
            step(&c, i, POOL_SMALL, (uint64_t)round * 100 + 512);
            expect_exact_crowd(&c);
        }
    }
}

TEST(after_a_reset_the_peak_of_a_thousand_heaps_is_what_there_is)
{
    static crowd c;
    open_crowd(&c, CROWD);
    for (int i = 0; i < CROWD + CROWD / 2; i++) { /* half of them give back what they have */
        step(&c, i % CROWD, POOL_LARGE, 2048);
    }
    statistics_reset_peaks(&c.all);
    memcpy(c.rows.peak, c.rows.sum, sizeof c.rows.peak);
    expect_exact_crowd(&c);
    step(&c, 0, POOL_LARGE, 100);
    step(&c, CROWD - 1, POOL_LARGE, 0);
    step(&c, 1, POOL_SMALL, 50);
    expect_exact_crowd(&c);
}

TEST(what_waits_counts_as_active_in_heaps_that_are_not_looked_at)
{
    static crowd c;
    open_crowd(&c, CROWD);
    for (int i = 0; i < CROWD; i++) {
        change_one(&c, i, POOL_SMALL, 512);
        change_one(&c, i, POOL_SMALL, -512);
        statistics_add_pending(&c.heaps[i], POOL_SMALL, 512);
    }
    figure active = statistics_sum(&c.all, POOL_ALL, FIGURE_ACTIVE_BYTES);
    assert_int_equal(active.current, (uint64_t)CROWD * 512);
    assert_int_equal(active.peak, (uint64_t)CROWD * 512);
    assert_int_equal(statistics_sum(&c.all, POOL_ALL, FIGURE_ALLOCATED_BYTES).peak, 512);
}

TEST(heaps_that_are_not_used_are_not_looked_at)
{
    static crowd c;
    open_crowd(&c, CROWD);
    for (int i = 0; i < CROWD; i++) {
        step(&c, i, POOL_SMALL, 512);
    }
    assert_true(count_sharing(&c.all) < 100);
    for (int i = 0; i < 100; i++) {
        statistics_look(&c.all);
    }
    assert_int_equal(count_sharing(&c.all), 1);
}

/* Requests that needed nobody are seen by what they counted. */
TEST(heaps_that_are_used_go_on_sharing)
{
    static crowd c;
    open_crowd(&c, 50);
    for (int i = 0; i < 1000; i++) {
        for (int used = 0; used < 50; used += 2) {
            c.heaps[used].counts[POOL_SMALL][FIGURE_ALLOCATION].allocated++;
        }
        statistics_look(&c.all);
    }
    assert_int_equal(count_sharing(&c.all), 25);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(c.heaps[i].is_sharing, i % 2 == 0);
    }
}

TEST(heaps_that_go_without_being_looked_at_leave_peaks_and_totals)
{
    static crowd c;
    open_crowd(&c, CROWD);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < CROWD; i++) {
            step(&c, i, POOL_SMALL, 512);
        }
    }
    for (int i = 1; i < CROWD; i++) {
        statistics_remove_heap(&c.all, &c.heaps[i]);
        expect_exact_crowd(&c);
    }
}

/* The one that is left was settled when it became the only one. */
TEST(a_heap_that_is_left_alone_unused_needs_no_look_at_the_device_when_it_is_used)
{
    static crowd c;
    open_crowd(&c, 2);
    change_one(&c, 0, POOL_SMALL, 512);
    change_one(&c, 0, POOL_SMALL, -512);
    for (int i = 0; i < 100; i++) {
        change_one(&c, 1, POOL_SMALL, 512);
        change_one(&c, 1, POOL_SMALL, -512);
    }
    assert_false(c.heaps[0].is_sharing);
    statistics_remove_heap(&c.all, &c.heaps[1]);
    change_one(&c, 0, POOL_SMALL, 1024);
    assert_true(c.heaps[0].is_only);
    expect_exact_crowd(&c);
}

/* --- telling ----------------------------------------------------------------------------- */

static void count_names(void *context, const char *name, uint64_t value)
{
    unsigned *counts = context;
    counts[0]++;
    counts[1] += strncmp(name, "allocated_bytes.all.", 20) == 0;
    counts[2] += strcmp(name, "active.small_pool.peak") == 0 && value == 0;
}

/* Nine pooled figures and two of oversize blocks, four values each, and five counters. */
TEST(every_figure_of_pytorch_is_told)
{
    unsigned counts[3] = {0};
    model m;
    open_model(&m, 1);
    statistics_emit(&m.all, count_names, counts);
    assert_int_equal(counts[0], 9 * 3 * 4 + 2 * 4 + 5);
    assert_int_equal(counts[1], 4);
    assert_int_equal(counts[2], 1);
}
