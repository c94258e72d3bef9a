/* Each oracle on its own: the hooks are called with made-up views. That they bite through the
 * driver is shown by tests/driver. */
#include "oracle_test.h"

#include <string.h>

static gmd_live_block block_at(uint64_t address, uint64_t bytes)
{
    return (gmd_live_block){.address = address, .bytes = bytes};
}

static void put(void *state, uint64_t address, uint64_t bytes, gmd_judge *judge)
{
    gmd_live_block b = block_at(address, bytes);
    oracle_overlap.after_alloc(state, &(gmd_view){.block = &b}, judge);
}

static void drop(void *state, uint64_t address, gmd_judge *judge)
{
    gmd_live_block b = block_at(address, 1);
    oracle_overlap.before_free(state, &(gmd_view){.block = &b}, judge);
}

TEST(reference_says_nothing_where_requests_go_to_private_pools)
{
    gmd_view view = {.allocator.promises = GMD_PROMISE_PYTORCH, .workload.has_pool_requests = true};
    assert_non_null(strstr(oracle_reference.blind_spot(&view), "private pools"));
}

TEST(overlap_allows_blocks_that_touch)
{
    gmd_judge judge = {0};
    void *set = oracle_overlap.create();
    put(set, 1024, 512, &judge);
    put(set, 512, 512, &judge);
    put(set, 1536, 512, &judge);
    oracle_overlap.destroy(set);
    assert_int_equal(judge.count, 0);
}

TEST(overlap_allows_blocks_of_no_bytes_to_share_an_address)
{
    gmd_judge judge = {0};
    void *set = oracle_overlap.create();
    put(set, 1024, 512, &judge);
    put(set, 1024, 0, &judge);
    put(set, 1024, 0, &judge);
    put(set, 1100, 0, &judge);
    oracle_overlap.destroy(set);
    assert_int_equal(judge.count, 0);
}

TEST(overlap_keeps_a_block_whose_address_one_of_no_bytes_had)
{
    gmd_judge judge = {0};
    void *set = oracle_overlap.create();
    gmd_live_block empty = block_at(1024, 0);
    put(set, 1024, 512, &judge);
    oracle_overlap.before_free(set, &(gmd_view){.block = &empty}, &judge);
    put(set, 1024, 512, &judge);
    oracle_overlap.destroy(set);
    assert_int_equal(judge.count, 1);
}

TEST(overlap_finds_one_shared_byte_on_either_side)
{
    gmd_judge below = {0}, above = {0};
    void *set = oracle_overlap.create();
    put(set, 1024, 512, &below);
    put(set, 1000, 25, &below);
    put(set, 1535, 1, &above);
    oracle_overlap.destroy(set);
    assert_int_equal(below.count, 1);
    assert_int_equal(above.count, 1);
}

TEST(overlap_finds_a_block_inside_and_around_another)
{
    gmd_judge inside = {0}, around = {0};
    void *set = oracle_overlap.create();
    put(set, 4096, 4096, &inside);
    put(set, 5000, 10, &inside);
    put(set, 100, 100000, &around);
    oracle_overlap.destroy(set);
    assert_int_equal(inside.count, 1);
    assert_int_equal(around.count, 1);
}

TEST(overlap_forgets_freed_blocks)
{
    gmd_judge judge = {0};
    void *set = oracle_overlap.create();
    for (int round = 0; round < 3; round++) {
        for (uint64_t i = 0; i < 500; i++) {
            put(set, 4096 + i * 512, 512, &judge);
        }
        for (uint64_t i = 0; i < 500; i++) {
            drop(set, 4096 + i * 7 % 500 * 512, &judge);
        }
    }
    oracle_overlap.destroy(set);
    assert_int_equal(judge.count, 0);
}

TEST(alignment_measures_against_the_promise)
{
    gmd_judge good = {0}, bad = {0};
    gmd_live_block aligned = block_at(0x10000, 1), off = block_at(0x10100, 1);
    oracle_alignment.after_alloc(
        NULL, &(gmd_view){.block = &aligned, .allocator.promised_alignment = 512}, &good);
    oracle_alignment.after_alloc(
        NULL, &(gmd_view){.block = &off, .allocator.promised_alignment = 512}, &bad);
    assert_int_equal(good.count, 0);
    assert_int_equal(bad.count, 1);
}

static bool one_range(const void *context, uint64_t address, gmd_device_range *range)
{
    (void)context;
    *range = (gmd_device_range){.address = 0x1000, .size = 0x1000, .device = 1};
    return address >= 0x1000 && address < 0x2000;
}

