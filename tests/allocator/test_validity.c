/* Each corruption of what the allocator keeps of a device is found by the walk that is there for
 * it. White-box: the tests reach into the structures. */
#include "allocator_test.h"

#include "../assertion_test.h"

#include "blocks.h"
#include "device_access.h"
#include "gmd_cuda_scope.h"
#include "pending.h"
#include "private_pools.h"
#include "requests.h"
#include "validity.h"
#include "virtual_memory.h"

#include <stdlib.h>
#include <string.h>

#define MIB ((uint64_t)1 << 20)

typedef struct fixture {
    struct fixture *next;
    settings settings;
    device_allocator *d;
    cudaStream_t one, other;
    uint64_t small, split, recorded; /* live blocks, see open_fixture */
} fixture;

static fixture *kept; /* what is corrupt cannot be taken down: it stays until the program ends */

static uint64_t get(const fixture *f, uint64_t size)
{
    return (uint64_t)(uintptr_t)requests_malloc(f->d, size, f->one);
}

static void put(const fixture *f, uint64_t address)
{
    assert_true(requests_free(f->d, (void *)(uintptr_t)address, f->one));
}

static void expect_valid(const fixture *f)
{
    device_enter(f->d);
    const char *violation = device_violation(f->d);
    device_leave(f->d);
    assert_null(violation);
}

/* Live blocks in both pools with free ones beside them, one freed block that is pending, and one
 * private pool. */
static fixture *open_fixture(const char *conf)
{
    gmd_sim_config config;
    gmd_error error;
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->next = kept;
    kept = f;
    gmd_sim_default_config(&config);
    config.capacity_bytes = 1024 * MIB;
    assert_int_equal(gmd_sim_reset(&config), 0);
    assert_int_equal(cudaStreamCreateWithFlags(&f->one, cudaStreamNonBlocking), cudaSuccess);
    assert_int_equal(cudaStreamCreateWithFlags(&f->other, cudaStreamNonBlocking), cudaSuccess);
    assert_int_equal(settings_parse(&f->settings, conf, &error), GMD_OK);
    f->d = calloc(1, sizeof *f->d);
    f->d->settings = &f->settings;
    f->d->stacks = stacks_create();
    f->d->limit_bytes = UINT64_MAX;
    pthread_mutex_init(&f->d->lock, NULL);
    f->small = get(f, 512);
    f->split = get(f, 4 * MIB);
    f->recorded = get(f, 3 * MIB);
    uint64_t freed[] = {get(f, 1024), get(f, 512), get(f, 2048)};
    put(f, freed[0]);
    put(f, freed[2]);
    assert_true(requests_record_stream(f->d, (void *)(uintptr_t)f->recorded, f->other));
    assert_int_equal(gmd_sim_launch(f->other, 1000000000, NULL, 0), cudaSuccess);
    put(f, f->recorded);
    const uint64_t id[2] = {0, 1};
    device_enter(f->d);
    assert_true(private_pools_begin(f->d, id, NULL, NULL));
    device_leave(f->d);
    assert_true(get(f, 20 * MIB));
    return f;
}

static void expect_found(const char *conf, void (*spoil)(fixture *f), const char *sentence)
{
    fixture *f = open_fixture(conf); /* is left as it is: nothing could end it well */
    expect_valid(f);
    spoil(f);
    const char *violation = device_violation(f->d);
    assert_non_null(violation);
    assert_string_equal(violation, sentence);
}

/* --- what the corruptions are of --------------------------------------------------------- */

/* The heap of the default pool. */
static heap *home(const fixture *f)
{
    return f->d->default_pool.heaps[0];
}

static block *live(const fixture *f, uint64_t address)
{
    return block_map_block(*block_map_find(&home(f)->allocated, address));
}

static block *first_free(const fixture *f, pool_kind kind)
{
    return free_set_lower_bound(&home(f)->sets[kind], 512, 0);
}

