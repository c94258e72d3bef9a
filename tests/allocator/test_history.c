/* The reference allocator's history, seen through its snapshots, which gmd's own reader reads. */
#include "gmd_allocator.h"
#include "gmd_sim.h"
#include "gmd_size.h"
#include "gmd_snapshot.h"
#include "gmd_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef struct fixture {
    gmd_allocator *a;
    cudaStream_t s1, s2;
    char path[64];
    gmd_snapshot seen;
} fixture;

static int open_fixture(void **state)
{
    static fixture f;
    gmd_sim_config config;
    gmd_sim_default_config(&config);
    config.device_count = 2;
    config.capacity_bytes = GMD_GIB;
    gmd_sim_reset(&config);
    f = (fixture){0};
    cudaStreamCreateWithFlags(&f.s1, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&f.s2, cudaStreamNonBlocking);
    snprintf(f.path, sizeof f.path, "history-%ld.pickle", (long)getpid());
    *state = &f;
    return gmd_allocator_create(&f.a, 2, NULL, NULL) == GMD_OK ? 0 : -1;
}

static int close_fixture(void **state)
{
    fixture *f = *state;
    gmd_snapshot_free(&f->seen);
    unlink(f->path);
    gmd_allocator_destroy(f->a);
    return 0;
}

FIXTURE(history, open_fixture, close_fixture);

static void record(fixture *f, uint64_t max_entries, gmd_stacks stacks)
{
    assert_int_equal(gmd_allocator_record_history(f->a, max_entries, stacks, NULL), GMD_OK);
}

static void *take(fixture *f, uint64_t size, cudaStream_t stream)
{
    return gmd_allocator_malloc(f->a, size, 0, stream);
}

static void give(fixture *f, void *block, cudaStream_t stream)
{
    assert_true(gmd_allocator_free(f->a, block, 0, stream));
}

static const gmd_snapshot *dump(fixture *f)
{
    gmd_error error = {""};
    gmd_snapshot_free(&f->seen);
    if (gmd_allocator_dump_snapshot(f->a, f->path, &error) != GMD_OK ||
        gmd_snapshot_read(&f->seen, f->path, &error) != GMD_OK) {
        fail_msg("%s", error.text);
    }
    return &f->seen;
}

/* The actions as letters: a f c for alloc, free_requested, free_completed; A F for segments; M U
 * for pages; o s for oom and snapshot. */
static const char *actions(const gmd_snapshot *s)
{
    static char text[256];
    static const char letters[] = "afcAFMUso?";
    size_t count = s->event_count < sizeof text - 1 ? s->event_count : sizeof text - 1;
    for (size_t i = 0; i < count; i++) {
        text[i] = letters[s->events[i].action];
    }
    text[count] = '\0';
    return text;
}

/* With commas between; "-": none. */
static const char *metadata_of(const gmd_snapshot *s)
{
    static char text[256];
    size_t length = 0;
    for (size_t i = 0; i < s->event_count && length < sizeof text; i++) {
        uint32_t metadata = gmd_origins_get(&s->origins, s->events[i].origin).metadata;
        const char *own = gmd_origins_text(&s->origins, metadata, NULL);
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%s", i ? "," : "",
                                   *own ? own : "-");
    }
    return text;
}

/* --- what is recorded --------------------------------------------------------------------- */

TEST_F(history, without_recording_there_are_no_events)
{
    fixture *f = *state;
    take(f, 100, f->s1);
    assert_int_equal(dump(f)->event_count, 0);
    assert_int_equal(f->seen.device_count, 2);
}

TEST_F(history, events_that_are_skipped_are_left_out)
{
    fixture *f = *state;
    assert_int_equal(gmd_allocator_skip_events(f->a, "free_requested,segment_alloc", NULL), GMD_OK);
    record(f, 100, GMD_STACKS_OFF);
    give(f, take(f, 512, f->s1), f->s1);
    assert_string_equal(actions(dump(f)), "ac");
}

