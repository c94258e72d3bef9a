#include "trace_test.h"

#include "gmd_file.h"
#include "gmd_random.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

static char temporary[64];

uint8_t *read_test_data(const char *name, size_t *size)
{
    char path[512];
    uint8_t *data;
    gmd_error error = {""};
    snprintf(path, sizeof path, "%s/%s", GMD_TEST_DATA, name);
    if (gmd_file_read(path, &data, size, &error) != GMD_OK) {
        fail_msg("%s", error.text);
    }
    return data;
}

void remove_temporary(void)
{
    if (temporary[0]) {
        unlink(temporary);
        temporary[0] = 0;
    }
}

const char *write_temporary(const void *data, size_t size)
{
    remove_temporary();
    strcpy(temporary, "/tmp/gmd-trace-test-XXXXXX");
    int descriptor = mkstemp(temporary);
    assert_true(descriptor >= 0);
    assert_int_equal(write(descriptor, data, size), size);
    close(descriptor);
    return temporary;
}

uint8_t *pack(const void *data, size_t size, size_t *packed_size)
{
    z_stream z = {0};
    size_t room = compressBound(size) + 64;
    uint8_t *packed = malloc(room);
    assert_non_null(packed);
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (Bytef *)(uintptr_t)data;
    z.avail_in = (uInt)size;
    z.next_out = packed;
    z.avail_out = (uInt)room;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    *packed_size = z.total_out;
    deflateEnd(&z);
    return packed;
}

uint64_t next_random(uint64_t *state)
{
    return gmd_random_mix(*state += GMD_HASH_MULTIPLIER);
}

void assert_contains(const char *text, const char *part)
{
    if (!strstr(text, part)) {
        fail_msg("expected \"%s\" in \"%s\"", part, text);
    }
}

static void put_bytes(pickle_text *p, const void *data, size_t size)
{
    assert_true(size <= sizeof p->data - p->size);
    memcpy(p->data + p->size, data, size);
    p->size += size;
}

void put(pickle_text *p, const char *opcodes)
{
    put_bytes(p, opcodes, strlen(opcodes));
}

void put_string(pickle_text *p, const char *text)
{
    uint8_t head[] = {0x8c, (uint8_t)strlen(text)}; /* SHORT_BINUNICODE */
    put_bytes(p, head, sizeof head);
    put_bytes(p, text, strlen(text));
}

void put_integer(pickle_text *p, uint64_t number)
{
    uint8_t text[11] = {0x8a, 9}; /* LONG1, with a byte of zeros as the sign */
    for (size_t i = 0; i < 8; i++) {
        text[2 + i] = (uint8_t)(number >> 8 * i);
    }
    put_bytes(p, text, sizeof text);
}

void put_negative(pickle_text *p, int64_t number)
{
    uint8_t text[10] = {0x8a, 8};
    for (size_t i = 0; i < 8; i++) {
        text[2 + i] = (uint8_t)((uint64_t)number >> 8 * i);
    }
    put_bytes(p, text, sizeof text);
}

void put_number_entry(pickle_text *p, const char *key, uint64_t number)
{
    put_string(p, key);
    put_integer(p, number);
}

void put_string_entry(pickle_text *p, const char *key, const char *text)
{
    put_string(p, key);
    put_string(p, text);
}