static void note_block(void *context, block *b)
{
    *(block **)context = b;
}

static block *waiting(const fixture *f)
{
    block *b = NULL;
    pending_each(&f->d->pending, note_block, &b);
    return b;
}

/* --- blocks ------------------------------------------------------------------------------ */

static void make_a_gap(fixture *f)
{
    live(f, f->small)->size += 512;
}

static void break_a_link(fixture *f)
{
    live(f, f->small)->next->previous = NULL;
}

static void leave_free_neighbours_apart(fixture *f)
{
    heap *h = home(f);
    block *b = first_free(f, POOL_LARGE), *rest = block_pool_take(&h->blocks);
    blocks_remove(b);
    *rest = *b;
    rest->previous = b;
    rest->address += 512;
    rest->size -= 512;
    b->next = rest;
    b->size = 512;
    blocks_insert(&f->settings, b);
    blocks_insert(&f->settings, rest);
}

static void lose_a_free_block(fixture *f)
{
    blocks_remove(first_free(f, POOL_SMALL));
}

static void lose_a_live_block(fixture *f)
{
    block_map_remove(&home(f)->allocated, block_map_find(&home(f)->allocated, f->small));
}

static void put_a_live_block_into_a_set(fixture *f)
{
    free_set_insert(&home(f)->sets[POOL_SMALL], live(f, f->small));
}

static void move_a_block_in_the_map(fixture *f)
{
    live(f, f->small)->address += UINT64_C(64) * 512;
}

static void let_the_other_kind_have_a_block(fixture *f)
{
    block *b = live(f, f->split);
    b->set_and_state = (uint64_t)(uintptr_t)&home(f)->sets[POOL_SMALL] | BLOCK_ALLOCATED;
}

static void give_a_block_away(fixture *f)
{
    block *b = live(f, f->small);
    b->set_and_state = (uint64_t)(uintptr_t)&f->d->heaps->sets[POOL_SMALL] | BLOCK_ALLOCATED;
    assert_ptr_not_equal(f->d->heaps, home(f));
}

static void ask_for_more_than_there_is(fixture *f)
{
    live(f, f->small)->requested_size = 513;
}

TEST(each_corruption_of_blocks_is_found)
{
    expect_found("", make_a_gap, "blocks tile their segment");
    expect_found("", break_a_link, "neighbours know each other");
    expect_found("", leave_free_neighbours_apart, "free neighbours are merged");
    expect_found("", lose_a_free_block, "each block of a segment is in a set, in a map or pending");
    expect_found("", lose_a_live_block, "each block of a segment is in a set, in a map or pending");
    expect_found("", put_a_live_block_into_a_set,
                 "a set has the blocks that are nobody's, apart by whether they have memory");
    expect_found("", move_a_block_in_the_map, "the map finds each of its blocks by its address");
    expect_found("", let_the_other_kind_have_a_block, "the blocks of a segment are of one set");
    expect_found("", give_a_block_away, "a block is of the heap that has it");
    expect_found("", ask_for_more_than_there_is, "a block holds what was asked for");
}

/* --- sets, maps and places --------------------------------------------------------------- */

static void disorder_a_tree(fixture *f)
{
    free_set *set = &home(f)->sets[POOL_SMALL];
    block *b = first_free(f, POOL_SMALL);
    block_tree_remove(&set->bins[(b->size >> 9) - 1], BY_SIZE, b);
    block_tree_insert(&set->bins[20], BY_SIZE, b);
    set->bitmap[0] = set->bitmap[0] | 1 << 20;
}

static void unmark_a_word(fixture *f)
{
    home(f)->sets[POOL_SMALL].summary = 0;
}

static void mark_an_empty_word(fixture *f)
{
    home(f)->sets[POOL_SMALL].summary |= (uint64_t)1 << 30;
}

static void miscount_a_set(fixture *f)
{
    home(f)->sets[POOL_SMALL].block_count++;
}

