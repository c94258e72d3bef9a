/* gmd_protobuf.h - writes messages in the protocol-buffer wire format
 * (https://protobuf.dev/programming-guides/encoding). */
#ifndef GMD_REPORTS_PROTOBUF_H
#define GMD_REPORTS_PROTOBUF_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* One message, in memory until it is whole: its length comes before it. What does not fit is left
 * out field by field, never in the middle of one. */
typedef struct gmd_message {
    size_t size;
    unsigned char bytes[4096];
} gmd_message;

void gmd_message_u64(gmd_message *message, uint32_t field, uint64_t value);
/* Cut to 700 bytes, between two characters; what is not UTF-8 becomes U+FFFD. */
void gmd_message_text(gmd_message *message, uint32_t field, const char *text);
void gmd_message_add(gmd_message *message, uint32_t field, const gmd_message *inner);

/* As a field of the message that the file is. */
void gmd_message_write(const gmd_message *message, uint32_t field, FILE *out);

#endif
