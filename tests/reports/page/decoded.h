/* decoded.h - what a browser reads of a page: base64, gzip, the container. An own decoder, so that
 * what was written is judged by another hand. */
#ifndef GMD_TEST_PAGE_DECODED_H
#define GMD_TEST_PAGE_DECODED_H

#include <stddef.h>
#include <stdint.h>

/* The bytes that a base64 text of gzip data stands for; the caller frees them. Fails the test where
 * it is none. */
uint8_t *decode_payload(const char *base64, size_t length, size_t *size);

/* The text of the element with the page's data; its length. Fails the test where there is none. */
const char *find_payload(const char *page, size_t *length);

/* The values of a column: `bytes` are LEB128, with zigzags of differences where it is a delta. */
void decode_column(const uint8_t *bytes, size_t size, int is_delta, uint64_t *values, size_t count);

#endif