static void miscount_a_map(fixture *f)
{
    home(f)->allocated.count++;
}

static void place_a_segment_twice(fixture *f)
{
    static placed_segment twice[] = {{512, 512, 1024}, {1024, 1024, 512}};
    f->d->places = (places){.by_place = twice, .by_address = twice, .count = 2, .capacity = 2};
}

static void place_a_segment_in_one_list(fixture *f)
{
    static placed_segment one[] = {{512, 4096, 512}}, another[] = {{512, 8192, 512}};
    f->d->places = (places){.by_place = one, .by_address = another, .count = 1, .capacity = 1};
}

TEST(each_corruption_of_a_set_a_map_or_places_is_found)
{
    expect_found("", disorder_a_tree, "a marked bin has a block");
    expect_found("", unmark_a_word, "a set counts its free blocks");
    expect_found("", mark_an_empty_word, "a marked word of the bitmap marks a bin");
    expect_found("", miscount_a_set, "a set counts its free blocks");
    expect_found("", miscount_a_map, "the map counts its blocks");
    expect_found("", place_a_segment_twice,
                 "placed segments are in order, and none begins within another");
    expect_found("", place_a_segment_in_one_list,
                 "both lists of placed segments have the same ones");
}

static block tree_block(free_set *set, uint64_t address)
{
    return (block){.address = address, .size = 512, .set_and_state = (uint64_t)(uintptr_t)set};
}

/* The one of two blocks that outranks the other is the root, and the lower one is on the left. */
TEST(a_tree_out_of_order_or_rank_is_found)
{
    free_set set = {.is_small = true};
    block a = tree_block(&set, 512), b = tree_block(&set, 1024);
    free_set_insert(&set, &a);
    free_set_insert(&set, &b);
    assert_null(free_set_violation(&set, NULL, NULL));
    block *root = set.bins[0], *child = root == &a ? &b : &a;
    block *left = root->left;
    root->left = root->right;
    root->right = left;
    assert_string_equal(free_set_violation(&set, NULL, NULL), "a tree of blocks is in order");
    set.bins[0] = child;
    *root = tree_block(&set, root->address);
    *(child == &a ? &child->right : &child->left) = root;
    assert_string_equal(free_set_violation(&set, NULL, NULL),
                        "a block outranks its children in the tree");
}

TEST(a_set_with_a_stranger_or_an_unmarked_block_is_found)
{
    static free_set set = {.is_small = true}, another = {.is_small = true};
    block a = tree_block(&another, 512);
    free_set_insert(&set, &a);
    assert_string_equal(free_set_violation(&set, NULL, NULL),
                        "a block lies in the set that it names");
    a.set_and_state = (uint64_t)(uintptr_t)&set;
    assert_true(free_set_is_valid(&set));
    set.bitmap[0] = set.summary = set.block_count = 0;
    assert_false(free_set_is_valid(&set));
}

/* --- figures ----------------------------------------------------------------------------- */

static void miscount_allocations(fixture *f)
{
    home(f)->stats.counts[POOL_SMALL][FIGURE_ALLOCATION].current--;
}

static void miscount_requested_bytes(fixture *f)
{
    home(f)->stats.counts[POOL_SMALL][FIGURE_REQUESTED_BYTES].current--;
}

static void miscount_inactive_splits(fixture *f)
{
    home(f)->stats.counts[POOL_SMALL][FIGURE_INACTIVE_SPLIT_BYTES].current -= 512;
}

static void miscount_what_is_pending(fixture *f)
{
    live(f, f->split); /* the pending block is in the large pool, as this one */
    home(f)->stats.pending[POOL_LARGE][0]++;
    home(f)->stats.pending[POOL_LARGE][1] += 512;
    statistics_make_room(&f->d->stats, &home(f)->stats, POOL_LARGE, FIGURE_ALLOCATION, 1);
    statistics_make_room(&f->d->stats, &home(f)->stats, POOL_LARGE, FIGURE_ALLOCATED_BYTES, 512);
}

