/* Texts, frames, stacks and origins: each once, numbered as they come, number 0 the empty one. */
#include "gmd_keyed_hash.h"
#include "gmd_origins.h"
#include "gmd_test.h"

#include <stdio.h>
#include <string.h>

static gmd_origins seen;

static int free_seen(void **state)
{
    (void)state;
    gmd_origins_free(&seen);
    return 0;
}

FIXTURE(origins, NULL, free_seen);

static uint32_t text(const char *bytes)
{
    uint32_t number;
    assert_true(gmd_origins_add_text(&seen, bytes, strlen(bytes), &number));
    return number;
}

TEST_F(origins, none_has_number_0_before_anything_is_added)
{
    size_t length, count;
    assert_string_equal(gmd_origins_text(&seen, 0, &length), "");
    assert_int_equal(length, 0);
    gmd_origins_stack(&seen, 0, &count);
    assert_int_equal(count, 0);
    assert_int_equal(gmd_origins_get(&seen, 0).stack, 0);
    assert_int_equal(gmd_origins_frame(&seen, 0).line, 0);
    assert_int_equal(gmd_origins_count(&seen), 1);
    assert_int_equal(gmd_origins_text_count(&seen), 1);
}

TEST_F(origins, the_same_text_has_the_same_number)
{
    assert_int_equal(text("train.py"), 1);
    assert_int_equal(text("model.py"), 2);
    assert_int_equal(text("train.py"), 1);
    assert_int_equal(text(""), 0);
    assert_int_equal(gmd_origins_text_count(&seen), 3);
    assert_string_equal(gmd_origins_text(&seen, 2, NULL), "model.py");
}

TEST_F(origins, a_text_may_hold_any_bytes)
{
    uint32_t number;
    size_t length;
    assert_true(gmd_origins_add_text(&seen, "a\0b", 3, &number));
    assert_int_not_equal(number, text("a"));
    assert_memory_equal(gmd_origins_text(&seen, number, &length), "a\0b", 4); /* a zero behind */
    assert_int_equal(length, 3);
}

TEST_F(origins, a_name_with_a_nul_is_whole)
{
    uint32_t number;
    assert_true(gmd_origins_add_name(&seen, "a\0b\0", 4, &number));
    assert_string_equal(gmd_origins_text(&seen, number, NULL), "a\u2400b\u2400");
    assert_int_not_equal(number, text("a"));
}

TEST_F(origins, a_name_without_one_is_as_it_is)
{
    uint32_t number;
    assert_true(gmd_origins_add_name(&seen, "train.py", 8, &number));
    assert_int_equal(number, text("train.py"));
}

TEST_F(origins, a_stack_is_its_frames_in_their_order)
{
    const uint32_t there[] = {3, 1, 2}, back[] = {2, 1, 3};
    uint32_t first, second, again, none;
    size_t count;
    assert_true(gmd_origins_add_stack(&seen, there, 3, &first));
    assert_true(gmd_origins_add_stack(&seen, back, 3, &second));
    assert_true(gmd_origins_add_stack(&seen, there, 3, &again));
    assert_true(gmd_origins_add_stack(&seen, NULL, 0, &none));
    assert_int_equal(again, first);
    assert_int_not_equal(second, first);
    assert_int_equal(none, 0);
    assert_memory_equal(gmd_origins_stack(&seen, second, &count), back, sizeof back);
    assert_int_equal(count, 3);
}

TEST_F(origins, frames_differ_in_file_function_or_line)
{
    const gmd_frame frames[] = {{1, 2, 3}, {1, 2, 4}, {1, 3, 3}, {2, 2, 3}};
    uint32_t number;
    for (uint32_t i = 0; i < 4; i++) {
        assert_true(gmd_origins_add_frame(&seen, &frames[i], &number));
        assert_int_equal(number, i + 1);
        assert_int_equal(gmd_origins_frame(&seen, number).line, frames[i].line);
    }
    assert_int_equal(gmd_origins_frame_count(&seen), 5);
}

TEST_F(origins, an_origin_that_says_nothing_is_number_0)
{
    uint32_t number;
    assert_true(gmd_origins_add(&seen, &(gmd_origin){.metadata = 1}, &number));
    assert_int_equal(number, 1);
    assert_true(gmd_origins_add(&seen, &(gmd_origin){.stack = 0}, &number));
    assert_int_equal(number, 0);
    assert_int_equal(gmd_origins_get(&seen, 1).metadata, 1);
}

TEST_F(origins, many_texts_keep_their_numbers)
{
    enum { MANY = 100000 };
    char name[32];
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 1; i <= MANY; i++) {
            snprintf(name, sizeof name, "layer%u.py", i);
            assert_int_equal(text(name), i);
        }
    }
    assert_int_equal(gmd_origins_text_count(&seen), MANY + 1);
}

/* --- the hash ------------------------------------------------------------------------------ */

/* The example of the paper, appendix A. */
TEST(the_hash_is_siphash)
{
    unsigned char message[15];
    for (size_t i = 0; i < sizeof message; i++) {
        message[i] = (unsigned char)i;
    }
    gmd_hash_key key = {UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)};
    assert_int_equal(gmd_hash_keyed(key, message, sizeof message), UINT64_C(0xa129ca6149be45e5));
}

TEST(no_two_tables_have_the_same_key)
{
    gmd_hash_key a = gmd_hash_key_draw(), b = gmd_hash_key_draw();
    assert_true(a.first != b.first && a.second != b.second);
}
