/* The mutator: whole records within the bound, something else most of the time, the same from the
 * same seed; and what one kind of change says it does. */
#include "fuzz_test.h"

#include "gmd_input_format.h"
#include "gmd_mutate.h"
#include "gmd_random.h"

enum { ROOM = 2000 };

typedef struct input {
    uint8_t data[ROOM];
    size_t size;
} input;

/* What seeds of a campaign look like: grown from nothing. */
static input grown(uint64_t seed)
{
    input in = {.size = 0};
    for (uint64_t i = 0; i < 30; i++) {
        in.size = gmd_mutate(in.data, in.size, sizeof in.data, gmd_random_derive(seed, i));
    }
    return in;
}

static char *decoded_text(const uint8_t *data, size_t size)
{
    gmd_trace trace;
    gmd_error error = {""};
    gmd_trace_init(&trace);
    demand_ok(gmd_input_decode(data, size, &trace, &error), &error);
    char *text = text_of(&trace);
    gmd_trace_free(&trace);
    return text;
}

static input bytes_of(const char *text)
{
    gmd_trace trace = parse_or_fail(text);
    gmd_error error = {""};
    uint8_t *data;
    input in;
    demand_ok(gmd_input_encode(&trace, &data, &in.size, &error), &error);
    assert_true(in.size <= sizeof in.data);
    memcpy(in.data, data, in.size);
    free(data);
    gmd_trace_free(&trace);
    return in;
}

static bool is_whole(size_t size)
{
    return size >= GMD_INPUT_HEADER && (size - GMD_INPUT_HEADER) % GMD_INPUT_RECORD == 0;
}

/* --- all changes ------------------------------------------------------------------------- */

/* A byte behind the room is watched: a change that wrote there would be no change of the input. */
TEST(what_is_made_is_whole_records_within_the_room)
{
    for (uint64_t seed = 0; seed < 20000; seed++) {
        gmd_random random = {seed};
        uint8_t data[600];
        size_t size = gmd_random_below(&random, 400), most = gmd_random_below(&random, 599);
        for (size_t i = 0; i < sizeof data; i++) {
            data[i] = (uint8_t)gmd_random_next(&random);
        }
        uint8_t behind = data[most > size ? most : size];
        size_t made = gmd_mutate(data, size < most ? size : most, most, seed);
        assert_true(made <= most && (most < GMD_INPUT_HEADER || is_whole(made)));
        assert_int_equal(data[most > size ? most : size], behind);
    }
}

TEST(the_same_seed_makes_the_same_change)
{
    for (uint64_t seed = 0; seed < 500; seed++) {
        input first = grown(seed), second = grown(seed);
        assert_int_equal(first.size, second.size);
        assert_memory_equal(first.data, second.data, first.size);
    }
}

TEST(most_changes_make_another_trace)
{
    size_t others = 0;
    for (uint64_t seed = 0; seed < 1000; seed++) {
        input in = grown(seed);
        char *before = decoded_text(in.data, in.size);
        in.size = gmd_mutate(in.data, in.size, sizeof in.data, seed + 1000000);
        char *after = decoded_text(in.data, in.size);
        others += strcmp(before, after) != 0;
        free(before);
        free(after);
    }
    assert_true(others > 900);
}

TEST(every_kind_changes_something)
{
    for (int kind = 0; kind < GMD_MUTATION_COUNT; kind++) {
        size_t others = 0;
        for (uint64_t seed = 0; seed < 200; seed++) {
            input in = grown(seed), before = in;
            in.size = gmd_mutate_once((gmd_mutation)kind, in.data, in.size, sizeof in.data, seed);
            others += in.size != before.size || memcmp(in.data, before.data, in.size) != 0;
        }
        if (others < 100) {
            fail_msg("mutation %d changed %zu of 200 inputs", kind, others);
        }
    }
}

/* From nothing, within a few hundred inputs, every request there is. */
TEST(all_requests_come_from_an_empty_input)
{
    uint64_t seen[GMD_OP_COUNT] = {0}, faults = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        input in = grown(seed);
        gmd_trace trace;
        gmd_error error = {""};
        gmd_trace_init(&trace);
        demand_ok(gmd_input_decode(in.data, in.size, &trace, &error), &error);
        for (size_t i = 0; i < trace.count; i++) {
            seen[trace.requests[i].op]++;
            faults += trace.requests[i].op == GMD_OP_FAULT && trace.requests[i].error == 2;
        }
        gmd_trace_free(&trace);
    }
    for (int op = 0; op < GMD_OP_COUNT; op++) {
        assert_true(seen[op] > 0);
    }
    assert_true(faults > seen[GMD_OP_FAULT] / 2);
}

/* --- single changes ---------------------------------------------------------------------- */

static const char blocks[] = "gmd-trace 1\n"
                             "alloc b0 1MiB s0\n"
                             "alloc b1 2MiB s0\n"
                             "alloc b2 3MiB s0\n"
                             "free b1\n"
                             "free b0\n"
                             "free b2\n";

/* Blocks of these sizes are freed in this order, whatever else is. */
static bool frees_in_order(const char *text, const uint64_t *sizes, size_t count)
{
    gmd_trace trace = parse_or_fail(text);
    uint64_t bytes[64];
    size_t at = 0;
    for (size_t i = 0; i < trace.count; i++) {
        const gmd_request *r = &trace.requests[i];
        if (r->op == GMD_OP_ALLOC) {
            bytes[r->block] = r->bytes;
        } else if (r->op == GMD_OP_FREE && at < count && bytes[r->block] == sizes[at]) {
            at++;
        }
    }
    gmd_trace_free(&trace);
    return at == count;
}