static void miscount_reserved_bytes(fixture *f)
{
    statistics_raise_device(&f->d->stats, POOL_SMALL, FIGURE_RESERVED_BYTES, 512);
}

static void miscount_segments(fixture *f)
{
    statistics_lower_device(&f->d->stats, POOL_SMALL, FIGURE_SEGMENT, 1);
}

static void miscount_a_sum(fixture *f)
{
    f->d->stats.pooled[POOL_ALL][FIGURE_SEGMENT].current--;
}

static void miscount_oversize_segments(fixture *f)
{
    statistics_raise_oversize(&f->d->stats, FIGURE_OVERSIZE_SEGMENT);
}

static void forget_a_peak(fixture *f)
{
    f->d->stats.pooled[POOL_ALL][FIGURE_RESERVED_BYTES].peak = 0;
}

static void promise_too_much(fixture *f)
{
    home(f)->stats.shares[POOL_ALL][FIGURE_ALLOCATION].ceiling += 1000;
    home(f)->stats.ends[FIGURE_ALLOCATION] += 1000;
    home(f)->stats.shares[POOL_ALL][FIGURE_ACTIVE].ceiling += 1000;
}

static void pass_a_ceiling(fixture *f)
{
    home(f)->stats.shares[POOL_SMALL][FIGURE_ALLOCATION].ceiling = 0;
}

static void misplace_an_end(fixture *f)
{
    home(f)->stats.ends[FIGURE_ALLOCATION]++;
}

static void forget_that_a_heap_shares(fixture *f)
{
    home(f)->stats.is_sharing = false;
}

static void confuse_the_latest_use(fixture *f)
{
    f->d->stats.least_used->last_used = f->d->stats.now + 1;
}

static void forget_who_was_used_least(fixture *f)
{
    f->d->stats.least_used = NULL;
}

/* Asks until the heaps share in the peaks no more. */
static void settle_all_but_one(const fixture *f)
{
    for (int i = 0; i < 100; i++) {
        device_enter(f->d);
        device_leave(f->d);
    }
    assert_ptr_equal(f->d->stats.sharing, f->d->stats.least_used);
}

static heap *settled_heap(const fixture *f)
{
    settle_all_but_one(f);
    return home(f)->stats.is_sharing ? f->d->default_pool.next->heaps[0] : home(f);
}

static void miscount_what_is_settled(fixture *f)
{
    settle_all_but_one(f);
    f->d->stats.settled.current[POOL_ALL][FIGURE_ALLOCATION]++;
    f->d->stats.peaks[POOL_ALL][FIGURE_ALLOCATION] += 2;
}

static void change_what_is_settled(fixture *f)
{
    settled_heap(f)->stats.counts[POOL_SMALL][FIGURE_ALLOCATION].current++;
}

static void open_what_is_settled(fixture *f)
{
    atomic_store(&settled_heap(f)->entry, HEAP_OPEN);
}

TEST(each_figure_that_is_no_sum_is_found)
{
    const char *const sums = "a heap's figures are sums over its blocks";
    expect_found("", miscount_allocations, sums);
    expect_found("", miscount_requested_bytes, sums);
    expect_found("", miscount_inactive_splits, sums);
    expect_found("", miscount_what_is_pending,
                 "a heap's pending figures are sums over its pending blocks");
    expect_found("", miscount_reserved_bytes,
                 "what is reserved is the sum over all blocks with memory");
    expect_found("", miscount_segments, "each segment of cudaMalloc is counted");
    expect_found("", miscount_a_sum, "a figure over all pools is the sum of the pools'");
    expect_found("max_split_size_mb:64", miscount_oversize_segments,
                 "oversize segments and allocations are counted");
}

