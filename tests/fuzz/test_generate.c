/* Generated sequences: the same from the same seed, valid whatever the seed, and varied. */
#include "fuzz_test.h"

#include "gmd_generate.h"

static const gmd_profile_space everything = {.device_max = 4,
                                             .confs = (const char *const[]){"a:1", "b:2"},
                                             .conf_count = 2,
                                             .has_fraction = true,
                                             .has_record_stream = true,
                                             .has_pools = true,
                                             .has_checkpoints = true,
                                             .has_captures = true,
                                             .has_seeded_schedules = true,
                                             .has_budgets = true,
                                             .has_interleaving = true,
                                             .has_faults = true,
                                             .fault_targets = {{"cudaMalloc", 2}, {"cuMemMap", 2}},
                                             .fault_target_count = 2};

static char *generated_in(const gmd_profile_space *space, uint64_t seed)
{
    gmd_profile profile;
    gmd_trace trace;
    gmd_error error = {""};
    gmd_profile_draw(&profile, space, seed);
    gmd_trace_init(&trace);
    demand_ok(gmd_generate(&profile, space, seed, &trace, &error), &error);
    char *text = text_of(&trace);
    gmd_trace_free(&trace);
    return text;
}

static char *generated_text(uint64_t seed)
{
    return generated_in(&everything, seed);
}

TEST(the_same_seed_gives_the_same_requests)
{
    for (uint64_t seed = 0; seed < 50; seed++) {
        char *first = generated_text(seed), *second = generated_text(seed);
        assert_string_equal(first, second);
        free(first);
        free(second);
    }
}

TEST(another_seed_gives_other_requests)
{
    char *first = generated_text(1), *second = generated_text(2);
    assert_string_not_equal(first, second);
    free(first);
    free(second);
}

/* Powers of two and shifts end at 2^63; what is added wraps around only near 2^64. */
TEST(sizes_past_2_63_are_drawn_near_2_64_and_far_from_it)
{
    bool is_near = false, is_far = false;
    for (uint64_t seed = 0; seed < 2000 && !(is_near && is_far); seed++) {
        char *text = generated_text(seed);
        is_near = is_near || strstr(text, " 18446744073709551615 ") != NULL;
        is_far = is_far || strstr(text, " 11529215046068469759 ") != NULL;
        free(text);
    }
    assert_true(is_near);
    assert_true(is_far);
}

/* The reader of the text form refuses a free of what is not allocated, a device that is not there
 * and all the rest. */
TEST(every_sequence_is_a_valid_trace)
{
    for (uint64_t seed = 0; seed < 2000; seed++) {
        char *text = generated_text(seed);
        gmd_trace trace = parse_or_fail(text);
        assert_true(trace.count >= 20);
        gmd_trace_free(&trace);
        free(text);
    }
}

TEST(all_kinds_of_requests_come)
{
    size_t counts[GMD_OP_COUNT] = {0};
    for (uint64_t seed = 0; seed < 500; seed++) {
        char *text = generated_text(seed);
        gmd_trace trace = parse_or_fail(text);
        for (size_t i = 0; i < trace.count; i++) {
            counts[trace.requests[i].op]++;
        }
        gmd_trace_free(&trace);
        free(text);
    }
    for (int op = 0; op < GMD_OP_COUNT; op++) {
        assert_true(counts[op] > 0);
    }
}

TEST(what_a_space_does_not_have_does_not_come)
{
    static const gmd_profile_space plain = {.capacity_bytes = 64 * GMD_MIB};
    for (uint64_t seed = 0; seed < 200; seed++) {
        gmd_profile profile;
        gmd_trace trace;
        gmd_error error = {""};
        gmd_profile_draw(&profile, &plain, seed);
        gmd_trace_init(&trace);
        demand_ok(gmd_generate(&profile, &plain, seed, &trace, &error), &error);
        assert_int_equal(trace.conditions.device_count, 1);
        assert_int_equal(trace.conditions.capacity_bytes, 64 * GMD_MIB);
        assert_null(trace.conditions.conf);
        for (size_t i = 0; i < trace.count; i++) {
            uint8_t op = trace.requests[i].op;
            assert_true(op != GMD_OP_FAULT && op != GMD_OP_BUDGET && op != GMD_OP_FRACTION &&
                        op != GMD_OP_RECORD);
        }
        gmd_trace_free(&trace);
    }
}

