/* payload.h - bytes as gzip data in base64, written as they come. */
#ifndef GMD_REPORTS_PAGE_PAYLOAD_H
#define GMD_REPORTS_PAGE_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <zlib.h>

enum { PAYLOAD_STEP = 48 * 1024 }; /* a multiple of 3: padding is at the end only */

typedef struct payload {
    FILE *out;
    z_stream zlib;
    unsigned char packed[PAYLOAD_STEP]; /* not written yet */
} payload;

/* False: no host memory, and nothing to end. */
bool payload_begin(payload *p, FILE *out);
void payload_add(payload *p, const void *bytes, size_t size);
/* Write errors stay in ferror() of the stream. */
void payload_end(payload *p);

#endif
