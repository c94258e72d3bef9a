/* A cause is a message without what differs from run to run. */
#include "fuzz_test.h"

#include "gmd_cause.h"

static void expect_normalised(const char *message, const char *expected)
{
    char text[256];
    gmd_cause_normalise(message, text, sizeof text);
    assert_string_equal(text, expected);
}

TEST(numbers_and_sizes_do_not_count)
{
    expect_normalised("block of 17 B at 0x7f00 overlaps 2.5 MiB (request 3)",
                      "block of # at # overlaps # (request #)");
}

TEST(a_size_is_the_same_in_every_unit)
{
    expect_normalised("1.5 MiB are left.", "# are left.");
    expect_normalised("512 B are left.", "# are left.");
}

TEST(names_of_blocks_streams_and_threads_do_not_count)
{
    expect_normalised("b3 of s1 on t12", "# of # on #");
}

TEST(other_words_with_digits_do)
{
    expect_normalised("libc10_cuda.so: b3x, num_ooms", "libc10_cuda.so: b3x, num_ooms");
}

TEST(of_a_request_only_the_first_word_counts)
{
    expect_normalised("crashed with signal 11 (Segmentation fault) in request 7: alloc act 1 s1",
                      "crashed with signal # (Segmentation fault) in request #: alloc");
}

TEST(which_symbol_is_missing_does_not_count)
{
    expect_normalised("Can't find cuMemMap: not found", "Can't find #: not found");
    expect_normalised("r.cuMemCreate_ INTERNAL ASSERT FAILED", "# INTERNAL ASSERT FAILED");
    expect_normalised("cuMemMap(0x1, 2 B) returned 400", "cuMemMap(#, #) returned #");
}

TEST(a_deadlock_is_its_locks)
{
    gmd_violation a = {.oracle = "progress",
                       .message = "deadlock: main in request 1 (free b0) waits for the lock at "
                                  "x.so+0x20, held by t1 in request 2 (alloc b1 1 s1); t1 in "
                                  "request 2 (alloc b1 1 s1) waits for the lock at x.so+0x10, held "
                                  "by main in request 1 (free b0)"};
    gmd_violation b = {.oracle = "progress",
                       .message = "deadlock: t1 in request 7 (free b0) waits for the lock at "
                                  "x.so+0x10, held by t2; t2 waits for the lock at x.so+0x20, "
                                  "held by t1"};
    gmd_violation c = {.oracle = "progress",
                       .message = "deadlock: t1 waits for the lock at x.so+0x30, held by t1"};
    gmd_cause x, y, z;
    gmd_cause_of(&a, &x);
    gmd_cause_of(&b, &y);
    gmd_cause_of(&c, &z);
    assert_string_equal(x.text, "deadlock x.so+0x10 x.so+0x20");
    assert_true(gmd_cause_equal(&x, &y));
    assert_false(gmd_cause_equal(&x, &z));
}

TEST(a_long_message_is_cut)
{
    char text[8];
    gmd_cause_normalise("abcdefghij 1", text, sizeof text);
    assert_string_equal(text, "abcdefg");
}

TEST(the_oracle_is_part_of_the_cause)
{
    gmd_violation a = {.oracle = "leak", .message = "7 left"};
    gmd_violation b = {.oracle = "size", .message = "8 left"};
    gmd_violation c = {.oracle = "leak", .message = "9 left"};
    gmd_cause x, y, z;
    gmd_cause_of(&a, &x);
    gmd_cause_of(&b, &y);
    gmd_cause_of(&c, &z);
    assert_false(gmd_cause_equal(&x, &y));
    assert_true(gmd_cause_equal(&x, &z));
}