/* The gate shapes profiles after they were drawn. A fault of no function was refused with the whole
 * round that it came in. */
TEST(what_a_profile_wants_and_a_space_does_not_have_does_not_come)
{
    static const gmd_op wanted[] = {GMD_OP_FAULT, GMD_OP_BUDGET, GMD_OP_FRACTION, GMD_OP_RECORD,
                                    GMD_OP_DESTROY};
    static const gmd_profile_space plain = {.capacity_bytes = 64 * GMD_MIB, .has_faults = true};
    gmd_profile profile;
    gmd_trace trace;
    gmd_error error = {""};
    gmd_profile_draw(&profile, &plain, 1);
    profile.stream_count = 1;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        profile.weights[wanted[i]] = 1000;
    }
    gmd_trace_init(&trace);
    demand_ok(gmd_generate(&profile, &plain, 1, &trace, &error), &error);
    for (size_t i = 0; i < trace.count; i++) {
        for (size_t k = 0; k < sizeof wanted / sizeof *wanted; k++) {
            assert_int_not_equal(trace.requests[i].op, wanted[k]);
        }
    }
    gmd_trace_free(&trace);
}

TEST(sizes_come_close_to_what_matters)
{
    static const uint64_t wanted[] = {512, GMD_MIB, GMD_MIB + 1, 10 * GMD_MIB - 1, 20 * GMD_MIB};
    size_t counts[5] = {0};
    for (uint64_t seed = 0; seed < 500; seed++) {
        char *text = generated_text(seed);
        gmd_trace trace = parse_or_fail(text);
        for (size_t i = 0; i < trace.count; i++) {
            for (size_t k = 0; k < 5 && trace.requests[i].op == GMD_OP_ALLOC; k++) {
                counts[k] += trace.requests[i].bytes == wanted[k];
            }
        }
        gmd_trace_free(&trace);
        free(text);
    }
    for (size_t k = 0; k < 5; k++) {
        assert_true(counts[k] > 10);
    }
}

static unsigned count_lines(const char *text, const char *word)
{
    unsigned count = 0;
    for (const char *at = text; (at = strstr(at, word)) != NULL; at++) {
        count += at == text || at[-1] == '\n';
    }
    return count;
}

TEST(what_is_left_out_does_not_come)
{
    gmd_profile_space space = everything;
    char unknown[32];
    assert_true(gmd_profile_leave_out(&space, "fault,destroy,threads,devices,fraction", unknown));
    for (uint64_t seed = 0; seed < 300; seed++) {
        char *text = generated_in(&space, seed);
        const char *const words[] = {"fault ", "destroy ", "thread ", "devices 2", "fraction "};
        for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
            assert_int_equal(count_lines(text, words[i]), 0);
        }
        free(text);
    }
}

TEST(a_name_of_nothing_is_told)
{
    gmd_profile_space space = everything;
    char unknown[32];
    assert_false(gmd_profile_leave_out(&space, "fault,x,huge", unknown));
    assert_string_equal(unknown, "x");
}

/* --- many of one kind -------------------------------------------------------------------- */

static gmd_profile_space space_with_many(void)
{
    gmd_profile_space space = everything;
    space.many_device_max = GMD_MAX_DEVICES;
    return space;
}

static gmd_trace *generated_with_many(gmd_many many, uint64_t seed)
{
    gmd_profile_space space = space_with_many();
    gmd_profile profile;
    gmd_error error = {""};
    free_made(NULL);
    gmd_trace *trace = make_trace("gmd-trace 1\n");
    gmd_profile_draw(&profile, &space, seed);
    assert_true(gmd_profile_take_many(&profile, &space, many, seed));
    demand_ok(gmd_generate(&profile, &space, seed, trace, &error), &error);
    return trace;
}

