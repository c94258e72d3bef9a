/* The protobuf writer: bytes as the encoding guide of protocol buffers has them. */
#include "gmd_protobuf.h"
#include "gmd_test.h"

#include <string.h>

TEST(a_number_is_a_tag_and_a_varint)
{
    gmd_message message = {.size = 0};
    gmd_message_u64(&message, 1, 150);
    assert_int_equal(message.size, 3);
    assert_memory_equal(message.bytes, "\x08\x96\x01", 3);
}

TEST(the_largest_number_takes_ten_bytes)
{
    gmd_message message = {.size = 0};
    gmd_message_u64(&message, 1, UINT64_MAX);
    assert_int_equal(message.size, 11);
    assert_memory_equal(message.bytes, "\x08\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01", 11);
}

TEST(a_text_has_its_length_before_it)
{
    gmd_message message = {.size = 0};
    gmd_message_text(&message, 2, "testing");
    assert_int_equal(message.size, 9);
    assert_memory_equal(message.bytes, "\x12\x07testing", 9);
}

TEST(a_message_inside_has_its_length_before_it)
{
    gmd_message inner = {.size = 0}, outer = {.size = 0};
    gmd_message_u64(&inner, 1, 150);
    gmd_message_add(&outer, 3, &inner);
    assert_int_equal(outer.size, 5);
    assert_memory_equal(outer.bytes, "\x1A\x03\x08\x96\x01", 5);
}

TEST(a_text_is_always_utf8)
{
    gmd_message message = {.size = 0};
    gmd_message_text(&message, 2, "\xC3\xA9\xFF\xE2\x82\xAC\xF0\x9F\x98\x80");
    const char clean[] = "\xC3\xA9\xEF\xBF\xBD\xE2\x82\xAC\xF0\x9F\x98\x80";
    assert_int_equal(message.size, 2 + sizeof clean - 1);
    assert_memory_equal(message.bytes + 2, clean, sizeof clean - 1);
}

TEST(what_does_not_fit_is_left_out_whole)
{
    char text[601];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    gmd_message message = {.size = 0};
    for (int i = 0; i < 100; i++) {
        gmd_message_text(&message, 2, text);
    }
    assert_int_equal(message.size % 603, 0); /* tag, two bytes of length, 600 of text */
    assert_in_range(message.size, 603, sizeof message.bytes);
}