static bool is_in_one_range(const void *context, uint64_t address, uint64_t size, int device,
                            uint64_t *bad)
{
    (void)context;
    *bad = address < 0x1000 || address >= 0x2000 || device != 1 ? address : 0x2000;
    return *bad != address && size <= 0x2000 - address;
}

static int backing_violations(uint64_t address, int device)
{
    gmd_judge judge = {0};
    gmd_live_block b = block_at(address, 16);
    b.device = device;
    oracle_backing.after_alloc(
        NULL,
        &(gmd_view){.block = &b, .ask.find_range = one_range, .ask.is_backed = is_in_one_range},
        &judge);
    return judge.count;
}

TEST(backing_wants_memory_of_the_right_device)
{
    assert_int_equal(backing_violations(0x1800, 1), 0);
    assert_int_equal(backing_violations(0x1800, 0), 1);
    assert_int_equal(backing_violations(0x2000, 1), 1);
}

TEST(backing_leaves_a_block_of_no_bytes_where_it_is)
{
    gmd_judge judge = {0};
    gmd_live_block b = block_at(0x2000, 0);
    oracle_backing.after_alloc(
        NULL,
        &(gmd_view){.block = &b, .ask.find_range = one_range, .ask.is_backed = is_in_one_range},
        &judge);
    assert_int_equal(judge.count, 0);
}

TEST(backing_leaves_the_end_of_a_device_allocation_to_size)
{
    assert_int_equal(backing_violations(0x1ff8, 1), 0);
}

static bool find_nothing(const void *context, uint64_t address, gmd_device_range *range)
{
    (void)context;
    (void)address;
    (void)range;
    return false;
}

TEST(backing_finds_a_hole_in_mapped_memory)
{
    gmd_judge judge = {0};
    gmd_live_block b = block_at(0x1800, 0x1000);
    b.device = 1;
    oracle_backing.before_free(
        NULL,
        &(gmd_view){.block = &b, .ask.find_range = find_nothing, .ask.is_backed = is_in_one_range},
        &judge);
    assert_int_equal(judge.count, 1);
    assert_non_null(strstr(judge.first, "0x2000"));
}

static int launch_violations(uint64_t address, uint64_t bytes)
{
    gmd_judge judge = {0};
    const gmd_graph_access accesses[] = {{.address = 0x1000, .bytes = 512},
                                         {.address = address, .bytes = bytes}};
    oracle_backing.after_request(NULL,
                                 &(gmd_view){.device = 1,
                                             .pools.accesses = accesses,
                                             .pools.access_count = 2,
                                             .ask.is_backed = is_in_one_range},
                                 &judge);
    return judge.count;
}

TEST(backing_wants_memory_for_all_work_of_a_graph)
{
    assert_int_equal(launch_violations(0x1800, 512), 0);
    assert_int_equal(launch_violations(0x2000, 512), 1);
    assert_int_equal(launch_violations(0x2000, 0), 0); /* it works on nothing */
}

static int size_violations(uint64_t address, uint64_t bytes, uint64_t counted)
{
    gmd_judge judge = {0};
    gmd_live_block b = block_at(address, bytes);
    gmd_stats before = {0}, after = {.allocated_bytes = counted};
    oracle_size.after_alloc(
        NULL,
        &(gmd_view){
            .block = &b, .ask.find_range = one_range, .stats.now = &after, .stats.before = &before},
        &judge);
    return judge.count;
}

TEST(size_wants_room_up_to_the_last_byte)
{
    assert_int_equal(size_violations(0x1f00, 0x100, 0x100), 0);
    assert_int_equal(size_violations(0x1f00, 0x101, 0x200), 1);
    assert_int_equal(size_violations(0x1f00, 0x100, 0xff), 1);
    assert_int_equal(size_violations(0x1f00, 0x100, GMD_STAT_UNKNOWN), 0);
}

/* --- accounting -------------------------------------------------------------------------- */

typedef struct figures_view {
    gmd_stats before, stats;
    gmd_device_figures baseline, figures; /* baseline: also untouched */
    gmd_live_block block;
    gmd_request request;
    gmd_view view;
} figures_view;

