/* canary_image.h - canary.cu as nvcc compiled it, for all architectures that it knows. */
#ifndef GMD_CANARY_IMAGE_H
#define GMD_CANARY_IMAGE_H

#include <stddef.h>

extern const unsigned char canary_image[];
extern const size_t canary_image_size; /* 0: there was no nvcc */

#endif
