/* The host's memory and files that ask for it: each request for memory is refused, alone or with
 * all later ones, and the reader says so and keeps nothing; and no small file makes it ask for
 * much. */
#include "trace_test.h"

#include "gmd_file.h"
#include "gmd_history.h"
#include "gmd_memory_file.h"
#include "gmd_memory_timeline.h"
#include "gmd_schedule.h"
#include "gmd_size.h"
#include "gmd_snapshot.h"
#include "gmd_trace.h"
#include "gmd_truth.h"
#include "host_memory.h"

#include <stdio.h>
#include <string.h>

/* --- refused memory ---------------------------------------------------------------------- */

/* Reads something and gives it back. */
typedef gmd_status reading(const void *from, gmd_error *error);

typedef struct refused_reading {
    reading *read;
    const void *from;
} refused_reading;

static bool is_refused_or_read(void *context, uint64_t nth, bool every_later)
{
    const refused_reading *r = context;
    gmd_error error = {""};
    begin_refusals(nth, every_later);
    gmd_status status = r->read(r->from, &error);
    bool was_refused = end_refusals();
    assert_int_equal(status, was_refused ? GMD_NO_MEMORY : GMD_OK);
    if (was_refused) {
        assert_contains(error.text, "no host memory");
    }
    return was_refused;
}

static void assert_survives(reading *read, const void *from)
{
    refused_reading r = {read, from};
    sweep_refusals(is_refused_or_read, &r);
}

typedef struct text {
    uint8_t *data;
    size_t size;
} text;

static gmd_status read_trace(const void *from, gmd_error *error)
{
    const text *t = from;
    gmd_trace trace;
    gmd_status status = gmd_trace_parse(&trace, (const char *)t->data, t->size, "x", error);
    if (status == GMD_OK) {
        gmd_trace_free(&trace);
    }
    return status;
}

/* More names than a table begins with, a schedule and settings. */
static text long_trace(void)
{
    text t = {NULL, 0};
    FILE *out = open_memstream((char **)&t.data, &t.size);
    assert_non_null(out);
    fputs("gmd-trace 1\nconf max_split_size_mb:128\nschedule explicit 0 3 255\n"
          "interleave explicit 1 0 1\nstreams s0 s1 copies\n",
          out);
    for (int i = 0; i < 60; i++) {
        fprintf(out, "thread t%d\nalloc block%d %d s%d\nfault cuda%d 1 2\n", i, i, 512 * (i + 1), i,
                i);
    }
    assert_int_equal(fclose(out), 0);
    return t;
}

TEST(a_text_trace_is_read_or_refused)
{
    text t = long_trace();
    assert_survives(read_trace, &t);
    free(t.data);
}

static gmd_status read_recording(const void *from, gmd_error *error)
{
    const text *t = from;
    gmd_snapshot snapshot;
    gmd_status status = gmd_memory_file_parse(&snapshot, t->data, t->size, "x", error);
    gmd_snapshot_free(&snapshot);
    return status;
}

TEST(recordings_of_other_tools_are_read_or_refused)
{
    static const char *const names[] = {"rmm_log", "heap_of_jax"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[100];
        text t;
        snprintf(path, sizeof path, "../../fuzz/corpus/memory_file/%s", names[i]);
        t.data = read_test_data(path, &t.size);
        assert_survives(read_recording, &t);
        free(t.data);
    }
}

static gmd_status read_timeline(const void *from, gmd_error *error)
{
    const text *t = from;
    gmd_memory_timeline timeline;
    gmd_status status = gmd_memory_timeline_parse(&timeline, t->data, t->size, "x", error);
    gmd_memory_timeline_free(&timeline);
    return status;
}

TEST(a_memory_timeline_is_read_or_refused)
{
    text t;
    t.data = read_test_data("../../fuzz/corpus/memory_file/timeline", &t.size);
    assert_survives(read_timeline, &t);
    free(t.data);
}

static gmd_status write_trace(const void *from, gmd_error *error)
{
    FILE *out = fopen("/dev/null", "w");
    assert_non_null(out);
    gmd_status status = gmd_trace_write(from, out, error);
    fclose(out);
    return status;
}

TEST(a_trace_is_written_or_refused)
{
    gmd_error error = {""};
    gmd_trace trace;
    text t = long_trace();
    assert_int_equal(gmd_trace_parse(&trace, (const char *)t.data, t.size, "x", &error), GMD_OK);
    assert_survives(write_trace, &trace);
    gmd_trace_free(&trace);
    free(t.data);
}

