/* host_image.h - host memory for what lay in device memory: ordinary memory, as much of it cannot
 * be page-locked everywhere. */
#ifndef GMD_HOST_IMAGE_H
#define GMD_HOST_IMAGE_H

#include "gmd_error.h"

#include <stdint.h>

typedef struct host_image {
    unsigned char *data; /* NULL where bytes is 0 */
    uint64_t bytes;
} host_image;

/* GMD_NO_MEMORY: the host does not have it to spare now; it is not even tried, as the kernel gives
 * addresses freely and kills processes when it runs out of memory behind them. */
gmd_status host_image_open(host_image *image, uint64_t bytes, gmd_error *error);
void host_image_close(host_image *image);

#endif
