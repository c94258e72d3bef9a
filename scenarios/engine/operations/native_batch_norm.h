/* native_batch_norm.h - batch normalisation of rows by PyTorch's own kernels; cuDNN has images and
 * sequences. */
#ifndef NATIVE_BATCH_NORM_H
#define NATIVE_BATCH_NORM_H

#include "gmd_operations.h"

/* `input` is [rows, channels]. */
struct tensor *native_batch_norm(struct engine *engine, struct tensor *input, struct tensor *weight,
                                 struct tensor *bias, bool training);

#endif