static gmd_status copy_schedule(const void *from, gmd_error *error)
{
    gmd_schedule copy;
    gmd_status status = gmd_schedule_copy(&copy, from, error);
    if (status == GMD_OK) {
        free(copy.choices);
    }
    return status;
}

TEST(a_schedule_is_copied_or_refused)
{
    static uint8_t choices[] = {1, 2, 3};
    const gmd_schedule schedule = {
        .kind = GMD_SCHEDULE_EXPLICIT, .choices = choices, .choice_count = sizeof choices};
    assert_survives(copy_schedule, &schedule);
}

static gmd_status read_packed(const void *from, gmd_error *error)
{
    uint8_t *data;
    size_t size;
    gmd_status status = gmd_file_read(from, &data, &size, error);
    if (status == GMD_OK) {
        free(data);
    }
    return status;
}

TEST(a_packed_file_is_read_or_refused)
{
    assert_survives(read_packed, GMD_TEST_DATA "/histories/hidden_leak.pickle.gz");
}

static gmd_status read_snapshot(const void *from, gmd_error *error)
{
    const text *t = from;
    gmd_snapshot snapshot;
    gmd_status status = gmd_snapshot_parse(&snapshot, t->data, t->size, "x", error);
    if (status == GMD_OK) {
        gmd_snapshot_free(&snapshot);
    }
    return status;
}

TEST(a_snapshot_is_read_or_refused)
{
    text t;
    t.data = read_test_data("histories/hidden_leak.pickle.gz", &t.size);
    assert_survives(read_snapshot, &t);
    free(t.data);
}

static gmd_status build_history(const void *from, gmd_error *error)
{
    gmd_history history;
    const gmd_history_hints hints = {.recorded_retries = GMD_RETRIES_UNKNOWN, .waits_again = true};
    gmd_status status = gmd_history_build(&history, from, &hints, "x", error);
    if (status == GMD_OK) {
        gmd_history_free(&history);
    }
    return status;
}

static void assert_history_survives(const char *name)
{
    gmd_snapshot snapshot;
    gmd_error error = {""};
    size_t size;
    uint8_t *data = read_test_data(name, &size);
    assert_int_equal(gmd_snapshot_parse(&snapshot, data, size, "x", &error), GMD_OK);
    free(data);
    assert_survives(build_history, &snapshot);
    gmd_snapshot_free(&snapshot);
}

TEST(a_history_is_built_or_refused)
{
    assert_history_survives("histories/hidden_leak.pickle.gz");
}

TEST(a_history_of_expandable_segments_is_built_or_refused)
{
    assert_history_survives("histories/expand_edge_sizes.pickle.gz");
}

TEST(a_history_of_several_streams_is_built_or_refused)
{
    assert_history_survives("histories/cross_stream.pickle.gz");
}

static gmd_status read_truth(const void *from, gmd_error *error)
{
    gmd_truth truth = {0};
    gmd_status status = gmd_truth_read_json(from, &truth, error);
    gmd_truth_free(&truth);
    return status;
}

TEST(the_recorders_figures_are_read_or_refused)
{
    assert_survives(read_truth, GMD_TEST_DATA "/histories/limit_and_empty_cache.json");
}

static gmd_status read_operations(const void *from, gmd_error *error)
{
    gmd_truth truth = {0};
    gmd_status status = gmd_truth_read_ops(from, &truth, error);
    gmd_truth_free(&truth);
    return status;
}

TEST(the_recorders_operations_are_read_or_refused)
{
    text lines = {NULL, 0};
    FILE *out = open_memstream((char **)&lines.data, &lines.size);
    assert_non_null(out);
    fputs("{\"streams\": [7, 8], \"cap\": 0}\n", out);
    for (int i = 0; i < 30; i++) {
        fputs("{\"op\":\"free\",\"id\":1,\"a\":1,\"r\":2,\"seg\":3,\"act\":4,\"isb\":5,"
              "\"retries\":6,\"ooms\":7}\n",
              out);
    }
    assert_int_equal(fclose(out), 0);
    size_t size;
    uint8_t *packed = pack(lines.data, lines.size, &size);
    assert_survives(read_operations, write_temporary(packed, size));
    remove_temporary();
    free(packed);
    free(lines.data);
}

/* --- files of a kilobyte that claim much ------------------------------------------------- */

enum { KILOBYTE = 1024 };