/* The most streams that one block has recorded. */
static size_t most_records(const gmd_trace *t)
{
    size_t most = 0;
    uint32_t *counts = calloc((size_t)t->blocks.count + 1, sizeof *counts);
    for (size_t i = 0; i < t->count; i++) {
        if (t->requests[i].op == GMD_OP_RECORD) {
            uint32_t count = ++counts[t->requests[i].block];
            most = count > most ? count : most;
        }
    }
    free(counts);
    return most;
}

static size_t most_live(const gmd_trace *t)
{
    size_t live = 0, most = 0;
    for (size_t i = 0; i < t->count; i++) {
        live += t->requests[i].op == GMD_OP_ALLOC;
        live -= t->requests[i].op == GMD_OP_FREE;
        most = live > most ? live : most;
    }
    return most;
}

static size_t count_ops(const gmd_trace *t, gmd_op op)
{
    size_t count = 0;
    for (size_t i = 0; i < t->count; i++) {
        count += t->requests[i].op == op;
    }
    return count;
}

static size_t count_streams(const gmd_trace *t)
{
    bool is_there[GMD_MAX_STREAMS] = {false};
    size_t count = 0;
    for (size_t i = 0; i < t->count; i++) {
        const gmd_request *r = &t->requests[i];
        if (r->op == GMD_OP_ALLOC && !is_there[r->stream]) {
            is_there[r->stream] = true;
            count++;
        }
    }
    return count;
}

static size_t measure(gmd_many many, const gmd_trace *t)
{
    switch (many) {
    case GMD_MANY_RECORDS:
        return most_records(t);
    case GMD_MANY_STREAMS:
        return count_streams(t);
    case GMD_MANY_BLOCKS:
        return most_live(t);
    case GMD_MANY_DEVICES:
        return t->conditions.device_count;
    case GMD_MANY_THREADS:
        return t->threads.count;
    case GMD_MANY_POOLS:
        return t->pools.count;
    case GMD_MANY_CAPTURES:
        return count_ops(t, GMD_OP_END_CAPTURE);
    default:
        return count_ops(t, GMD_OP_ALLOC);
    }
}

/* Past the sizes at which tables end: some sequence of twenty. */
TEST_F(made, sequences_have_more_of_one_kind_than_tables_hold)
{
    static const size_t past[GMD_MANY_KINDS] = {
        [GMD_MANY_RECORDS] = 128, [GMD_MANY_STREAMS] = 128,     [GMD_MANY_BLOCKS] = 512,
        [GMD_MANY_DEVICES] = 15,  [GMD_MANY_THREADS] = 32,      [GMD_MANY_POOLS] = 60,
        [GMD_MANY_CAPTURES] = 64, [GMD_MANY_OPERATIONS] = 65536};
    for (int many = GMD_MANY_NOTHING + 1; many < GMD_MANY_TURNS; many++) {
        size_t most = 0;
        for (uint64_t seed = 0; seed < 20; seed++) {
            size_t count = measure((gmd_many)many, generated_with_many((gmd_many)many, seed));
            most = count > most ? count : most;
        }
        if (most <= past[many]) {
            fail_msg("kind %d: %zu, expected more than %zu", many, most, past[many]);
        }
    }
}

TEST_F(made, sequences_with_many_of_one_kind_are_valid)
{
    for (int many = GMD_MANY_NOTHING + 1; many < GMD_MANY_KINDS; many++) {
        for (uint64_t seed = 0; seed < 10; seed++) {
            const char *text = make_text(generated_with_many((gmd_many)many, seed));
            gmd_trace again = parse_or_fail(text);
            gmd_trace_free(&again);
        }
    }
}

/* --- turns ------------------------------------------------------------------------------- */

