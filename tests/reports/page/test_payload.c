/* A page's data: gzip in base64, as it comes. */
#include "decoded.h"
#include "gmd_test.h"
#include "payload.h"

#include <stdlib.h>
#include <string.h>

/* Puts the bytes in steps of that size, and holds what a decoder reads against them. */
static void assert_comes_back(const uint8_t *bytes, size_t size, size_t step)
{
    char *text = NULL;
    size_t length = 0, read_size = 0;
    payload *p = malloc(sizeof *p);
    FILE *out = open_memstream(&text, &length);
    assert_true(payload_begin(p, out));
    for (size_t at = 0; at < size; at += step) {
        payload_add(p, bytes + at, step < size - at ? step : size - at);
    }
    payload_end(p);
    fclose(out);
    uint8_t *read = decode_payload(text, length, &read_size);
    assert_int_equal(read_size, size);
    assert_memory_equal(read, bytes, size);
    free(read);
    free(text);
    free(p);
}

TEST(bytes_come_back_whatever_their_number_leaves_for_padding)
{
    const uint8_t bytes[] = {0, 1, 2, 250, 255, 7, '<', '/', 's'};
    for (size_t size = 0; size <= sizeof bytes; size++) {
        assert_comes_back(bytes, size, 4);
    }
}

TEST(more_than_one_step_of_what_cannot_be_compressed_comes_back)
{
    enum { SIZE = 5 * PAYLOAD_STEP + 1 };
    uint8_t *bytes = malloc(SIZE);
    uint32_t drawn = 1;
    for (size_t i = 0; i < SIZE; i++) {
        drawn = drawn * 1664525 + 1013904223;
        bytes[i] = (uint8_t)(drawn >> 24);
    }
    assert_comes_back(bytes, SIZE, SIZE);
    assert_comes_back(bytes, SIZE, 1000);
    free(bytes);
}