TEST(each_peak_and_share_that_cannot_be_is_found)
{
    expect_found("", forget_a_peak,
                 "a figure is at most its peak, and that is at most all that was allocated");
    expect_found("", promise_too_much, "the heaps' shares of a peak fit under the peak");
    expect_found("", pass_a_ceiling, "no figure of a heap is above its ceiling");
    expect_found("", misplace_an_end, "the room of a figure ends at the lower of its ceilings");
}

TEST(each_heap_that_shares_and_should_not_is_found)
{
    const char *const settled = "settled figures are sums over the heaps that do not share";
    expect_found("", forget_that_a_heap_shares,
                 "a heap that does not share in the peaks is closed");
    expect_found("", confuse_the_latest_use,
                 "the heaps that share are in the order of their latest use");
    expect_found("", forget_who_was_used_least, "the heap that was not used for longest is known");
    expect_found("", miscount_what_is_settled, settled);
    expect_found("", change_what_is_settled, settled);
    expect_found("", open_what_is_settled, "a heap that does not share in the peaks is closed");
}

/* --- pending frees, pools and lists ------------------------------------------------------ */

static void miscount_events_of_a_block(fixture *f)
{
    block_detail_of(waiting(f))->event_count++;
}

static void miscount_events(fixture *f)
{
    f->d->pending.event_count++;
}

static void end_a_wait_too_early(fixture *f)
{
    waiting(f)->set_and_state &= ~BLOCK_PENDING;
}

static void defer_what_does_not_wait(fixture *f)
{
    f->d->pending.deferred = live(f, f->small);
}

static void forget_that_frees_wait(fixture *f)
{
    device_attend(f->d, ATTEND_PENDING, false);
}

TEST(each_corruption_of_pending_frees_is_found)
{
    expect_found("", miscount_events_of_a_block,
                 "a pending block counts its events, and is deferred once at most");
    expect_found("", miscount_events, "the events of all queues are counted");
    expect_found("", end_a_wait_too_early, "a queue has events, each of a pending block");
    expect_found("", defer_what_does_not_wait, "a deferred block is pending");
    expect_found("", forget_that_frees_wait, "what needs attention is marked, and nothing else");
}

static void lose_a_heap(fixture *f)
{
    f->d->heaps = f->d->heaps->next_of_device;
}

static void lose_a_heap_of_a_pool(fixture *f)
{
    f->d->default_pool.heap_count = 0;
}

static void forget_the_device(fixture *f)
{
    home(f)->device = NULL;
}

static void confuse_pools(fixture *f)
{
    pool *to = &f->d->default_pool;
    assert_true(to->heap_count == 1 && to->heap_capacity > 1);
    to->heaps[1] = to->next->heaps[0];
    to->heaps[1]->pool = to;
    to->heap_count = 2;
}

static void lose_a_pool(fixture *f)
{
    f->d->default_pool.next = NULL;
}

static void have_a_pool_twice(fixture *f)
{
    static pool second = {.id = {0, 1}};
    second.next = f->d->default_pool.next;
    f->d->default_pool.next = &second;
}

TEST(each_corruption_of_pools_is_found)
{
    expect_found("", lose_a_heap, "the figures of each heap are counted, once");
    expect_found("", forget_the_device, "a heap knows its pool and its device");
    expect_found("", lose_a_heap_of_a_pool, "each heap is of a pool");
    expect_found("", confuse_pools,
                 "the heaps of a pool are in the order of their streams, one of each");
    expect_found("", lose_a_pool, "a route leads to a private pool of the device");
    expect_found("", have_a_pool_twice, "a pool is there once");
}

/* --- expandable segments ----------------------------------------------------------------- */

#define EXPANDABLE "expandable_segments:True"

static void lose_the_memory_of_a_page(fixture *f)
{
    block_detail_of(live(f, f->split))->expandable->handles[0] = 0;
}

static void lose_a_segment(fixture *f)
{
    f->d->segments = f->d->segments->next;
}

static void begin_a_segment_later(fixture *f)
{
    block_detail_of(live(f, f->small))->expandable->place -= 512;
}

