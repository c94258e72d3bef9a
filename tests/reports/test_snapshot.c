/* test_snapshot.c - the snapshot of a run, from journals made by hand: what follows where no
 * allocator was there to be walked, and what is made of a journal that the allocator has written
 * over. */
#include "gmd_driver.h"
#include "gmd_report.h"
#include "gmd_size.h"
#include "gmd_snapshot.h"

#include "gmd_random.h"
#include "gmd_test.h"

#include <stdlib.h>
#include <string.h>

enum { WRITTEN_OVER = 500 };
#define BASE UINT64_C(0x100000000)
#define KIB  GMD_KIB
#define MIB  GMD_MIB

static gmd_journal *journal;
static gmd_snapshot snapshot;

static int open_journal(void **state)
{
    gmd_error error;
    (void)state;
    journal = gmd_journal_open(&error);
    if (journal) {
        journal->device_count = 1;
    }
    return journal ? 0 : -1;
}

static int close_journal(void **state)
{
    (void)state;
    gmd_snapshot_free(&snapshot);
    gmd_journal_close(journal);
    return 0;
}

FIXTURE(snapshot, open_journal, close_journal);

static void note(gmd_action action, uint64_t address, uint64_t size)
{
    journal->events[journal->count] = (gmd_journal_event){.action = (uint8_t)(action + 1),
                                                          .address = address,
                                                          .size = size,
                                                          .line = (uint32_t)journal->count + 2,
                                                          .name = "a"};
    journal->count++;
}

/* What the writer makes of it, as it reads back. */
static gmd_status write_and_read(const gmd_journal *from, gmd_error *error)
{
    static gmd_outcome outcome = {.name = "case.gmd", .kind = "trace"};
    const gmd_outcome *outcomes[] = {&outcome};
    const gmd_journal *journals[] = {from};
    gmd_report report = {.outcomes = outcomes, .outcome_count = 1, .journals = journals};
    char *bytes = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&bytes, &size);
    assert_non_null(out);
    assert_int_equal(gmd_report_snapshot(&report, out, error), GMD_OK);
    fclose(out);
    gmd_status status =
        gmd_snapshot_parse(&snapshot, (const uint8_t *)bytes, size, "the snapshot", error);
    free(bytes);
    return status;
}

static void read_back(void)
{
    gmd_error error = {""};
    gmd_status status = write_and_read(journal, &error);
    assert_string_equal(error.text, "");
    assert_int_equal(status, GMD_OK);
}

static void assert_block(size_t index, uint64_t address, uint64_t size, gmd_block_state state)
{
    assert_true(index < snapshot.block_count);
    assert_int_equal(snapshot.blocks[index].address, address);
    assert_int_equal(snapshot.blocks[index].size, size);
    assert_int_equal(snapshot.blocks[index].state, state);
}

TEST_F(snapshot, what_is_between_live_blocks_is_inactive)
{
    note(GMD_ACTION_SEGMENT_ALLOC, BASE, 4 * MIB);
    note(GMD_ACTION_ALLOC, BASE + MIB, 1000);
    read_back();
    assert_int_equal(snapshot.block_count, 3);
    assert_block(0, BASE, MIB, GMD_BLOCK_INACTIVE);
    assert_block(1, BASE + MIB, 1000, GMD_BLOCK_ALLOCATED);
    assert_block(2, BASE + MIB + 1000, 3 * MIB - 1000, GMD_BLOCK_INACTIVE);
}

TEST_F(snapshot, a_free_that_is_not_completed_leaves_its_block_pending)
{
    note(GMD_ACTION_SEGMENT_ALLOC, BASE, 2 * MIB);
    note(GMD_ACTION_ALLOC, BASE, 2 * MIB);
    note(GMD_ACTION_FREE_REQUESTED, BASE, 2 * MIB);
    read_back();
    assert_block(0, BASE, 2 * MIB, GMD_BLOCK_PENDING_FREE);
}

