#include "decoded.h"

#include "gmd_test.h"

#include <stdlib.h>
#include <string.h>

#include <zlib.h>

static uint32_t digit_of(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c) : NULL;
    assert_non_null(at);
    return (uint32_t)(at - digits);
}

static size_t decode_base64(const char *text, size_t length, uint8_t *to)
{
    size_t size = 0;
    assert_int_equal(length % 4, 0);
    for (size_t i = 0; i < length; i += 4) {
        size_t padding = text[i + 2] == '=' ? 2 : text[i + 3] == '=';
        uint32_t three = digit_of(text[i]) << 18 | digit_of(text[i + 1]) << 12;
        three |= padding < 2 ? digit_of(text[i + 2]) << 6 : 0;
        three |= padding < 1 ? digit_of(text[i + 3]) : 0;
        for (size_t k = 0; k < 3 - padding; k++) {
            to[size++] = (uint8_t)(three >> (16 - 8 * k));
        }
    }
    return size;
}

uint8_t *decode_payload(const char *base64, size_t length, size_t *size)
{
    enum { MOST = 1 << 24, GZIP = 15 + 16 };
    uint8_t *packed = malloc(length + 1), *bytes = malloc(MOST);
    assert_non_null(packed);
    assert_non_null(bytes);
    z_stream z = {.next_in = packed,
                  .avail_in = (uInt)decode_base64(base64, length, packed),
                  .next_out = bytes,
                  .avail_out = MOST};
    assert_int_equal(inflateInit2(&z, GZIP), Z_OK);
    assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
    assert_int_equal(z.avail_in, 0);
    *size = MOST - z.avail_out;
    inflateEnd(&z);
    free(packed);
    return bytes;
}

const char *find_payload(const char *page, size_t *length)
{
    static const char begin[] = "<script id=\"gmd-data\" type=\"text/plain\">";
    const char *at = strstr(page, begin);
    assert_non_null(at);
    at += strlen(begin);
    *length = strcspn(at, "<");
    assert_memory_equal(at + *length, "</script>", strlen("</script>"));
    return at;
}

void decode_column(const uint8_t *bytes, size_t size, int is_delta, uint64_t *values, size_t count)
{
    uint64_t before = 0;
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t value = 0;
        int shift = 0;
        do {
            assert_true(at < size);
            value |= (uint64_t)(bytes[at] & 0x7F) << shift;
            shift += 7;
        } while (bytes[at++] & 0x80);
        if (is_delta) {
            value = before + (value >> 1 ^ (0 - (value & 1)));
        }
        values[i] = before = value;
    }
    assert_int_equal(at, size);
}
