#include "trace_test.h"

#include "gmd_file.h"
#include "unpack.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char text[] = "one two three four five six seven eight nine ten eleven twelve";

static gmd_status read_bytes(const void *data, size_t size, uint8_t **out, size_t *out_size,
                             gmd_error *error)
{
    gmd_status status = gmd_file_read(write_temporary(data, size), out, out_size, error);
    remove_temporary();
    return status;
}

static void assert_reads(const void *data, size_t size, const void *expected, size_t expected_size)
{
    uint8_t *out = NULL;
    size_t out_size = 0;
    gmd_error error = {""};
    if (read_bytes(data, size, &out, &out_size, &error) != GMD_OK) {
        fail_msg("%s", error.text);
    }
    assert_int_equal(out_size, expected_size);
    assert_memory_equal(out, expected, expected_size);
    assert_int_equal(out[out_size], 0);
    free(out);
}

static void assert_refuses(const void *data, size_t size, const char *part)
{
    uint8_t *out = NULL;
    size_t out_size = 0;
    gmd_error error = {""};
    assert_int_equal(read_bytes(data, size, &out, &out_size, &error), GMD_BAD_INPUT);
    assert_null(out);
    assert_contains(error.text, "gmd-trace-test-");
    assert_contains(error.text, part);
}

TEST(a_plain_file_is_read_as_it_is)
{
    assert_reads(text, sizeof text, text, sizeof text);
}

TEST(an_empty_file_has_no_content)
{
    assert_reads("", 0, "", 0);
}

TEST(gzip_is_told_by_its_magic_and_unpacked)
{
    size_t size;
    uint8_t *packed = pack(text, sizeof text, &size);
    assert_reads(packed, size, text, sizeof text);
    free(packed);
}

TEST(content_larger_than_the_first_buffer_is_unpacked_whole)
{
    size_t size, large = 1 << 20;
    uint8_t *content = malloc(large);
    uint64_t random = 1;
    for (size_t i = 0; i < large; i++) {
        content[i] = (uint8_t)next_random(&random);
    }
    uint8_t *packed = pack(content, large, &size);
    assert_reads(packed, size, content, large);
    free(packed);
    free(content);
}

TEST(members_that_follow_each_other_are_joined)
{
    size_t first, second;
    uint8_t *a = pack("abc", 3, &first), *b = pack("defg", 4, &second), both[256];
    memcpy(both, a, first);
    memcpy(both + first, b, second);
    assert_reads(both, first + second, "abcdefg", 7);
    free(a);
    free(b);
}

TEST(zeros_after_the_last_member_are_padding)
{
    size_t size;
    uint8_t *packed = pack("abc", 3, &size), padded[256] = {0};
    memcpy(padded, packed, size);
    assert_reads(padded, size + 100, "abc", 3);
    free(packed);
}

TEST(other_bytes_after_the_last_member_are_refused_with_their_place)
{
    size_t size;
    uint8_t *packed = pack("abc", 3, &size), more[256];
    memcpy(more, packed, size);
    memcpy(more + size, "xyz", 3);
    char place[32];
    snprintf(place, sizeof place, "byte %zu: expected the end", size);
    assert_refuses(more, size + 3, place);
    free(packed);
}

TEST(every_truncation_of_gzip_data_is_refused)
{
    size_t size;
    uint8_t *packed = pack(text, sizeof text, &size);
    for (size_t cut = 2; cut < size; cut++) {
        uint8_t *out = NULL;
        size_t out_size;
        gmd_error error = {""};
        assert_int_equal(unpack_gzip(packed, cut, 1 << 20, "x.gz", &out, &out_size, &error),
                         GMD_BAD_INPUT);
        char expected[80];
        snprintf(expected, sizeof expected, "x.gz: is cut off: byte %zu: the gzip data ends here",
                 cut);
        assert_contains(error.text, expected);
    }
    free(packed);
}

TEST(a_changed_byte_of_the_content_is_corrupt_data)
{
    size_t size;
    uint8_t *packed = pack(text, sizeof text, &size);
    packed[size - 6] ^= 1; /* the checksum */
    assert_refuses(packed, size, "corrupt gzip data");
    free(packed);
}

TEST(content_of_exactly_the_limit_is_read)
{
    size_t size, out_size;
    uint8_t *packed = pack(text, sizeof text, &size), *out;
    assert_int_equal(unpack_gzip(packed, size, sizeof text, "x", &out, &out_size, NULL), GMD_OK);
    assert_int_equal(out_size, sizeof text);
    free(out);
    free(packed);
}

TEST(content_over_the_limit_is_refused)
{
    size_t size, out_size;
    uint8_t *packed = pack(text, sizeof text, &size), *out;
    gmd_error error = {""};
    assert_int_equal(unpack_gzip(packed, size, sizeof text - 1, "x", &out, &out_size, &error),
                     GMD_BAD_INPUT);
    assert_contains(error.text, "x: expected at most 62 bytes of content");
    free(packed);
}

TEST(a_bomb_is_refused_without_being_unpacked)
{
    size_t size, out_size, large = 64 << 20;
    uint8_t *zeros = calloc(large, 1), *packed = pack(zeros, large, &size), *out;
    assert_true(size < large / 900);
    assert_int_equal(unpack_gzip(packed, size, 1 << 20, "x", &out, &out_size, NULL), GMD_BAD_INPUT);
    free(packed);
    free(zeros);
}

TEST(a_file_over_the_limit_is_refused_before_it_is_read)
{
    uint8_t *out;
    size_t size;
    gmd_error error = {""};
    const char *path = write_temporary("x", 1);
    assert_int_equal(truncate(path, ((off_t)4 << 30) + 1), 0); /* takes no space on the disk */
    assert_int_equal(gmd_file_read(path, &out, &size, &error), GMD_BAD_INPUT);
    assert_contains(error.text, "expected at most 4294967296 bytes of content");
    remove_temporary();
}

TEST(an_empty_file_has_no_bytes)
{
    uint8_t *out;
    size_t size;
    assert_int_equal(gmd_file_read_any_size(write_temporary("", 0), &out, &size, NULL), GMD_OK);
    assert_int_equal(size, 0);
    assert_int_equal(out[0], 0);
    free(out);
    remove_temporary();
}

TEST(a_folder_is_refused)
{
    uint8_t *out;
    size_t size;
    gmd_error error = {""};
    assert_int_equal(gmd_file_read(GMD_TEST_DATA, &out, &size, &error), GMD_BAD_INPUT);
    assert_contains(error.text, "is a directory");
}

TEST(a_missing_file_is_named)
{
    uint8_t *out;
    size_t size;
    gmd_error error = {""};
    assert_int_equal(gmd_file_read("no/such/file", &out, &size, &error), GMD_BAD_INPUT);
    assert_contains(error.text, "no/such/file: cannot be opened");
}