TEST_F(snapshot, a_completed_free_leaves_nothing)
{
    note(GMD_ACTION_SEGMENT_ALLOC, BASE, 2 * MIB);
    note(GMD_ACTION_ALLOC, BASE, 2 * MIB);
    note(GMD_ACTION_FREE_REQUESTED, BASE, 2 * MIB);
    note(GMD_ACTION_FREE_COMPLETED, BASE, 2 * MIB);
    read_back();
    assert_block(0, BASE, 2 * MIB, GMD_BLOCK_INACTIVE);
}

TEST_F(snapshot, blocks_that_overlap_share_their_segment_out)
{
    note(GMD_ACTION_SEGMENT_ALLOC, BASE, 2 * MIB);
    note(GMD_ACTION_ALLOC, BASE, 8 * KIB);
    note(GMD_ACTION_ALLOC, BASE + 4 * KIB, 8 * KIB);
    read_back();
    assert_block(0, BASE, 8 * KIB, GMD_BLOCK_ALLOCATED);
    assert_block(1, BASE + 8 * KIB, 4 * KIB, GMD_BLOCK_ALLOCATED);
}

TEST_F(snapshot, a_block_in_no_known_segment_is_one)
{
    note(GMD_ACTION_ALLOC, BASE, 3 * MIB);
    read_back();
    assert_int_equal(snapshot.segment_count, 1);
    assert_int_equal(snapshot.segments[0].total_size, 3 * MIB);
}

TEST_F(snapshot, pages_that_came_one_by_one_are_one_segment)
{
    note(GMD_ACTION_SEGMENT_MAP, BASE, 2 * MIB);
    note(GMD_ACTION_SEGMENT_MAP, BASE + 2 * MIB, 2 * MIB);
    read_back();
    assert_int_equal(snapshot.segment_count, 1);
    assert_int_equal(snapshot.segments[0].total_size, 4 * MIB);
}

TEST_F(snapshot, pages_unmapped_in_the_middle_leave_two_segments)
{
    note(GMD_ACTION_SEGMENT_MAP, BASE, 6 * MIB);
    note(GMD_ACTION_SEGMENT_UNMAP, BASE + 2 * MIB, 2 * MIB);
    read_back();
    assert_int_equal(snapshot.segment_count, 2);
    assert_int_equal(snapshot.segments[1].address, BASE + 4 * MIB);
}

TEST_F(snapshot, no_journal_is_an_empty_snapshot)
{
    gmd_error error = {""};
    assert_int_equal(write_and_read(NULL, &error), GMD_OK);
    assert_int_equal(snapshot.segment_count + snapshot.event_count, 0);
}

static uint64_t next_random(uint64_t *seed)
{
    return gmd_random_mix(*seed += GMD_HASH_MULTIPLIER);
}

static void write_over(void *memory, size_t size, uint64_t *random)
{
    unsigned char *bytes = memory;
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (unsigned char)(next_random(random) % 3 ? 0 : next_random(random));
    }
}

/* The writer comes to an end; what it wrote says nothing, and may be refused by readers. */
TEST_F(snapshot, a_journal_that_was_written_over_is_written_all_the_same)
{
    for (uint64_t seed = 0; seed < 100; seed++) {
        uint64_t random = seed;
        gmd_error error;
        write_over(journal->events, WRITTEN_OVER * sizeof *journal->events, &random);
        write_over(journal->blocks, WRITTEN_OVER * sizeof *journal->blocks, &random);
        write_over(journal->conf, sizeof journal->conf, &random);
        journal->count = next_random(&random) % WRITTEN_OVER;
        journal->block_count = next_random(&random) % WRITTEN_OVER;
        journal->is_walked = (uint8_t)(next_random(&random) % 3);
        for (size_t i = 0; seed % 2 && i < WRITTEN_OVER; i++) { /* the same ones again and again */
            journal->events[i].address %= 64;
            journal->events[i].action %= 12;
        }
        write_and_read(journal, &error);
        gmd_snapshot_free(&snapshot);
    }
}