TEST_F(history, events_carry_the_note_of_their_thread)
{
    fixture *f = *state;
    record(f, 100, GMD_STACKS_OFF);
    gmd_allocator_set_metadata(f->a, "step 7");
    give(f, take(f, 512, f->s1), f->s1);
    gmd_allocator_set_metadata(f->a, "");
    take(f, 512, f->s1);
    assert_string_equal(metadata_of(dump(f)), "step 7,step 7,step 7,step 7,-");
}

TEST_F(history, an_event_that_snapshots_do_not_have_is_named)
{
    fixture *f = *state;
    gmd_error error = {""};
    assert_int_equal(gmd_allocator_skip_events(f->a, "alloc,allocs", &error), GMD_BAD_INPUT);
    assert_string_equal(error.text, "history: 'allocs' is no event of a snapshot");
}

TEST_F(history, events_are_those_of_pytorch)
{
    fixture *f = *state;
    record(f, 100, GMD_STACKS_OFF);
    void *block = take(f, 3 * GMD_MIB + 1, f->s1);
    give(f, block, f->s1);
    gmd_allocator_empty_cache(f->a);
    assert_string_equal(actions(dump(f)), "AafcF");
    const gmd_snapshot_event *alloc = &f->seen.events[1];
    assert_int_equal(alloc->address, (uintptr_t)block);
    assert_int_equal(alloc->size, 3 * GMD_MIB + 1);
    assert_int_equal(alloc->stream, (uintptr_t)f->s1);
    assert_int_equal(f->seen.events[0].size, 20 * GMD_MIB);
}

TEST_F(history, pages_of_expandable_segments_are_told_as_mapped_and_unmapped)
{
    fixture *f = *state;
    gmd_allocator_destroy(f->a);
    assert_int_equal(gmd_allocator_create(&f->a, 1, "expandable_segments:True", NULL), GMD_OK);
    record(f, 100, GMD_STACKS_OFF);
    give(f, take(f, GMD_MIB, f->s1), f->s1);
    gmd_allocator_empty_cache(f->a);
    assert_string_equal(actions(dump(f)), "MafcU");
    assert_string_equal(f->seen.conf, "expandable_segments:True");
}

TEST_F(history, a_free_that_waits_is_completed_later)
{
    fixture *f = *state;
    record(f, 100, GMD_STACKS_OFF);
    void *block = take(f, 100, f->s1);
    assert_true(gmd_allocator_record_stream(f->a, block, f->s2));
    cudaMemsetAsync(block, 0, 100, f->s2);
    give(f, block, f->s1);
    dump(f);
    assert_int_equal(f->seen.blocks[0].state, GMD_BLOCK_PENDING_FREE);
    assert_int_equal(f->seen.segments[0].active_size, 512);
    assert_int_equal(f->seen.segments[0].allocated_size, 0);
    cudaDeviceSynchronize();
    take(f, 2 * GMD_MIB, f->s1);
    assert_string_equal(actions(dump(f)), "AafscAa");
}

TEST_F(history, out_of_memory_says_what_the_device_had_left)
{
    fixture *f = *state;
    record(f, 100, GMD_STACKS_OFF);
    assert_null(take(f, 2 * GMD_GIB, f->s1));
    assert_string_equal(actions(dump(f)), "o");
    size_t free_bytes = 0, total;
    cudaMemGetInfo(&free_bytes, &total);
    assert_int_equal(f->seen.events[0].address, free_bytes);
    assert_int_equal(f->seen.events[0].size, 2 * GMD_GIB);
}

TEST_F(history, a_snapshot_shows_in_the_next_one_with_the_active_bytes)
{
    fixture *f = *state;
    record(f, 100, GMD_STACKS_OFF);
    take(f, 1000, f->s1);
    dump(f);
    assert_string_equal(actions(dump(f)), "Aas");
    assert_int_equal(f->seen.events[2].size, 1024);
    assert_int_equal(f->seen.events[2].stream, 0);
}