TEST(most_insertions_leave_the_others_their_blocks)
{
    static const uint64_t sizes[] = {2 * GMD_MIB, GMD_MIB, 3 * GMD_MIB};
    size_t kept = 0;
    for (uint64_t seed = 0; seed < 400; seed++) {
        input in = bytes_of(blocks);
        in.size = gmd_mutate_once(GMD_MUTATE_INSERT, in.data, in.size, sizeof in.data, seed);
        char *text = decoded_text(in.data, in.size);
        kept += frees_in_order(text, sizes, 3);
        free(text);
    }
    assert_true(kept > 200); /* a free may be what is put in, and a quarter does not look */
}

TEST(a_moved_free_frees_the_same_block)
{
    for (uint64_t seed = 0; seed < 400; seed++) {
        input in = bytes_of(blocks);
        in.size = gmd_mutate_once(GMD_MUTATE_MOVE_FREE, in.data, in.size, sizeof in.data, seed);
        char *text = decoded_text(in.data, in.size);
        gmd_trace trace = parse_or_fail(text);
        assert_int_equal(trace.count, 6); /* none is left out: each block is freed once */
        gmd_trace_free(&trace);
        free(text);
    }
}

TEST(a_moved_free_comes_earlier_and_later)
{
    static const char short_one[] = "gmd-trace 1\nalloc b0 1MiB s0\nalloc b1 2MiB s0\n"
                                    "free b0\nalloc b2 3MiB s0\n";
    bool is_earlier = false, is_later = false;
    for (uint64_t seed = 0; seed < 100; seed++) {
        input in = bytes_of(short_one);
        in.size = gmd_mutate_once(GMD_MUTATE_MOVE_FREE, in.data, in.size, sizeof in.data, seed);
        char *text = decoded_text(in.data, in.size);
        is_earlier |= strcmp(text, "gmd-trace 1\nalloc b0 1MiB s0\nfree b0\nalloc b1 2MiB s0\n"
                                   "alloc b2 3MiB s0\n") == 0;
        is_later |= strcmp(text, "gmd-trace 1\nalloc b0 1MiB s0\nalloc b1 2MiB s0\n"
                                 "alloc b2 3MiB s0\nfree b0\n") == 0;
        free(text);
    }
    assert_true(is_earlier && is_later);
}

TEST(another_blocks_size_is_one_that_is_there)
{
    bool is_changed = false;
    for (uint64_t seed = 0; seed < 100; seed++) {
        input in = bytes_of(blocks);
        in.size = gmd_mutate_once(GMD_MUTATE_ALIKE, in.data, in.size, sizeof in.data, seed);
        char *text = decoded_text(in.data, in.size);
        gmd_trace trace = parse_or_fail(text);
        for (size_t i = 0; i < 3; i++) {
            uint64_t bytes = trace.requests[i].bytes;
            assert_true(bytes == GMD_MIB || bytes == 2 * GMD_MIB || bytes == 3 * GMD_MIB);
            is_changed |= bytes != (i + 1) * GMD_MIB;
        }
        gmd_trace_free(&trace);
        free(text);
    }
    assert_true(is_changed);
}

TEST(a_run_of_requests_comes_many_times)
{
    size_t longest = 0;
    for (uint64_t seed = 0; seed < 1000; seed++) {
        gmd_trace trace;
        gmd_error error = {""};
        input in = bytes_of("gmd-trace 1\nalloc b0 1MiB s1\nrecord b0 s2\nfree b0\n");
        in.size = gmd_mutate_once(GMD_MUTATE_REPEAT, in.data, in.size, sizeof in.data, seed);
        gmd_trace_init(&trace);
        demand_ok(gmd_input_decode(in.data, in.size, &trace, &error), &error);
        longest = trace.count > longest ? trace.count : longest;
        gmd_trace_free(&trace);
    }
    assert_true(longest > 65536);
}

/* --- of two ------------------------------------------------------------------------------ */

TEST(crossed_inputs_have_requests_of_both)
{
    size_t mixed = 0;
    input a = bytes_of("gmd-trace 1\nalloc b0 1MiB s0\nfree b0\nalloc b1 1MiB s0\nfree b1\n");
    input b = bytes_of("gmd-trace 1\nalloc b0 7MiB s0\nempty_cache\nalloc b1 7MiB s0\nsync\n");
    for (uint64_t seed = 0; seed < 200; seed++) {
        uint8_t out[ROOM];
        size_t size = gmd_cross(a.data, a.size, b.data, b.size, out, sizeof out, seed);
        assert_true(is_whole(size));
        char *text = decoded_text(out, size);
        mixed += strstr(text, "1MiB") && strstr(text, "7MiB");
        free(text);
    }
    assert_true(mixed > 100);
}

TEST(crossed_inputs_stay_within_the_room)
{
    for (uint64_t seed = 0; seed < 3000; seed++) {
        input a = grown(seed % 20), b = grown(seed % 20 + 100);
        gmd_random random = {seed};
        uint8_t out[ROOM];
        size_t a_size = gmd_random_below(&random, a.size + 1),
               b_size = gmd_random_below(&random, b.size + 1),
               most = gmd_random_below(&random, sizeof out);
        memset(out, 0xab, sizeof out);
        size_t size = gmd_cross(a.data, a_size, b.data, b_size, out, most, seed);
        assert_true(size <= most && (!size || is_whole(size)));
        assert_int_equal(out[most], 0xab);
    }
}
