/* Inputs as bytes: any bytes are a trace that is written and read back the same, and any trace
 * comes back from its bytes with all that runs. */
#include "fuzz_test.h"

#include "gmd_cuda_lists.h"
#include "gmd_file.h"
#include "gmd_generate.h"
#include "gmd_history.h"
#include "gmd_input_format.h"
#include "gmd_input_pools.h"
#include "gmd_pool_state.h"

#include <dirent.h>
#include <limits.h>
#include <time.h>

/* --- what is compared -------------------------------------------------------------------- */

/* Blocks go by their allocations, threads by their first request: two traces that differ in these
 * numbers only run the same. */
typedef struct numbering {
    uint32_t *blocks;
    uint32_t next_block, next_thread;
    uint32_t threads[GMD_MAX_THREADS];
} numbering;

static numbering start_numbering(const gmd_trace *trace)
{
    numbering n = {.blocks = calloc((size_t)trace->blocks.count + 1, sizeof *n.blocks),
                   .next_thread = 1};
    for (uint32_t i = 1; i < GMD_MAX_THREADS; i++) {
        n.threads[i] = UINT32_MAX;
    }
    return n;
}

static uint32_t block_number(numbering *n, const gmd_request *r)
{
    if (r->op == GMD_OP_ALLOC) {
        n->blocks[r->block] = n->next_block++;
    }
    return r->op <= GMD_OP_RECORD ? n->blocks[r->block] : 0;
}

static uint32_t thread_number(numbering *n, const gmd_request *r)
{
    if (n->threads[r->thread] == UINT32_MAX) {
        n->threads[r->thread] = n->next_thread++;
    }
    return n->threads[r->thread];
}

static bool has_stream(const gmd_request *r)
{
    return (r->op <= GMD_OP_SYNC && r->op != GMD_OP_FREE) || r->op == GMD_OP_DESTROY ||
           r->op == GMD_OP_BEGIN_POOL || r->op == GMD_OP_BEGIN_CAPTURE || r->op == GMD_OP_LAUNCH;
}

static bool has_bytes(const gmd_request *r)
{
    return r->op == GMD_OP_ALLOC || r->op == GMD_OP_BUDGET || r->op == GMD_OP_USE ||
           r->op == GMD_OP_ADVANCE || r->op == GMD_OP_FRACTION || r->op == GMD_OP_FAULT;
}

static bool same_request(const gmd_trace *a, const gmd_trace *b, size_t i, numbering *an,
                         numbering *bn)
{
    const gmd_request *x = &a->requests[i], *y = &b->requests[i];
    return x->op == y->op && x->device == y->device && block_number(an, x) == block_number(bn, y) &&
           thread_number(an, x) == thread_number(bn, y) &&
           (!has_stream(x) || x->stream == y->stream) &&
           (!gmd_op_is_on_pool(x->op) || x->pool == y->pool) &&
           (!gmd_op_has(x->op, GMD_FIELD_POOL_OPTIONS) || x->pool_options == y->pool_options) &&
           (x->op != GMD_OP_WAIT || x->other_stream == y->other_stream) &&
           (!has_bytes(x) || x->bytes == y->bytes) &&
           (x->op != GMD_OP_FAULT ||
            (x->every_later == y->every_later &&
             strcmp(a->functions.items[x->function], b->functions.items[y->function]) == 0));
}

/* The seed is kept of each kind that follows from one. */
static bool same_schedule(const gmd_schedule *a, const gmd_schedule *b)
{
    bool is_seeded = gmd_schedule_is_seeded(a) && gmd_schedule_is_seeded(b);
    return (is_seeded ? a->seed == b->seed : a->kind == b->kind) &&
           a->choice_count == b->choice_count &&
           (!a->choice_count || memcmp(a->choices, b->choices, a->choice_count) == 0);
}

