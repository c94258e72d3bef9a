/* attention_kernels.h - the fused kernels of scaled_dot_product_attention. */
#ifndef ATTENTION_KERNELS_H
#define ATTENTION_KERNELS_H

#include "gmd_dot_attention.h"

/* The inputs are as the kernel takes them: 4 dimensions, one type, a mask that is added. */
struct tensor *cudnn_attention(struct engine *engine, struct tensor *const inputs[3],
                               const struct attention *how);
struct tensor *flash_attention(struct engine *engine, struct tensor *const inputs[3],
                               const struct attention *how);
struct tensor *efficient_attention(struct engine *engine, struct tensor *const inputs[3],
                                   const struct attention *how);

#endif
