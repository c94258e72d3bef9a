/* The host's memory runs out: each request for it is refused once, alone or with all later ones.
 * Whatever the allocator answers then, it has lost nothing, and goes on once there is memory. */
#include "allocator_test.h"

#include "gmd_snapshot.h"
#include "host_memory.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* --- creation ---------------------------------------------------------------------------- */

static bool create(void *context, uint64_t nth, bool every_later)
{
    (void)context;
    gmd_allocator *a = NULL;
    gmd_error error = {""};
    begin_refusals(nth, every_later);
    gmd_status status = gmd_allocator_create(&a, 2, "expandable_segments:True", &error);
    bool was_refused = end_refusals();
    assert_int_equal(status, was_refused ? GMD_NO_MEMORY : GMD_OK);
    assert_true((strstr(error.text, "no host memory") != NULL) == was_refused);
    gmd_allocator_destroy(a);
    return was_refused;
}

TEST(an_allocator_is_created_or_refused)
{
    sweep_refusals(create, NULL);
}

/* --- requests ---------------------------------------------------------------------------- */

enum { LIVE_MAX = 300 };

typedef struct owner { /* of live blocks of [address, address + size) */
    bench b;
    uint64_t address[LIVE_MAX], size[LIVE_MAX];
    int count;
    uint64_t asked, refused;
} owner;

static void own(owner *o, uint64_t size, cudaStream_t stream)
{
    uint64_t address = take_on(&o->b, size, stream);
    o->asked++;
    if (!address) {
        o->refused++;
        return;
    }
    for (int i = 0; i < o->count; i++) {
        assert_true(address + size <= o->address[i] || o->address[i] + o->size[i] <= address);
    }
    assert_true(gmd_sim_is_backed(address, size, 0, NULL));
    assert_true(o->count < LIVE_MAX);
    o->address[o->count] = address;
    o->size[o->count++] = size;
}

static void disown(owner *o, int i)
{
    give(&o->b, o->address[i]);
    o->count--;
    o->address[i] = o->address[o->count];
    o->size[i] = o->size[o->count];
}

static void disown_all(owner *o)
{
    while (o->count) {
        disown(o, o->count - 1);
    }
}

/* Small and large blocks of three streams, in more segments than lists begin with; some are used by
 * other streams when they are freed. */
static void use_streams(owner *o)
{
    const bench *b = &o->b;
    const cudaStream_t streams[] = {b->s1, b->s2, b->s3};
    for (uint64_t i = 0; i < 180; i++) {
        own(o, i % 3 ? (i * 7919) % 5000 + 1 : 21 * GMD_MIB, streams[i % 7 % 3]);
        if (i % 4 == 3 && o->count > 2) {
            int used = (int)(i * 31 % (uint64_t)o->count);
            gmd_allocator_record_stream(b->a, (void *)(uintptr_t)o->address[used], b->s2);
            gmd_allocator_record_stream(b->a, (void *)(uintptr_t)o->address[used], b->s3);
            work(b->s2, 1000);
            disown(o, used);
            disown(o, 0);
        }
        if (i % 50 == 49) {
            gmd_sim_advance(1000);
        }
    }
}

static void use_pool(owner *o)
{
    const uint64_t id[2] = {0, 5};
    void *context;
    if (gmd_allocator_begin_pool(o->b.a, 0, id, NULL, NULL)) {
        for (uint64_t i = 0; i < 10; i++) {
            own(o, i * GMD_MIB, o->b.s1);
        }
        assert_true(gmd_allocator_end_pool(o->b.a, 0, id, &context));
        assert_true(gmd_allocator_release_pool(o->b.a, 0, id));
    }
}

static bool spares_nothing(void *context)
{
    (void)context;
    return false;
}

static bool serve_requests(void *conf, uint64_t nth, bool every_later)
{
    owner o = {.b = open_bench(64 * GMD_GIB, conf)};
    const uint64_t given[] = {GMD_GIB, 3 * GMD_GIB, 2 * GMD_GIB};
    begin_refusals(nth, every_later);
    gmd_allocator_order_segments(o.b.a, 0, given, 3);
    gmd_allocator_on_low_memory(o.b.a, spares_nothing, NULL);
    use_streams(&o);
    use_pool(&o);
    bool was_refused = end_refusals();
    assert_int_equal(stats_of(&o.b).num_ooms, o.refused);
    assert_true(every_later || o.refused <= 1);
    disown_all(&o);
    gmd_allocator_empty_cache(o.b.a);
    assert_int_equal(stats_of(&o.b).active_bytes, 0);
    assert_int_equal(stats_of(&o.b).reserved_bytes, 0);
    assert_int_equal(device_state().physical_bytes, 0);
    assert_int_equal(device_state().event_count, 0);
    use_streams(&o);
    assert_int_equal(o.count ? stats_of(&o.b).num_ooms : 1, o.refused);
    expect_no_error_left();
    close_bench(&o.b);
    assert_int_equal(device_state().physical_bytes, 0);
    assert_int_equal(device_state().reservation_count, 0);
    return was_refused;
}

TEST(requests_are_served_or_refused_and_nothing_is_lost)
{
    sweep_refusals(serve_requests, "");
}

TEST(requests_of_expandable_segments_too)
{
    sweep_refusals(serve_requests, "expandable_segments:True");
}

/* --- looking ----------------------------------------------------------------------------- */

static void add_size(void *context, const gmd_block_info *info)
{
    *(uint64_t *)context += info->size;
}