static bool same_header(const gmd_trace *a, const gmd_trace *b)
{
    return a->conditions.device_count == b->conditions.device_count &&
           a->conditions.capacity_bytes == b->conditions.capacity_bytes &&
           a->streams.count == b->streams.count &&
           a->conditions.reuses_handles == b->conditions.reuses_handles &&
           a->conditions.moves_clock == b->conditions.moves_clock &&
           same_schedule(&a->conditions.schedule, &b->conditions.schedule) &&
           same_schedule(&a->conditions.interleave, &b->conditions.interleave) &&
           strcmp(a->conditions.conf ? a->conditions.conf : "",
                  b->conditions.conf ? b->conditions.conf : "") == 0;
}

static void demand_same(const gmd_trace *a, const gmd_trace *b, const char *what)
{
    if (a->count != b->count || !same_header(a, b)) {
        fail_msg("%s: %zu and %zu requests, or headers that differ", what, a->count, b->count);
    }
    numbering an = start_numbering(a), bn = start_numbering(b);
    for (size_t i = 0; i < a->count; i++) {
        if (!same_request(a, b, i, &an, &bn)) {
            char x[300], y[300];
            fail_msg("%s: request %zu: '%s' and '%s'", what, i,
                     gmd_request_text(a, &a->requests[i], x, sizeof x),
                     gmd_request_text(b, &b->requests[i], y, sizeof y));
        }
    }
    free(an.blocks);
    free(bn.blocks);
}

/* --- bytes ------------------------------------------------------------------------------- */

static void fill(uint8_t *data, size_t size, uint64_t seed)
{
    gmd_random random = {seed};
    for (size_t i = 0; i < size; i++) {
        data[i] = (uint8_t)gmd_random_next(&random);
    }
}

static gmd_trace decoded(const uint8_t *data, size_t size)
{
    gmd_trace trace;
    gmd_error error = {""};
    gmd_trace_init(&trace);
    demand_ok(gmd_input_decode(data, size, &trace, &error), &error);
    return trace;
}

TEST(any_bytes_are_a_trace_that_its_text_gives_again)
{
    for (uint64_t seed = 0; seed < 3000; seed++) {
        uint8_t data[1500];
        size_t size = gmd_random_derive(seed, 0) % sizeof data;
        fill(data, size, seed);
        gmd_trace trace = decoded(data, size);
        char *text = text_of(&trace);
        gmd_trace again = parse_or_fail(text);
        demand_same(&trace, &again, "random bytes");
        assert_int_equal(trace.threads.count, again.threads.count);
        free(text);
        gmd_trace_free(&trace);
        gmd_trace_free(&again);
    }
}

TEST(any_bytes_are_a_trace_that_its_bytes_give_again)
{
    for (uint64_t seed = 0; seed < 3000; seed++) {
        uint8_t data[1500], *encoded;
        size_t size = gmd_random_derive(seed, 0) % sizeof data, encoded_size;
        gmd_error error = {""};
        fill(data, size, seed);
        gmd_trace trace = decoded(data, size);
        demand_ok(gmd_input_encode(&trace, &encoded, &encoded_size, &error), &error);
        gmd_trace again = decoded(encoded, encoded_size);
        demand_same(&trace, &again, "random bytes");
        free(encoded);
        gmd_trace_free(&trace);
        gmd_trace_free(&again);
    }
}

TEST(a_trace_that_is_used_again_is_as_good_as_a_new_one)
{
    gmd_trace used;
    gmd_error error = {""};
    gmd_trace_init(&used);
    for (uint64_t seed = 0; seed < 1000; seed++) {
        uint8_t data[800];
        size_t size = gmd_random_derive(seed, 1) % sizeof data;
        fill(data, size, seed);
        demand_ok(gmd_input_decode(data, size, &used, &error), &error);
        gmd_trace fresh = decoded(data, size);
        char *x = text_of(&used), *y = text_of(&fresh);
        assert_string_equal(x, y);
        free(x);
        free(y);
        gmd_trace_free(&fresh);
    }
    gmd_trace_free(&used);
}