TEST_F(history, each_device_has_its_own_events)
{
    fixture *f = *state;
    record(f, 100, GMD_STACKS_OFF);
    take(f, 100, f->s1);
    gmd_allocator_malloc(f->a, 200, 1, NULL);
    dump(f);
    assert_string_equal(actions(&f->seen), "AaAa");
    assert_int_equal(f->seen.events[1].device, 0);
    assert_int_equal(f->seen.events[3].device, 1);
    assert_int_equal(f->seen.segments[1].device, 1);
}

/* --- segments and blocks ------------------------------------------------------------------ */

typedef struct comparison { /* of a snapshot with a walk, block by block */
    const gmd_snapshot *seen;
    size_t segment, block; /* the next ones */
    int device;
    gmd_snapshot_segment sums; /* of the segment under way */
} comparison;

/* The segment's sums are known with its last block. */
static void end_segment(comparison *c)
{
    const gmd_snapshot_segment *s = &c->seen->segments[c->segment - 1];
    assert_int_equal(s->allocated_size, c->sums.allocated_size);
    assert_int_equal(s->active_size, c->sums.active_size);
    assert_int_equal(s->requested_size, c->sums.requested_size);
    assert_int_equal(s->block_count, c->sums.block_count);
}

static void begin_segment(comparison *c, const gmd_block_info *info)
{
    assert_true(c->segment < c->seen->segment_count);
    const gmd_snapshot_segment *s = &c->seen->segments[c->segment++];
    assert_int_equal(s->address, info->segment_address);
    assert_int_equal(s->total_size, info->segment_size);
    assert_int_equal(s->stream, (uintptr_t)info->stream);
    assert_memory_equal(s->pool_id, info->pool_id, sizeof s->pool_id);
    assert_int_equal(s->device, c->device);
    assert_int_equal(s->is_large, info->is_large);
    assert_int_equal(s->is_expandable, info->is_expandable);
    c->sums = (gmd_snapshot_segment){0};
}

static void compare_block(comparison *c, const gmd_block_info *info)
{
    if (info->address == info->segment_address) {
        begin_segment(c, info);
    }
    assert_true(c->block < c->seen->block_count);
    const gmd_snapshot_block *b = &c->seen->blocks[c->block++];
    assert_int_equal(b->address, info->address);
    assert_int_equal(b->size, info->size);
    assert_int_equal(b->requested_size, info->requested_size);
    assert_int_equal(b->state, info->state);
    c->sums.allocated_size += info->state == 1 ? info->size : 0;
    c->sums.active_size += info->state ? info->size : 0;
    c->sums.requested_size += info->state ? info->requested_size : 0;
    c->sums.block_count++;
    if (info->address + info->size == info->segment_address + info->segment_size) {
        end_segment(c);
    }
}

enum { BLOCKS_MAX = 64 };

typedef struct walk { /* what was seen; compared later, for a walk holds the device's lock */
    gmd_block_info blocks[BLOCKS_MAX];
    size_t count;
} walk;

static void note_block(void *context, const gmd_block_info *info)
{
    walk *w = context;
    if (w->count < BLOCKS_MAX) {
        w->blocks[w->count++] = *info;
    }
}

static void compare_device(comparison *c, gmd_allocator *a, int device)
{
    walk w = {.count = 0};
    assert_true(gmd_allocator_walk(a, device, note_block, &w));
    c->device = device;
    for (size_t i = 0; i < w.count; i++) {
        compare_block(c, &w.blocks[i]);
    }
}

