/* kernels_image.h - the text of kernels.ptx, terminated, which the driver compiles. */
#ifndef GMD_KERNELS_IMAGE_H
#define GMD_KERNELS_IMAGE_H

extern const unsigned char kernels_image[];

#endif