/* What a test makes, freed after it. */
static gmd_trace parsed;

static int free_parsed(void **state)
{
    (void)state;
    gmd_trace_free(&parsed);
    return 0;
}

FIXTURE(trace, NULL, free_parsed);

TEST_F(trace, no_bytes_are_a_trace_without_requests)
{
    parsed = decoded(NULL, 0);
    char *text = text_of(&parsed);
    assert_string_equal(text, "gmd-trace 1\nstreams s0 s1 s2 s3\n");
    free(text);
}

/* Records of kind 15 are as old as inputs; the header's number of pools came later. */
TEST(a_record_of_a_pool_is_an_allocation_where_there_are_no_pools)
{
    uint8_t data[GMD_INPUT_HEADER + GMD_INPUT_RECORD] = {0};
    data[GMD_INPUT_AT_STREAMS] = 1;
    data[GMD_INPUT_HEADER] = GMD_RECORD_POOL;
    gmd_trace without = decoded(data, sizeof data);
    data[GMD_INPUT_AT_POOLS] = 1;
    gmd_trace with = decoded(data, sizeof data);
    assert_int_equal(without.requests[0].op, GMD_OP_ALLOC);
    assert_int_equal(with.requests[0].op, GMD_OP_BEGIN_POOL);
    gmd_trace_free(&without);
    gmd_trace_free(&with);
}

TEST_F(trace, what_no_pool_allows_is_left_out)
{
    uint8_t data[GMD_INPUT_HEADER + 5 * GMD_INPUT_RECORD] = {0};
    static const uint8_t acts[5] = {GMD_POOL_END, GMD_POOL_BEGIN, GMD_POOL_BEGIN_ON,
                                    GMD_POOL_RELEASE, GMD_POOL_END};
    data[GMD_INPUT_AT_STREAMS] = 1;
    data[GMD_INPUT_AT_POOLS] = 2;
    for (size_t i = 0; i < 5; i++) {
        uint8_t *record = data + GMD_INPUT_HEADER + i * GMD_INPUT_RECORD;
        record[0] = GMD_RECORD_POOL;
        record[2] = 1;
        record[4] = acts[i];
    }
    parsed = decoded(data, sizeof data);
    char *text = text_of(&parsed);
    assert_string_equal(text, "gmd-trace 1\nbegin_pool p0\nend_pool p0\n");
    free(text);
}

TEST_F(trace, records_of_pools_capture_and_launch)
{
    uint8_t data[GMD_INPUT_HEADER + 7 * GMD_INPUT_RECORD] = {0};
    static const uint8_t acts[7] = {GMD_POOL_LAUNCH,  GMD_POOL_CAPTURE, GMD_POOL_CAPTURE,
                                    GMD_POOL_RELEASE, GMD_POOL_END,     GMD_POOL_LAUNCH,
                                    GMD_POOL_RELEASE};
    data[GMD_INPUT_AT_STREAMS] = 2;
    data[GMD_INPUT_AT_POOLS] = 2;
    for (size_t i = 0; i < 7; i++) {
        uint8_t *record = data + GMD_INPUT_HEADER + i * GMD_INPUT_RECORD;
        record[0] = GMD_RECORD_POOL;
        record[1] = 1;
        record[2] = 1;
        record[4] = acts[i];
    }
    parsed = decoded(data, sizeof data);
    char *text = text_of(&parsed);
    assert_string_equal(text, "gmd-trace 1\nbegin_capture p0 s1\nend_capture p0\nlaunch p0 s1\n"
                              "release_pool p0\n");
    free(text);
}

