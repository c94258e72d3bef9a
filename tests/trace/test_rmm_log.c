/* RMM's CSV log as a recording: rows in the form of rapidsai/rmm's logging_resource_adaptor. */
#include "gmd_memory_file.h"
#include "trace_test.h"

#include <stdio.h>
#include <string.h>

#define HEAD "Thread,Time,Action,Pointer,Size,Stream\n"

static gmd_snapshot seen;

static int free_seen(void **state)
{
    (void)state;
    gmd_snapshot_free(&seen);
    return 0;
}

FIXTURE(rmm, NULL, free_seen);

static gmd_status parse(const char *text, gmd_error *error)
{
    return gmd_memory_file_parse(&seen, (const uint8_t *)text, strlen(text), "log.csv", error);
}

static void see(const char *text)
{
    gmd_error error = {""};
    gmd_status status = parse(text, &error);
    assert_string_equal(error.text, "");
    assert_int_equal(status, GMD_OK);
    assert_int_equal(seen.recorder, GMD_RECORDER_RMM);
}

static void refuse(const char *text, const char *message)
{
    gmd_error error = {""};
    assert_int_equal(parse(text, &error), GMD_BAD_INPUT);
    assert_contains(error.text, message);
    assert_int_equal(seen.event_count, 0);
}

TEST_F(rmm, an_allocation_is_an_event_of_its_size_address_stream_and_time)
{
    see(HEAD "71,11:48:13.000123,allocate,0x7f4c00000000,1048576,0x2\n");
    assert_int_equal(seen.event_count, 1);
    const gmd_snapshot_event *e = &seen.events[0];
    assert_int_equal(e->action, GMD_ACTION_ALLOC);
    assert_int_equal(e->address, 0x7f4c00000000);
    assert_int_equal(e->size, 1048576);
    assert_int_equal(e->stream, 2);
    assert_int_equal(e->time_us, ((11 * 60 + 48) * 60 + 13) * UINT64_C(1000000) + 123);
    assert_true(seen.has_events);
}

TEST_F(rmm, a_free_is_requested_and_complete)
{
    see(HEAD "1,00:00:00.000001,free,0x1000,512,0\n");
    assert_int_equal(seen.event_count, 2);
    assert_int_equal(seen.events[0].action, GMD_ACTION_FREE_REQUESTED);
    assert_int_equal(seen.events[1].action, GMD_ACTION_FREE_COMPLETED);
    assert_int_equal(seen.events[1].address, 0x1000);
}

TEST_F(rmm, a_failure_is_an_out_of_memory)
{
    see(HEAD "1,00:00:00.000001,allocate failure,(nil),99,0\n");
    assert_int_equal(seen.event_count, 1);
    assert_int_equal(seen.events[0].action, GMD_ACTION_OOM);
    assert_int_equal(seen.events[0].size, 99);
}

TEST_F(rmm, a_request_of_no_bytes_is_left_out)
{
    see(HEAD "1,00:00:00.000001,allocate,(nil),0,0\n1,00:00:00.000002,free,(nil),0,0\n");
    assert_int_equal(seen.event_count, 0);
    assert_false(seen.has_events);
}

TEST_F(rmm, times_go_on_after_midnight)
{
    see(HEAD "1,23:59:59.999999,allocate,0x1000,512,0\n1,00:00:00.000001,allocate,0x2000,512,0\n");
    assert_int_equal(seen.events[1].time_us - seen.events[0].time_us, 2);
}

TEST_F(rmm, rows_of_threads_may_be_a_little_out_of_order)
{
    see(HEAD "1,10:00:00.000009,allocate,0x1000,512,0\n2,10:00:00.000007,allocate,0x2000,512,0\n");
    assert_int_equal(seen.events[0].time_us - seen.events[1].time_us, 2);
}

TEST_F(rmm, columns_go_by_their_names)
{
    see("Time,Action,Pointer,Size,Stream,More\r\n11:48:13:000123,allocate,0x10,32,0x0,x\r\n");
    assert_int_equal(seen.events[0].address, 16);
    assert_int_equal(seen.events[0].size, 32);
}

TEST_F(rmm, a_damaged_row_is_refused_with_its_line)
{
    refuse(HEAD "1,00:00:00.000001,allocate,0x1000,512,0\n1,00:00:00.000001,grow,0x1000,5,0\n",
           "log.csv:3: Action: expected allocate, allocate failure or free, found 'grow'");
    refuse(HEAD "1,00:00,allocate,0x1000,512,0\n",
           "log.csv:2: Time: expected HH:MM:SS.microseconds, found '00:00'");
    refuse(HEAD "1,00:00:00.000001,allocate,here,512,0\n",
           "log.csv:2: Pointer: expected a hexadecimal address, found 'here'");
    refuse(HEAD "1,00:00:00.000001,allocate,0x1000,-1,0\n",
           "log.csv:2: Size: expected a number of bytes, found '-1'");
    refuse(HEAD "1,00:00:00.000001,allocate,0x1000,99999999999999999999,0\n",
           "log.csv:2: Size: expected a number of bytes");
    refuse(HEAD "1,00:00:00.000001,allocate,0x1000,512,s\n",
           "log.csv:2: Stream: expected a hexadecimal handle, found 's'");
    refuse(HEAD "1,00:00:00.000001,allocate,0xffffffffffffffff,512,0\n",
           "log.csv:2: 512 bytes at 0xffffffffffffffff: expected a range of 64-bit addresses");
    refuse(HEAD "1,00:00:00.000001,allocate\n", "log.csv:2: expected 6 fields, found 3");
}

TEST_F(rmm, a_log_that_ends_within_a_line_is_refused_wherever_it_is_cut)
{
    char text[200];
    const char *whole = HEAD "1,00:00:00.000001,allocate,0x1000,512,0x0\n";
    see(whole);
    gmd_snapshot_free(&seen);
    for (size_t length = strlen(HEAD) + 1; length < strlen(whole); length++) {
        snprintf(text, sizeof text, "%.*s", (int)length, whole);
        refuse(text, "log.csv:2: the file is cut off within this line");
    }
}