/* Both pools, two streams, a private pool and two devices: live, pending and free blocks. */
static void make_blocks(fixture *f)
{
    const uint64_t id[2] = {3, 4};
    void *context, *pending = take(f, 3000, f->s1);
    assert_true(gmd_allocator_record_stream(f->a, pending, f->s2));
    cudaMemsetAsync(pending, 0, 100, f->s2);
    give(f, pending, f->s1);
    take(f, 100, f->s1);
    take(f, 2 * GMD_MIB, f->s2);
    give(f, take(f, 30 * GMD_MIB, f->s2), f->s2);
    assert_true(gmd_allocator_begin_pool(f->a, 0, id, NULL, NULL));
    take(f, 5000, f->s1);
    assert_true(gmd_allocator_end_pool(f->a, 0, id, &context));
    gmd_allocator_malloc(f->a, 700, 1, NULL);
}

static void expect_blocks_of_a_walk(fixture *f, const char *conf)
{
    gmd_allocator_destroy(f->a);
    assert_int_equal(gmd_allocator_create(&f->a, 2, conf, NULL), GMD_OK);
    make_blocks(f);
    comparison c = {.seen = dump(f)};
    compare_device(&c, f->a, 0);
    compare_device(&c, f->a, 1);
    assert_int_equal(c.segment, f->seen.segment_count);
    assert_int_equal(c.block, f->seen.block_count);
    assert_true(c.segment >= 4);
}

TEST_F(history, segments_and_blocks_are_those_of_a_walk)
{
    expect_blocks_of_a_walk(*state, "");
}

TEST_F(history, those_of_expandable_segments_are_too)
{
    expect_blocks_of_a_walk(*state, "expandable_segments:True");
}

/* --- rings -------------------------------------------------------------------------------- */

TEST_F(history, of_many_events_the_latest_are_kept)
{
    fixture *f = *state;
    record(f, 1000, GMD_STACKS_OFF);
    for (uint64_t i = 1; i <= 5000; i++) {
        give(f, take(f, i, f->s1), f->s1);
    }
    dump(f);
    assert_int_equal(f->seen.event_count, 1000);
    assert_int_equal(f->seen.events[999].action, GMD_ACTION_FREE_COMPLETED);
    assert_int_equal(f->seen.events[999].size, 5000);
    assert_int_equal(f->seen.events[0].size, 5000 - 999 / 3);
}

TEST_F(history, a_ring_that_grows_loses_nothing)
{
    fixture *f = *state;
    record(f, UINT64_MAX, GMD_STACKS_OFF);
    enum { PAIRS = 10000 }; /* of three events; rings begin with 1,024 */
    for (uint64_t i = 1; i <= PAIRS; i++) {
        give(f, take(f, i, f->s1), f->s1);
    }
    dump(f);
    assert_int_equal(f->seen.event_count, 3 * PAIRS + 1);
    for (uint64_t i = 1; i <= PAIRS; i++) {
        assert_int_equal(f->seen.events[3 * i - 2].size, i);
    }
}

TEST_F(history, the_latest_are_kept_whichever_stream_they_are_of)
{
    fixture *f = *state;
    record(f, 10, GMD_STACKS_OFF);
    for (int i = 0; i < 100; i++) {
        give(f, take(f, 100, f->s1), f->s1);
    }
    take(f, 100, f->s2);
    give(f, take(f, 300, f->s1), f->s1);
    assert_string_equal(actions(dump(f)), &"cafcafcAaafc"[2]);
    assert_int_equal(f->seen.events[6].stream, (uintptr_t)f->s2);
}

TEST_F(history, switching_on_again_begins_anew)
{
    fixture *f = *state;
    record(f, 10, GMD_STACKS_OFF);
    take(f, 100, f->s1);
    record(f, 10, GMD_STACKS_OFF);
    take(f, 100, f->s1);
    assert_string_equal(actions(dump(f)), "a");
}

TEST_F(history, with_other_stacks_a_recording_goes_on)
{
    fixture *f = *state;
    record(f, 10, GMD_STACKS_OFF);
    void *block = take(f, 100, f->s1);
    assert_int_equal(gmd_allocator_change_stacks(f->a, GMD_STACKS_ALL, NULL), GMD_OK);
    give(f, block, f->s1);
    assert_string_equal(actions(dump(f)), "Aafc");
}