TEST_F(trace, a_free_without_a_live_block_is_left_out)
{
    uint8_t data[GMD_INPUT_HEADER + 3 * GMD_INPUT_RECORD] = {0};
    data[GMD_INPUT_AT_STREAMS] = 1;
    data[GMD_INPUT_HEADER] = GMD_OP_FREE;
    data[GMD_INPUT_HEADER + GMD_INPUT_RECORD] = GMD_OP_ALLOC;
    data[GMD_INPUT_HEADER + GMD_INPUT_RECORD + 5] = 2; /* value 512 */
    data[GMD_INPUT_HEADER + 2 * GMD_INPUT_RECORD] = GMD_OP_FREE;
    parsed = decoded(data, sizeof data);
    char *text = text_of(&parsed);
    assert_string_equal(text, "gmd-trace 1\nalloc b0 512 s0\nfree b0\n");
    free(text);
}

/* A device of 32 MiB, with a block of 1 MiB live. */
TEST(boundary_codes_give_sizes_that_matter)
{
    static const struct {
        gmd_input_boundary what;
        uint32_t step, pick;
        const char *expected;
    } cases[] = {
        {GMD_BOUNDARY_USUAL, 0, 2, "1MiB"},
        {GMD_BOUNDARY_USUAL, 3, 2, "1048575"},
        {GMD_BOUNDARY_MIB, 0, 2, "3MiB"},
        {GMD_BOUNDARY_PART, 0, 1, "16MiB"},
        {GMD_BOUNDARY_LEFT, 0, 0, "31MiB"},
        {GMD_BOUNDARY_ALIKE, 4, 0, "1048577"},
        {GMD_BOUNDARY_HUGE, 0, 0, "18446744073709551615"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t data[GMD_INPUT_HEADER + 2 * GMD_INPUT_RECORD] = {0};
        char expected[200];
        data[GMD_INPUT_AT_STREAMS] = 1;
        data[GMD_INPUT_AT_CAPACITY] = 2; /* 32 MiB */
        gmd_input_put32(data + GMD_INPUT_HEADER + 4, (uint32_t)GMD_MIB);
        gmd_input_put32(data + GMD_INPUT_HEADER + GMD_INPUT_RECORD + 4,
                        gmd_input_boundary_code(cases[i].what, cases[i].step, cases[i].pick));
        gmd_trace trace = decoded(data, sizeof data);
        char *text = text_of(&trace);
        snprintf(expected, sizeof expected,
                 "gmd-trace 1\ncapacity 32MiB\nalloc b0 1MiB s0\nalloc b1 %s s0\n",
                 cases[i].expected);
        assert_string_equal(text, expected);
        free(text);
        gmd_trace_free(&trace);
    }
}

/* --- traces ------------------------------------------------------------------------------ */

static void demand_round_trip(const gmd_trace *trace, const char *what)
{
    uint8_t *data;
    size_t size;
    gmd_error error = {""};
    if (gmd_input_encode(trace, &data, &size, &error) != GMD_OK) {
        fail_msg("%s: %s", what, error.text);
    }
    gmd_trace again = decoded(data, size);
    demand_same(trace, &again, what);
    free(data);
    gmd_trace_free(&again);
}

TEST_F(trace, what_a_record_has_no_room_for_comes_back)
{
    parsed = parse_or_fail("gmd-trace 1\n"
                           "devices 16\n"
                           "capacity 18446744073709551615\n"
                           "conf max_split_size_mb:21, some_setting:[\xc3\xa9]\n"
                           "handles reused\n"
                           "schedule explicit 0 1 2 3 4 5 6 255\n"
                           "interleave seed 18446744073709551615\n"
                           "alloc a 18446744073709551615 s0 device 15\n"
                           "alloc b 2147483648 s1\n"
                           "use a s1 18446744073709551615ns\n"
                           "use b s0 3000s\n"
                           "fraction 0.3333333333333333 device 9\n"
                           "fraction 1e-320\n"
                           "fault cudaMalloc 4294967295 2 every\n"
                           "fault cudaMalloc 1 4294967295\n"
                           "budget 4GiB device 8\n"
                           "budget none\n"
                           "budget 4294967295\n"
                           "advance 2147483649ns\n");
    demand_round_trip(&parsed, "wide values");
}

TEST(hundreds_of_streams_and_all_threads_come_back)
{
    size_t room = 400000, at = 0;
    char *text = malloc(room);
    at += (size_t)snprintf(text, room, "gmd-trace 1\n");
    for (unsigned i = 1; i < GMD_MAX_STREAMS; i++) {
        at +=
            (size_t)snprintf(text + at, room - at, "thread t%u\nwait s%u s%u\nsync s%u device 5\n",
                             1 + i % (GMD_MAX_THREADS - 1), i, i - 1, i);
    }
    gmd_trace trace = parse_or_fail(text);
    assert_int_equal(trace.streams.count, GMD_MAX_STREAMS);
    assert_int_equal(trace.threads.count, GMD_MAX_THREADS);
    demand_round_trip(&trace, "streams and threads");
    gmd_trace_free(&trace);
    free(text);
}

TEST_F(trace, the_oldest_of_100000_blocks_comes_back)
{
    gmd_error error = {""};
    gmd_trace_init(&parsed);
    for (uint32_t i = 0, index; i < 100000; i++) {
        gmd_request r = {.op = GMD_OP_ALLOC, .block = i, .bytes = i};
        demand_ok(gmd_names_add(&parsed.blocks, NULL, &index, &error), &error);
        demand_ok(gmd_trace_append(&parsed, &r, &error), &error);
    }
    gmd_request first = {.op = GMD_OP_FREE, .block = 3};
    demand_ok(gmd_trace_append(&parsed, &first, &error), &error);
    demand_round_trip(&parsed, "many blocks");
}

/* Texts that are refused on purpose are no traces. */
static size_t round_trip_files(const char *folder)
{
    char path[PATH_MAX];
    size_t done = 0;
    DIR *open = opendir(folder);
    for (struct dirent *entry; open && (entry = readdir(open));) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        size_t length = strlen(path), size = 0;
        uint8_t *data = NULL;
        gmd_trace trace;
        gmd_error error = {""};
        if (entry->d_name[0] != '.' && entry->d_type == DT_DIR) {
            done += round_trip_files(path);
        } else if (length > 4 && strcmp(path + length - 4, ".gmd") == 0) {
            demand_ok(gmd_file_read(path, &data, &size, &error), &error);
            if (gmd_trace_parse(&trace, (const char *)data, size, path, &error) == GMD_OK) {
                demand_round_trip(&trace, path);
                gmd_trace_free(&trace);
                done++;
            }
            free(data);
        }
    }
    if (open) {
        closedir(open);
    }
    return done;
}