static void add_an_empty_segment(fixture *f)
{
    static segment empty;
    empty.next = f->d->segments;
    f->d->segments = &empty;
}

static void cut_a_page(fixture *f)
{
    block *b = live(f, f->split);
    while (!block_is_unmapped(b->next)) {
        b = b->next;
    }
    assert_true(block_is_idle(b));
    blocks_remove(b);
    blocks_remove(b->next);
    b->next->address -= 512;
    b->next->size += 512;
    b->size -= 512;
    blocks_insert(&f->settings, b);
    blocks_insert(&f->settings, b->next);
}

TEST(each_corruption_of_expandable_segments_is_found)
{
    expect_found(EXPANDABLE, lose_the_memory_of_a_page, "pages of blocks have memory");
    expect_found(EXPANDABLE, lose_a_segment, "a block lies in an expandable segment of the device");
    expect_found(EXPANDABLE, begin_a_segment_later, "blocks tile their segment from its start");
    expect_found(EXPANDABLE, add_an_empty_segment, "each expandable segment has blocks");
    expect_found(EXPANDABLE, cut_a_page, "addresses without memory are whole pages");
}

TEST(a_miscount_of_the_pages_of_a_segment_is_found)
{
    const fixture *f = open_fixture(EXPANDABLE);
    segment *s = f->d->segments;
    assert_null(segment_violation(s));
    s->mapped_pages++;
    assert_string_equal(segment_violation(s), "a segment counts the pages that have memory");
}

/* --- when, and where --------------------------------------------------------------------- */

TEST(a_heap_alone_is_checked_but_for_what_is_pending)
{
    fixture *f = open_fixture("");
    assert_null(heap_violation(home(f)));
    miscount_allocations(f);
    assert_non_null(heap_violation(home(f)));
}

TEST(with_few_blocks_one_of_four_states_is_checked)
{
    fixture *f = open_fixture("");
    miscount_segments(f);
    miscount_allocations(f);
    int of_device = 0, of_heap = 0;
    for (int i = 0; i < 16; i++) {
        of_device += device_due_violation(f->d) != NULL;
        of_heap += heap_due_violation(home(f)) != NULL;
    }
    assert_in_range(of_device, 4, 16);
    assert_in_range(of_heap, 4, 16);
}

TEST(with_many_blocks_some_states_are_checked)
{
    fixture *f = open_fixture("");
    for (int i = 0; i < 5000; i++) {
        assert_true(get(f, 512));
    }
    miscount_segments(f);
    int checks = 0;
    for (int i = 0; i < 1000; i++) {
        checks += device_due_violation(f->d) != NULL;
    }
    assert_in_range(checks, 1, 500);
}

static void leave(void *f)
{
    const fixture *of = f;
    for (int i = 0; i < 16; i++) {
        device_enter(of->d);
        device_leave(of->d);
    }
}

static void allocate_and_free(void *f)
{
    const fixture *of = f;
    for (int i = 0; i < 16; i++) {
        put(of, get(of, 512));
    }
}

/* Routes to a private pool and pending frees would have each request come with the lock. */
static fixture *open_plain_fixture(void)
{
    const uint64_t id[2] = {0, 1};
    void *context;
    fixture *f = open_fixture("");
    device_enter(f->d);
    assert_true(private_pools_end(f->d, id, &context));
    assert_true(pending_settle(f->d));
    device_leave(f->d);
    return f;
}

TEST(a_corrupt_state_that_is_left_ends_the_process)
{
    fixture *f = open_plain_fixture();
    assert_true(assertion_test(leave, f).is_silent);
    assert_true(assertion_test(allocate_and_free, f).is_silent);
    miscount_requested_bytes(f);
    bool is_checked = GMD_ASSERT_LEVEL >= 3;
    assert_int_equal(assertion_test(leave, f).is_assertion, is_checked);
    assert_int_equal(assertion_test(allocate_and_free, f).is_assertion, is_checked);
}