TEST_F(history, without_a_recording_none_goes_on)
{
    fixture *f = *state;
    gmd_error error = {""};
    assert_int_equal(gmd_allocator_change_stacks(f->a, GMD_STACKS_ALL, &error), GMD_FAILED);
    assert_string_equal(error.text, "history: none is recorded that could go on");
    record(f, 10, GMD_STACKS_OFF);
    assert_int_equal(gmd_allocator_change_stacks(f->a, GMD_STACKS_ALL + 1, &error), GMD_BAD_INPUT);
}

TEST_F(history, switched_off_nothing_is_kept)
{
    fixture *f = *state;
    record(f, 10, GMD_STACKS_ALL);
    take(f, 100, f->s1);
    record(f, 0, GMD_STACKS_OFF);
    take(f, 100, f->s1);
    assert_string_equal(actions(dump(f)), "");
}

TEST_F(history, begun_while_a_free_waits_it_tells_nothing_of_what_came_before)
{
    fixture *f = *state;
    record(f, 100, GMD_STACKS_ALL);
    void *block = take(f, GMD_MIB, f->s1);
    assert_true(gmd_allocator_record_stream(f->a, block, f->s2));
    assert_int_equal(gmd_sim_launch(f->s2, 1000000, NULL, 0), cudaSuccess);
    assert_true(gmd_allocator_free(f->a, block, 0, f->s1));
    record(f, 100, GMD_STACKS_ALL);
    dump(f);
    for (size_t i = 0; i < f->seen.event_count; i++) {
        assert_int_not_equal(f->seen.events[i].address, (uintptr_t)block);
    }
}

/* --- order and time ----------------------------------------------------------------------- */

TEST_F(history, events_of_several_streams_are_in_the_order_of_happening)
{
    fixture *f = *state;
    record(f, UINT64_MAX, GMD_STACKS_OFF);
    cudaStream_t streams[] = {f->s1, f->s2, NULL};
    enum { PAIRS = 9999 };
    for (uint64_t i = 0; i < PAIRS; i++) {
        give(f, take(f, i + 1, streams[i * i % 7 % 3]), streams[i * i % 7 % 3]);
    }
    dump(f);
    uint64_t expected = 0;
    for (size_t i = 0; i < f->seen.event_count; i++) {
        if (f->seen.events[i].action == GMD_ACTION_ALLOC) {
            assert_int_equal(f->seen.events[i].size, ++expected);
        }
    }
    assert_int_equal(expected, PAIRS);
}

TEST_F(history, the_events_of_a_pool_that_is_gone_stay)
{
    fixture *f = *state;
    const uint64_t id[2] = {7, 0};
    void *context;
    record(f, 100, GMD_STACKS_OFF);
    take(f, 100, f->s1);
    for (int i = 0; i < 2; i++) {
        assert_true(gmd_allocator_begin_pool(f->a, 0, id, NULL, NULL));
        void *block = take(f, 200, f->s2);
        assert_true(gmd_allocator_end_pool(f->a, 0, id, &context));
        assert_true(gmd_allocator_release_pool(f->a, 0, id));
        give(f, block, f->s2);
        gmd_allocator_empty_cache(f->a);
    }
    take(f, 300, f->s1);
    assert_string_equal(actions(dump(f)), "AaAafcFAafcFa");
}

TEST_F(history, of_pools_that_are_gone_the_latest_events_are_kept)
{
    fixture *f = *state;
    const uint64_t id[2] = {7, 0};
    void *context;
    record(f, 4, GMD_STACKS_OFF);
    for (uint64_t i = 1; i <= 50; i++) {
        assert_true(gmd_allocator_begin_pool(f->a, 0, id, NULL, NULL));
        void *block = take(f, i, f->s2);
        assert_true(gmd_allocator_end_pool(f->a, 0, id, &context));
        assert_true(gmd_allocator_release_pool(f->a, 0, id));
        give(f, block, f->s2);
        gmd_allocator_empty_cache(f->a);
    }
    assert_string_equal(actions(dump(f)), "afcF");
    assert_int_equal(f->seen.events[0].size, 50);
}