TEST(every_case_of_the_project_comes_back)
{
    assert_true(round_trip_files(GMD_TEST_SOURCE_DIR "/tests") > 100);
    assert_true(round_trip_files(GMD_TEST_SOURCE_DIR "/fuzz/cases") > 50);
}

TEST(a_recorded_history_comes_back)
{
    gmd_snapshot snapshot;
    gmd_history history;
    gmd_error error = {""};
    gmd_history_hints hints = {.recorded_retries = GMD_RETRIES_UNKNOWN};
    demand_ok(gmd_snapshot_read(&snapshot,
                                GMD_TEST_SOURCE_DIR "/tests/data/histories/cross_stream.pickle.gz",
                                &error),
              &error);
    demand_ok(gmd_history_build(&history, &snapshot, &hints, "history", &error), &error);
    assert_true(history.trace.count > 100);
    demand_round_trip(&history.trace, "history");
    gmd_history_free(&history);
    gmd_snapshot_free(&snapshot);
}

TEST(what_the_campaign_makes_comes_back)
{
    const gmd_profile_space space = {.device_max = 4,
                                     .confs = gmd_profile_confs,
                                     .conf_count = gmd_profile_conf_count,
                                     .has_fraction = true,
                                     .has_record_stream = true,
                                     .has_pools = true,
                                     .has_seeded_schedules = true,
                                     .has_budgets = true,
                                     .has_interleaving = true,
                                     .has_faults = true,
                                     .fault_targets = {{"cudaMalloc", 2}, {"cuMemMap", 2}},
                                     .fault_target_count = 2};
    for (uint64_t seed = 0; seed < 300; seed++) {
        gmd_profile profile;
        gmd_trace trace;
        gmd_error error = {""};
        gmd_profile_draw(&profile, &space, seed);
        gmd_trace_init(&trace);
        demand_ok(gmd_generate(&profile, &space, seed, &trace, &error), &error);
        demand_round_trip(&trace, "generated");
        gmd_trace_free(&trace);
    }
}

