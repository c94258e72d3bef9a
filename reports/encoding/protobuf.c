#include "gmd_protobuf.h"

#include "gmd_report_text.h"

#include <string.h>

enum { WIRE_VARINT = 0, WIRE_LENGTH = 2, VARINT_MAX = 10, START_MAX = 20, TEXT_MAX = 700 };

static size_t put_varint(unsigned char out[VARINT_MAX], uint64_t value)
{
    size_t size = 0;
    for (; value >= 0x80; value >>= 7) {
        out[size++] = (unsigned char)(value | 0x80);
    }
    out[size++] = (unsigned char)value;
    return size;
}

static size_t put_tag(unsigned char out[VARINT_MAX], uint32_t field, unsigned wire)
{
    return put_varint(out, (uint64_t)field << 3 | wire);
}

void gmd_message_u64(gmd_message *message, uint32_t field, uint64_t value)
{
    if (sizeof message->bytes - message->size >= START_MAX) {
        message->size += put_tag(message->bytes + message->size, field, WIRE_VARINT);
        message->size += put_varint(message->bytes + message->size, value);
    }
}

static void add_bytes(gmd_message *message, uint32_t field, const void *bytes, size_t size)
{
    if (sizeof message->bytes - message->size < START_MAX + size) {
        return;
    }
    message->size += put_tag(message->bytes + message->size, field, WIRE_LENGTH);
    message->size += put_varint(message->bytes + message->size, size);
    memcpy(message->bytes + message->size, bytes, size);
    message->size += size;
}

static size_t encode(uint32_t c, unsigned char out[4])
{
    if (c < 0x80) {
        out[0] = (unsigned char)c;
        return 1;
    }
    size_t more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const unsigned char lead[] = {0, 0xC0, 0xE0, 0xF0};
    out[0] = (unsigned char)(lead[more] | c >> 6 * more);
    for (size_t i = 1; i <= more; i++) {
        out[i] = (unsigned char)(0x80 | (c >> 6 * (more - i) & 0x3F));
    }
    return more + 1;
}

void gmd_message_text(gmd_message *message, uint32_t field, const char *text)
{
    unsigned char clean[TEXT_MAX];
    size_t size = 0;
    for (uint32_t c = gmd_utf8_next(&text); c && size <= sizeof clean - 4;
         c = gmd_utf8_next(&text)) {
        size += encode(c, clean + size);
    }
    add_bytes(message, field, clean, size);
}

void gmd_message_add(gmd_message *message, uint32_t field, const gmd_message *inner)
{
    add_bytes(message, field, inner->bytes, inner->size);
}

void gmd_message_write(const gmd_message *message, uint32_t field, FILE *out)
{
    unsigned char start[START_MAX];
    size_t size = put_tag(start, field, WIRE_LENGTH);
    size += put_varint(start + size, message->size);
    fwrite(start, 1, size, out);
    fwrite(message->bytes, 1, message->size, out);
}