static bool walk(void *of, uint64_t nth, bool every_later)
{
    owner *o = of;
    uint64_t bytes = 0;
    begin_refusals(nth, every_later);
    bool is_visited = gmd_allocator_walk(o->b.a, 0, add_size, &bytes);
    bool was_refused = end_refusals();
    assert_int_equal(is_visited, !was_refused);
    assert_int_equal(bytes, was_refused ? 0 : stats_of(&o->b).reserved_bytes);
    return was_refused;
}

TEST_F(bench, a_walk_visits_all_blocks_or_says_that_it_does_not)
{
    owner o = {.b = open_bench(64 * GMD_GIB, "")};
    for (int i = 0; i < LIVE_MAX; i++) { /* a segment each: lists begin with 256 */
        own(&o, 11 * GMD_MIB, o.b.s1);
    }
    sweep_refusals(walk, &o);
    close_bench(&o.b);
}

/* --- history ----------------------------------------------------------------------------- */

typedef struct recorder {
    bench b;
    char path[64];
    uint64_t taken; /* blocks of 1, 2, 3 and so on bytes */
} recorder;

static recorder open_recorder(void)
{
    recorder r = {.b = open_bench(GMD_GIB, "")};
    snprintf(r.path, sizeof r.path, "host-memory-%ld.pickle", (long)getpid());
    return r;
}

static void close_recorder(const recorder *r)
{
    unlink(r->path);
    close_bench(&r->b);
}

/* Another stack for every hundred requests. */
static size_t tell(void *context, char *text, size_t size)
{
    const recorder *r = context;
    return (size_t)snprintf(text, size, "a.py:%d:f", (int)(r->taken / 100));
}

/* On three streams that alternate; every other block stays. */
static void take_in_turns(recorder *r, uint64_t count)
{
    const cudaStream_t streams[] = {r->b.s1, r->b.s2, r->b.s3};
    for (uint64_t i = 0; i < count; i++) {
        uint64_t address = take_on(&r->b, ++r->taken, streams[i * i % 7 % 3]);
        if (address && i % 2) {
            give(&r->b, address);
        }
    }
}

/* The allocations of the snapshot, which are in the order of their sizes; its blocks are all. */
static uint64_t count_in_order(const recorder *r)
{
    gmd_snapshot seen = {0};
    gmd_error error = {""};
    uint64_t found = 0, before = 0, bytes = 0;
    if (gmd_snapshot_read(&seen, r->path, &error) != GMD_OK) {
        fail_msg("%s", error.text);
    }
    for (size_t i = 0; i < seen.event_count; i++) {
        if (seen.events[i].action == GMD_ACTION_ALLOC) {
            assert_true(seen.events[i].size > before);
            before = seen.events[i].size;
            found++;
        }
    }
    for (size_t i = 0; i < seen.block_count; i++) {
        bytes += seen.blocks[i].size;
    }
    assert_int_equal(bytes, stats_of(&r->b).reserved_bytes);
    gmd_snapshot_free(&seen);
    return found;
}

static bool dump(void *context, uint64_t nth, bool every_later)
{
    recorder *r = context;
    gmd_error error = {""};
    unlink(r->path);
    begin_refusals(nth, every_later);
    gmd_status status = gmd_allocator_dump_snapshot(r->b.a, r->path, &error);
    bool was_refused = end_refusals();
    if (status == GMD_OK) {
        assert_int_equal(count_in_order(r), r->taken);
    } else {
        assert_true(was_refused);
        assert_int_equal(status, GMD_NO_MEMORY);
        assert_non_null(strstr(error.text, r->path));
        assert_int_not_equal(access(r->path, F_OK), 0);
    }
    return was_refused;
}

TEST(a_snapshot_is_whole_or_there_is_none)
{
    recorder r = open_recorder();
    assert_int_equal(gmd_allocator_record_history(r.b.a, 10000, GMD_STACKS_ALL, NULL), GMD_OK);
    take_in_turns(&r, 600);
    sweep_refusals(dump, &r);
    close_recorder(&r);
}

static void use_a_pool_for_a_while(recorder *r)
{
    const uint64_t id[2] = {0, 5};
    void *context;
    if (gmd_allocator_begin_pool(r->b.a, 0, id, NULL, NULL)) {
        uint64_t address = take(&r->b, ++r->taken);
        assert_true(gmd_allocator_end_pool(r->b.a, 0, id, &context));
        assert_true(gmd_allocator_release_pool(r->b.a, 0, id));
        if (address) {
            give(&r->b, address);
        }
        gmd_allocator_empty_cache(r->b.a);
    }
}

static bool record_some(void *has_source, uint64_t nth, bool every_later)
{
    recorder r = open_recorder();
    gmd_allocator_set_stack_source(r.b.a, has_source ? tell : NULL, &r);
    begin_refusals(nth, every_later);
    gmd_status status = gmd_allocator_record_history(r.b.a, 1500, GMD_STACKS_ALL, NULL);
    take_in_turns(&r, 1500);
    use_a_pool_for_a_while(&r);
    bool was_refused = end_refusals();
    assert_int_equal(status, was_refused && status != GMD_OK ? GMD_NO_MEMORY : GMD_OK);
    assert_int_equal(gmd_allocator_dump_snapshot(r.b.a, r.path, NULL), GMD_OK);
    assert_true((count_in_order(&r) > 0) == (status == GMD_OK && stats_of(&r.b).allocation_count));
    close_recorder(&r);
    return was_refused;
}

TEST(events_that_there_is_no_room_for_are_lost_and_no_others)
{
    sweep_refusals(record_some, NULL);
    sweep_refusals(record_some, "told");
}