/* --- refusals ---------------------------------------------------------------------------- */

TEST_F(trace, a_fault_of_no_known_function_is_no_input)
{
    parsed = parse_or_fail("gmd-trace 1\nfault cudaNone 1 2\n");
    uint8_t *data;
    size_t size;
    gmd_error error = {""};
    assert_int_equal(gmd_input_encode(&parsed, &data, &size, &error), GMD_BAD_INPUT);
    assert_string_equal(error.text, "request 0: the simulated device has no function 'cudaNone'");
    assert_null(data);
}

TEST_F(trace, a_free_of_a_block_that_is_not_live_is_no_input)
{
    parsed = parse_or_fail("gmd-trace 1\nalloc a 1 s0\nfree a\n");
    uint8_t *data;
    size_t size;
    gmd_error error = {""};
    parsed.requests[0] = parsed.requests[1];
    assert_int_equal(gmd_input_encode(&parsed, &data, &size, &error), GMD_BAD_INPUT);
    assert_string_equal(error.text, "request 0 refers to what its trace does not have there");
}

/* --- tables and files -------------------------------------------------------------------- */

static bool is_in_the_table(const char *function)
{
    uint32_t at = 0;
    while (at < gmd_input_function_count && strcmp(gmd_input_functions[at], function) != 0) {
        at++;
    }
    return at < gmd_input_function_count;
}

TEST(every_function_of_the_device_can_be_named)
{
    static const char *const names[] = {
#define NAME(result, name, parameters, arguments) #name,
        GMD_CUDART_FUNCTIONS(NAME) GMD_CUDART_FURTHER_FUNCTIONS(NAME)
            GMD_CUDA_DRIVER_FUNCTIONS(NAME)
#undef NAME
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!is_in_the_table(names[i])) {
            fail_msg("%s is not in input_functions.c: add it at the end", names[i]);
        }
    }
    assert_int_equal(gmd_input_function_count, sizeof names / sizeof *names);
}

TEST(the_campaigns_settings_have_codes)
{
    for (size_t i = 0; i < gmd_profile_conf_count; i++) {
        uint32_t code = 1;
        while (code < gmd_input_conf_count &&
               strcmp(gmd_input_confs[code], gmd_profile_confs[i]) != 0) {
            code++;
        }
        assert_in_range(code, 1, gmd_input_conf_count - 1);
    }
}

TEST(a_file_is_read_in_either_form)
{
    static const char text[] = "gmd-trace 1\nalloc b0 1MiB s0\n";
    gmd_trace first, second;
    uint8_t *data;
    size_t size;
    gmd_error error = {""};
    demand_ok(gmd_input_read((const uint8_t *)text, sizeof text - 1, "text", &first, &error),
              &error);
    demand_ok(gmd_input_encode(&first, &data, &size, &error), &error);
    demand_ok(gmd_input_read(data, size, "bytes", &second, &error), &error);
    char *written = text_of(&second);
    assert_string_equal(written, text);
    free(written);
    free(data);
    gmd_trace_free(&first);
    gmd_trace_free(&second);
}