TEST_F(made, whatever_can_be_asked_comes_many_times)
{
    static const gmd_op ops[] = {GMD_OP_ALLOC,      GMD_OP_FREE,          GMD_OP_USE,
                                 GMD_OP_RECORD,     GMD_OP_WAIT,          GMD_OP_SYNC,
                                 GMD_OP_ADVANCE,    GMD_OP_EMPTY_CACHE,   GMD_OP_DESTROY,
                                 GMD_OP_BEGIN_POOL, GMD_OP_BEGIN_CAPTURE, GMD_OP_LEAVE_ERROR};
    size_t most[GMD_OP_COUNT] = {0};
    for (uint64_t seed = 0; seed < 400; seed++) {
        const gmd_trace *t = generated_with_many(GMD_MANY_TURNS, seed);
        for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
            size_t count = count_ops(t, ops[i]);
            most[ops[i]] = count > most[ops[i]] ? count : most[ops[i]];
        }
    }
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        if (most[ops[i]] <= 16) {
            fail_msg("at most 16 times: %s", gmd_request_rows[ops[i]].word);
        }
    }
}

TEST_F(made, some_turns_are_more_than_16_bits_count)
{
    size_t most = 0;
    for (uint64_t seed = 0; seed < 4000 && most <= 65536; seed++) {
        most = count_ops(generated_with_many(GMD_MANY_TURNS, seed), GMD_OP_FREE);
    }
    assert_true(most > 65536);
}

/* Blocks of one size that others ask for after so many frees on one stream, with nothing freed in
 * between. */
static size_t taken_by_others(const gmd_trace *t, size_t freed_least)
{
    size_t freed = 0, taken = 0, most = 0;
    uint32_t by = 0;
    uint32_t *streams = calloc((size_t)t->blocks.count + 1, sizeof *streams);
    for (size_t i = 0; i < t->count; i++) {
        const gmd_request *r = &t->requests[i];
        if (r->op == GMD_OP_ALLOC) {
            streams[r->block] = r->stream;
            taken = freed >= freed_least && r->stream != by ? taken + 1 : taken;
            freed = taken || freed >= freed_least ? freed : 0;
        } else if (r->op == GMD_OP_FREE) {
            freed = !taken && (!freed || streams[r->block] == by) ? freed + 1 : 1;
            by = streams[r->block];
            taken = 0;
        }
        most = taken > most ? taken : most;
    }
    free(streams);
    return most;
}

TEST_F(made, what_one_stream_has_freed_others_ask_for)
{
    size_t most = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        size_t taken = taken_by_others(generated_with_many(GMD_MANY_TURNS, seed), 9);
        most = taken > most ? taken : most;
    }
    assert_true(most > 8);
}

TEST_F(made, turns_keep_to_the_room_that_a_profile_gives_them)
{
    gmd_profile_space space = space_with_many();
    gmd_error error = {""};
    for (uint64_t seed = 0; seed < 200; seed++) {
        gmd_profile profile;
        gmd_trace trace;
        gmd_trace_init(&trace);
        gmd_profile_draw(&profile, &space, seed);
        assert_true(gmd_profile_take_many(&profile, &space, GMD_MANY_TURNS, seed));
        profile.many_room = 40;
        demand_ok(gmd_generate(&profile, &space, seed, &trace, &error), &error);
        assert_true(trace.count <= 150); /* with those between them */
        gmd_trace_free(&trace);
    }
}

/* A real allocator's limit is a space of fewer devices, a program's of one thread. */
TEST(there_are_not_many_of_what_a_space_leaves_out)
{
    gmd_profile profile;
    char unknown[32];
    gmd_profile_space space = space_with_many();
    gmd_profile_draw(&profile, &space, 1);
    assert_true(gmd_profile_leave_out(&space, "devices,threads,pools,record", unknown));
    assert_false(gmd_profile_take_many(&profile, &space, GMD_MANY_DEVICES, 1));
    assert_false(gmd_profile_take_many(&profile, &space, GMD_MANY_THREADS, 1));
    assert_false(gmd_profile_take_many(&profile, &space, GMD_MANY_POOLS, 1));
    assert_false(gmd_profile_take_many(&profile, &space, GMD_MANY_RECORDS, 1));
    assert_true(gmd_profile_take_many(&profile, &space, GMD_MANY_BLOCKS, 1));
    assert_true(gmd_profile_leave_out(&space, "counts", unknown));
    assert_false(gmd_profile_take_many(&profile, &space, GMD_MANY_BLOCKS, 1));
}
