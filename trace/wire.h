/* wire.h - reads messages in the protocol-buffer wire format
 * (https://protobuf.dev/programming-guides/encoding), within their bounds. */
#ifndef GMD_TRACE_WIRE_H
#define GMD_TRACE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct wire_message {
    const uint8_t *data;
    size_t size, at;
    bool is_damaged; /* what follows `at` is no field, or does not fit */
} wire_message;

typedef enum wire_kind {
    WIRE_VARINT = 0,
    WIRE_FIXED64 = 1,
    WIRE_BYTES = 2,
    WIRE_FIXED32 = 5
} wire_kind;

typedef struct wire_field {
    uint32_t number;
    wire_kind kind;
    uint64_t value;       /* VARINT, FIXED64, FIXED32 */
    const uint8_t *bytes; /* BYTES */
    size_t length;
} wire_field;

/* The next field. False: there is none, or the message is damaged. */
bool wire_next(wire_message *message, wire_field *field);

static inline wire_message wire_inner(const wire_field *field)
{
    return (wire_message){.data = field->bytes, .size = field->length};
}

/* The next number of a repeated field, which may be packed: `packed` begins as that of its bytes.
 * False: there is none, or it is damaged. */
bool wire_next_number(wire_message *packed, uint64_t *number);

#endif