/* Sixty-four requests, as a mutator leaves them. The bound is far above what it takes (docs/
 * fuzzing.md has the figure): on a busy machine, and under sanitizers, it is to hold, too. */
TEST_F(trace, decoding_is_fast)
{
    enum { INPUTS = 64, ROUNDS = 300, BYTES = GMD_INPUT_HEADER + 64 * GMD_INPUT_RECORD };
    static uint8_t data[INPUTS][BYTES];
    gmd_error error = {""};
    struct timespec start, end;
    gmd_trace_init(&parsed);
    for (uint64_t i = 0; i < INPUTS; i++) {
        fill(data[i], BYTES, i);
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < INPUTS; i++) {
            demand_ok(gmd_input_decode(data[i], BYTES, &parsed, &error), &error);
        }
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    double ns = (double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec);
    print_message("%.0f ns for an input of 64 records\n", ns / (INPUTS * ROUNDS));
    assert_true(ns / (INPUTS * ROUNDS) < 100000);
}

/* --- repeats ----------------------------------------------------------------------------- */

/* 60 bytes say 70,000 allocations, each of which is freed. */
TEST_F(trace, a_short_input_has_many_requests)
{
    uint8_t data[GMD_INPUT_HEADER + 4 * GMD_INPUT_RECORD] = {0};
    uint8_t *record = data + GMD_INPUT_HEADER;
    record[0] = GMD_RECORD_WIDE;
    record[1] = GMD_WIDE_TARGET;
    gmd_input_put32(record + 4, 70000);
    record[8] = GMD_RECORD_HEADER;
    record[9] = GMD_PART_REPEAT | 1 << 4; /* two records */
    record[16] = GMD_OP_ALLOC;
    gmd_input_put32(record + 20, 512);
    record[24] = GMD_OP_FREE;
    parsed = decoded(data, sizeof data);
    assert_int_equal(parsed.count, 140000);
    assert_int_equal(parsed.requests[139998].op, GMD_OP_ALLOC);
    assert_int_equal(parsed.requests[139999].op, GMD_OP_FREE);
}

/* Five turns, in which the block is the same, and the stream another one. */
TEST_F(trace, what_steps_is_another_one_in_each_turn)
{
    uint8_t data[GMD_INPUT_HEADER + 3 * GMD_INPUT_RECORD] = {0};
    uint8_t *record = data + GMD_INPUT_HEADER;
    data[GMD_INPUT_AT_STREAMS] = 8;
    record[0] = GMD_OP_ALLOC;
    record[8] = GMD_RECORD_HEADER;
    record[9] = GMD_PART_REPEAT;
    record[10] = 2 | 1 << 3;
    record[12] = GMD_TURN_STREAM;
    record[16] = GMD_OP_RECORD;
    record[17] = 1;
    parsed = decoded(data, sizeof data);
    assert_int_equal(parsed.count, 6);
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(parsed.requests[1 + i].block, 0);
        assert_int_equal(parsed.requests[1 + i].stream, 1 + i);
    }
}

TEST_F(trace, repeats_of_an_input_are_bounded)
{
    uint8_t data[GMD_INPUT_HEADER + 6 * GMD_INPUT_RECORD] = {0};
    for (size_t i = 0; i < 2; i++) {
        uint8_t *record = data + GMD_INPUT_HEADER + i * 3 * GMD_INPUT_RECORD;
        record[0] = GMD_RECORD_WIDE;
        record[1] = GMD_WIDE_TARGET;
        gmd_input_put32(record + 4, UINT32_MAX);
        record[8] = GMD_RECORD_HEADER;
        record[9] = GMD_PART_REPEAT;
        record[16] = GMD_OP_EMPTY_CACHE;
    }
    parsed = decoded(data, sizeof data);
    assert_int_equal(parsed.count, GMD_INPUT_REPEATED_MAX);
}
