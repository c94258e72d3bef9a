#include "wire.h"

#include <string.h>

enum { MOST_VARINT = 10 };

static bool damaged(wire_message *m)
{
    m->is_damaged = true;
    return false;
}

static bool read_varint(wire_message *m, uint64_t *value)
{
    *value = 0;
    for (unsigned i = 0; i < MOST_VARINT && m->at + i < m->size; i++) {
        uint8_t byte = m->data[m->at + i];
        *value |= (uint64_t)(byte & 0x7F) << 7 * i;
        if (byte < 0x80) {
            m->at += i + 1;
            return true;
        }
    }
    return damaged(m);
}

static bool read_fixed(wire_message *m, size_t size, uint64_t *value)
{
    *value = 0;
    if (m->size - m->at < size) {
        return damaged(m);
    }
    for (size_t i = 0; i < size; i++) {
        *value |= (uint64_t)m->data[m->at + i] << 8 * i;
    }
    m->at += size;
    return true;
}

static bool read_bytes(wire_message *m, wire_field *field)
{
    uint64_t length;
    if (!read_varint(m, &length) || length > m->size - m->at) {
        return damaged(m);
    }
    field->bytes = m->data + m->at;
    field->length = (size_t)length;
    m->at += field->length;
    return true;
}

static bool read_value(wire_message *m, wire_field *field)
{
    switch (field->kind) {
    case WIRE_VARINT:
        return read_varint(m, &field->value);
    case WIRE_FIXED64:
        return read_fixed(m, 8, &field->value);
    case WIRE_FIXED32:
        return read_fixed(m, 4, &field->value);
    case WIRE_BYTES:
        return read_bytes(m, field);
    }
    return damaged(m); /* groups, which proto3 does not have */
}

bool wire_next(wire_message *message, wire_field *field)
{
    uint64_t tag;
    size_t start = message->at;
    if (message->is_damaged || message->at == message->size) {
        return false;
    }
    *field = (wire_field){0};
    bool ok = read_varint(message, &tag) && tag >> 3 != 0 && tag >> 3 <= UINT32_MAX >> 3;
    if (ok) {
        field->number = (uint32_t)(tag >> 3);
        field->kind = (wire_kind)(tag & 7);
        ok = read_value(message, field);
    }
    if (!ok) {
        message->at = start;
        return damaged(message);
    }
    return true;
}

bool wire_next_number(wire_message *packed, uint64_t *number)
{
    return !packed->is_damaged && packed->at < packed->size && read_varint(packed, number);
}