static uint64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

TEST_F(history, times_are_those_of_the_wall_clock)
{
    fixture *f = *state;
    enum { TOLERANCE_US = 50 }; /* the clocks are not read at one instant */
    record(f, 100, GMD_STACKS_OFF);
    uint64_t before = now_us();
    take(f, 100, f->s1);
    uint64_t between = now_us();
    usleep(20000);
    uint64_t later = now_us();
    take(f, 100, f->s1);
    uint64_t after = now_us();
    dump(f);
    assert_in_range(f->seen.events[1].time_us, before - TOLERANCE_US, between + TOLERANCE_US);
    assert_in_range(f->seen.events[2].time_us, later - TOLERANCE_US, after + TOLERANCE_US);
}

/* --- files -------------------------------------------------------------------------------- */

TEST_F(history, a_file_that_cannot_be_written_is_named)
{
    fixture *f = *state;
    gmd_error error = {""};
    assert_int_equal(gmd_allocator_dump_snapshot(f->a, "no_such_folder/s.pickle", &error),
                     GMD_FAILED);
    assert_non_null(strstr(error.text, "no_such_folder/s.pickle: cannot be written"));
}

TEST_F(history, a_full_disk_missing)
{
    fixture *f = *state;
    gmd_error error = {""};
    if (access("/dev/full", W_OK) != 0) {
        skip();
    }
    assert_int_equal(gmd_allocator_dump_snapshot(f->a, "/dev/full", &error), GMD_FAILED);
    assert_non_null(strstr(error.text, "/dev/full: cannot be written: No space left"));
}

static long size_of(FILE *file)
{
    fseek(file, 0, SEEK_END);
    return ftell(file);
}

TEST_F(history, an_older_file_stays_until_the_new_one_is_whole)
{
    fixture *f = *state;
    dump(f);
    take(f, 100, f->s1);
    FILE *older = fopen(f->path, "rb"); /* whoever reads the old one reads on */
    assert_non_null(older);
    dump(f);
    long bytes = size_of(older);
    FILE *newer = fopen(f->path, "rb");
    assert_non_null(newer);
    assert_true(size_of(newer) > bytes);
    fclose(older);
    fclose(newer);
}

TEST_F(history, a_choice_of_stacks_that_is_none_is_refused)
{
    fixture *f = *state;
    gmd_error error = {""};
    assert_int_equal(gmd_allocator_record_history(f->a, 100, GMD_STACKS_ALL + 1, &error),
                     GMD_BAD_INPUT);
    take(f, 100, f->s1);
    assert_int_equal(dump(f)->event_count, 0);
}

TEST_F(history, a_link_goes_on_leading_to_the_file)
{
    fixture *f = *state;
    char link[80];
    snprintf(link, sizeof link, "%s.link", f->path);
    dump(f);
    assert_int_equal(symlink(f->path, link), 0);
    gmd_status status = gmd_allocator_dump_snapshot(f->a, link, NULL);
    struct stat seen;
    int missing = lstat(link, &seen);
    unlink(link);
    assert_int_equal(status, GMD_OK);
    assert_int_equal(missing, 0);
    assert_true(S_ISLNK(seen.st_mode));
}

/* Another thread's file under the name that would be taken first. */
TEST_F(history, a_file_that_another_one_is_writing_is_left_alone)
{
    fixture *f = *state;
    char name[120];
    snprintf(name, sizeof name, "%s.%ld.0.new", f->path, (long)getpid());
    FILE *others = fopen(name, "wb");
    assert_non_null(others);
    fputs("theirs", others);
    fclose(others);
    dump(f);
    others = fopen(name, "rb");
    long bytes = others ? size_of(others) : -1;
    if (others) {
        fclose(others);
    }
    unlink(name);
    assert_int_equal(bytes, 6);
}