/* One block of 1000 B, counted as 1024, in a segment of 2 MiB: all in order. */
static void open_figures(figures_view *v)
{
    *v = (figures_view){.stats = {.struct_size = sizeof v->stats,
                                  .allocated_bytes = 1024,
                                  .allocated_bytes_peak = 1024,
                                  .reserved_bytes = 2097152,
                                  .reserved_bytes_peak = 2097152,
                                  .active_bytes = 1024,
                                  .active_bytes_peak = 1024,
                                  .inactive_split_bytes = 2097152 - 1024,
                                  .requested_bytes = 1000,
                                  .allocation_count = 1,
                                  .segment_count = 1},
                        .figures = {.capacity_bytes = 1 << 30,
                                    .physical_bytes = 2097152,
                                    .allocated_bytes = 2097152},
                        .block = {.address = 4096, .bytes = 1000},
                        .request = {.op = GMD_OP_ALLOC, .bytes = 1000}};
    v->view = (gmd_view){.request = &v->request,
                         .block = &v->block,
                         .live.count = 1,
                         .live.bytes = 1000,
                         .stats.now = &v->stats,
                         .stats.before = &v->before,
                         .figures.now = &v->figures,
                         .figures.untouched = &v->baseline,
                         .figures.baseline = &v->baseline};
}

static int accounting_violations(figures_view *v)
{
    gmd_judge judge = {0};
    void *seen = oracle_accounting.create();
    oracle_accounting.after_request(seen, &v->view, &judge);
    oracle_accounting.destroy(seen);
    return judge.count;
}

TEST(accounting_accepts_figures_in_order)
{
    figures_view v;
    open_figures(&v);
    assert_int_equal(accounting_violations(&v), 0);
}

TEST(accounting_lets_blocks_of_no_bytes_be_counted_or_not)
{
    for (uint64_t counted = 1; counted <= 3; counted++) {
        figures_view v;
        open_figures(&v);
        v.view.live.count = 3;
        v.view.live.empty_count = 2;
        v.stats.allocation_count = counted;
        assert_int_equal(accounting_violations(&v), 0);
    }
}

TEST(accounting_counts_every_other_block)
{
    figures_view v;
    open_figures(&v);
    v.view.live.count = 3;
    v.view.live.empty_count = 2;
    v.stats.allocation_count = 0;
    assert_int_not_equal(accounting_violations(&v), 0);
}

TEST(accounting_finds_each_figure_that_is_off)
{
    const struct {
        size_t offset;
        uint64_t wrong;
    } defects[] = {
        {offsetof(gmd_stats, allocated_bytes), 512},        /* less than what was asked for */
        {offsetof(gmd_stats, allocated_bytes), 4194304},    /* more than reserved */
        {offsetof(gmd_stats, allocated_bytes_peak), 1023},  /* below the current value */
        {offsetof(gmd_stats, reserved_bytes), 2097152 + 1}, /* more than the device gave */
        {offsetof(gmd_stats, reserved_bytes), 2097152 - 1}, /* less than was asked of it */
        {offsetof(gmd_stats, reserved_bytes_peak), 0},
        {offsetof(gmd_stats, active_bytes), 1000}, /* less than allocated */
        {offsetof(gmd_stats, requested_bytes), 999},
        {offsetof(gmd_stats, allocation_count), 2},
        {offsetof(gmd_stats, inactive_split_bytes), 2097153},
        {offsetof(gmd_stats, allocated_bytes_peak), 4194304}, /* more than was ever reserved */
        {offsetof(gmd_stats, reserved_bytes_peak),
         (uint64_t)1 << 31},                     /* more than the device has */
        {offsetof(gmd_stats, segment_count), 0}, /* reserved, but in no segment */
        {offsetof(gmd_stats, num_ooms), 1},      /* nothing was refused */
    };
    for (size_t i = 0; i < sizeof defects / sizeof *defects; i++) {
        figures_view v;
        open_figures(&v);
        memcpy((char *)&v.stats + defects[i].offset, &defects[i].wrong, sizeof(uint64_t));
        if (accounting_violations(&v) == 0) {
            fail_msg("defect %zu was not found", i);
        }
    }
}

TEST(accounting_leaves_out_figures_that_are_not_kept)
{
    figures_view v;
    open_figures(&v);
    v.stats = (gmd_stats){sizeof v.stats,   GMD_STAT_UNKNOWN, GMD_STAT_UNKNOWN, GMD_STAT_UNKNOWN,
                          GMD_STAT_UNKNOWN, GMD_STAT_UNKNOWN, GMD_STAT_UNKNOWN, GMD_STAT_UNKNOWN,
                          GMD_STAT_UNKNOWN, GMD_STAT_UNKNOWN, GMD_STAT_UNKNOWN, GMD_STAT_UNKNOWN,
                          GMD_STAT_UNKNOWN};
    v.before = v.stats;
    assert_int_equal(accounting_violations(&v), 0);
}

