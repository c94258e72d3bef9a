/* transfer.h - many ranges of device memory to a host image and back, at the speed of the link:
 * several threads, each with two page-locked buffers, so that the device's copies and the host's
 * run at the same time. */
#ifndef GMD_TRANSFER_H
#define GMD_TRANSFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct image_range { /* a range of device memory and where its bytes lie in the image */
    uint64_t address, size, offset;
} image_range;

typedef struct transfer {
    int device;
    bool is_to_host;
    unsigned char *image;
    uint64_t image_bytes;
    const image_range *ranges; /* in ascending order of their offsets, which do not overlap */
    size_t range_count;
} transfer;

/* Returns when all is copied; false: the device refused, or gave no page-locked memory, and some of
 * it may be copied. Nobody else may use the ranges meanwhile. */
bool transfer_run(const transfer *t);

#endif
