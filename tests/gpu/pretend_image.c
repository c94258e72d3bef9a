/* Kernels that are there, whether or not there was an nvcc: pretend_kernels.so loads no image. An
 * object of a program comes before those of its archives, so the driver's image stays out. */
#include "canary_image.h"

const unsigned char canary_image[] = {0};
const size_t canary_image_size = sizeof canary_image;