TEST(accounting_finds_a_free_that_does_not_lower_the_total)
{
    figures_view v;
    open_figures(&v);
    v.before = v.stats;
    v.request.op = GMD_OP_FREE;
    assert_true(accounting_violations(&v) > 0);
}

TEST(accounting_finds_a_total_that_moves_without_a_request)
{
    figures_view v;
    open_figures(&v);
    v.view.block = NULL;
    v.request.op = GMD_OP_SYNC;
    v.before = v.stats;
    v.before.allocated_bytes = 512;
    assert_true(accounting_violations(&v) > 0);
}

TEST(accounting_finds_a_free_that_raises_the_total)
{
    figures_view v;
    open_figures(&v);
    v.before = v.stats;
    v.before.allocated_bytes -= 512;
    v.request.op = GMD_OP_FREE;
    assert_true(accounting_violations(&v) > 0);
}

TEST(accounting_finds_an_allocation_that_lowers_the_total)
{
    figures_view v;
    open_figures(&v);
    v.before = v.stats;
    v.before.allocated_bytes += 512;
    v.request.op = GMD_OP_ALLOC;
    assert_true(accounting_violations(&v) > 0);
}

/* A request that is not served; the figures are those of before it. */
static void open_refusal(figures_view *v)
{
    open_figures(v);
    v->view.block = NULL;
    v->view.out_of_memory = true;
    v->before = v->stats;
}

TEST(accounting_finds_a_refusal_that_is_not_counted)
{
    figures_view v;
    open_refusal(&v);
    assert_true(accounting_violations(&v) > 0);
}

TEST(accounting_asks_for_no_out_of_memory_where_another_error_is_told)
{
    figures_view v;
    open_refusal(&v);
    v.view.thread.error_text = "CUDA error: operation not permitted when stream is capturing";
    assert_int_equal(accounting_violations(&v), 0);
}

TEST(leak_finds_what_the_device_still_holds)
{
    gmd_device_figures baseline = {.allocated_bytes = 512, .allocation_count = 1};
    gmd_device_figures clean = baseline, leaking = baseline;
    leaking.allocated_bytes += 512;
    leaking.allocation_count++;
    gmd_judge good = {0}, bad = {0};
    void *leak = oracle_leak.create();
    oracle_leak.at_end(leak, &(gmd_view){.figures.now = &clean, .figures.baseline = &baseline},
                       &good);
    oracle_leak.at_end(leak, &(gmd_view){.figures.now = &leaking, .figures.baseline = &baseline},
                       &bad);
    oracle_leak.destroy(leak);
    assert_int_equal(good.count, 0);
    assert_int_equal(bad.count, 1);
}

TEST(leak_takes_the_allocators_word_where_the_device_is_silent)
{
    gmd_stats kept = {.reserved_bytes = 4096}, more = {.reserved_bytes = 4097};
    gmd_judge good = {0}, bad = {0};
    oracle_leak.at_end(NULL, &(gmd_view){.stats.now = &kept, .stats.reserved_at_start = 4096},
                       &good);
    oracle_leak.at_end(NULL, &(gmd_view){.stats.now = &more, .stats.reserved_at_start = 4096},
                       &bad);
    assert_int_equal(good.count, 0);
    assert_int_equal(bad.count, 1);
}

TEST(an_oracle_that_cannot_see_says_why)
{
    gmd_view nothing = {0};
    assert_non_null(oracle_backing.blind_spot(&nothing));
    assert_non_null(oracle_size.blind_spot(&nothing));
    assert_non_null(oracle_accounting.blind_spot(&nothing));
    assert_non_null(oracle_leak.blind_spot(&nothing));
}

TEST(names_are_those_of_the_contract_and_unique)
{
    static const char *const contract[] = {
        "overlap",  "backing",   "alignment",  "size",        "accounting",   "leak",
        "progress", "oom_retry", "peak_bound", "api_misuse",  "device_state", "stream_order",
        "snapshot", "misuse",    "data",       "determinism", "reference",    "private_pool"};
    size_t count = 0;
    while (gmd_oracles[count]) {
        count++;
    }
    assert_int_equal(count, sizeof contract / sizeof *contract);
    for (size_t i = 0; i < count; i++) {
        int found = 0;
        for (size_t k = 0; k < count; k++) {
            found += strcmp(contract[i], gmd_oracles[k]->entry->name) == 0;
        }
        assert_int_equal(found, 1);
    }
}