/* What reading a pickle of a kilobyte, the rest of it filled up, makes the reader ask for. */
static uint64_t bytes_for(const void *begin, size_t size, gmd_status expected)
{
    uint8_t *data = malloc(KILOBYTE); /* on the heap, where ASan sees each byte beyond its end */
    gmd_snapshot snapshot;
    gmd_error error = {""};
    assert_non_null(data);
    assert_true(size <= KILOBYTE);
    memset(data, 'N', KILOBYTE);
    memcpy(data, begin, size);
    begin_refusals(UINT64_MAX, false);
    gmd_status status = gmd_snapshot_parse(&snapshot, data, KILOBYTE, "x", &error);
    end_refusals();
    assert_int_equal(status, expected);
    assert_contains(error.text, ": byte ");
    free(data);
    return bytes_asked_for();
}

TEST(a_claim_of_2_to_the_60_is_refused_before_memory_is_asked_for)
{
    const bytes claims[] = {
        BYTES("\x80\x04\x8d\0\0\0\0\0\0\0\x10"),  /* BINUNICODE8 */
        BYTES("\x80\x04\x8e\0\0\0\0\0\0\0\x10"),  /* BINBYTES8 */
        BYTES("\x80\x05\x96\0\0\0\0\0\0\0\x10"),  /* BYTEARRAY8 */
        BYTES("\x80\x04\x95\0\0\0\0\0\0\0\x10"),  /* FRAME */
        BYTES("\x80\x04Np1152921504606846976\n"), /* PUT */
        BYTES("\x80\x04Nr\xff\xff\xff\xff"),      /* LONG_BINPUT, of 32 bits */
        BYTES("\x80\x04\x8b\xff\xff\xff\x7f"),    /* LONG4, of 31 bits */
    };
    for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) {
        assert_true(bytes_for(claims[i].data, claims[i].size, GMD_BAD_INPUT) <= 64 * GMD_KIB);
    }
}

/* A list of twice the one before it, sixty times: 2^60 elements, of which the file names 60. */
static size_t put_doubled_lists(uint8_t *at)
{
    size_t size = 0;
    memcpy(at, "]", 1); /* the first has one element: None */
    memcpy(at + 1, "Na\x94", 3);
    size = 4;
    for (int i = 0; i < 60; i++) { /* [before, before], kept as the next memo entry */
        const uint8_t doubled[] = {'0', ']', '(', 'h', (uint8_t)i, 'h', (uint8_t)i, 'e', 0x94};
        memcpy(at + size, doubled, sizeof doubled);
        size += sizeof doubled;
    }
    return size;
}

TEST(lists_in_lists_of_2_to_the_60_elements_are_refused_at_once)
{
    static const char *const keys[] = {"segments", "device_traces"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        uint8_t pickle[KILOBYTE] = {0x80, 4, '}'};
        size_t size = 3;
        pickle[size++] = 0x8c; /* SHORT_BINUNICODE */
        pickle[size++] = (uint8_t)strlen(keys[i]);
        memcpy(pickle + size, keys[i], strlen(keys[i]));
        size += strlen(keys[i]);
        size += put_doubled_lists(pickle + size);
        pickle[size++] = 's'; /* SETITEM */
        while (size < KILOBYTE - 1) {
            pickle[size++] = 'N', pickle[size++] = '0'; /* None, and away with it */
        }
        size_t end = size > KILOBYTE - 1 ? KILOBYTE - 1 : size;
        pickle[end] = '.';
        assert_true(bytes_for(pickle, KILOBYTE, GMD_BAD_INPUT) <= 64 * GMD_KIB);
    }
}

/* A list of many references to one list of many references to one event. */
TEST(references_that_multiply_are_refused_at_once)
{
    uint8_t pickle[KILOBYTE];
    size_t size = 0;
    static const uint8_t begin[] = "\x80\x04}\x8c\x0d"
                                   "device_traces](";
    memcpy(pickle, begin, sizeof begin - 1);
    size = sizeof begin - 1;
    static const uint8_t event[] = "}\x94\x8c\x06"
                                   "action\x8c\x05"
                                   "alloc"
                                   "s0](";
    memcpy(pickle + size, event, sizeof event - 1);
    size += sizeof event - 1;
    for (int i = 0; i < 220; i++) {
        pickle[size++] = 'h', pickle[size++] = 0;
    }
    pickle[size++] = 'e', pickle[size++] = 0x94;
    for (int i = 0; i < 240; i++) {
        pickle[size++] = 'h', pickle[size++] = 1;
    }
    pickle[size++] = 'e', pickle[size++] = 's';
    while (size < KILOBYTE - 2) {
        pickle[size++] = 'N', pickle[size++] = '0';
    }
    pickle[size++] = '.';
    assert_true(size <= KILOBYTE);
    memset(pickle + size, '.', KILOBYTE - size);
    assert_true(bytes_for(pickle, KILOBYTE, GMD_BAD_INPUT) <= 256 * GMD_KIB);
}
