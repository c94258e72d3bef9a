/* native_attention.h - what MultiheadAttention and the encoder's layer are in evaluation, where
 * nothing needs a gradient: one call into PyTorch's C++. */
#ifndef NATIVE_ATTENTION_H
#define NATIVE_ATTENTION_H

#include "gmd_module.h"

/* Whether PyTorch takes that call for `module`, of which `attention` is a part or all. */
bool native_is_taken(struct engine *engine, struct module *module, const struct module *attention,
                     struct tensor *input);

/* Self-attention of [batch, length, features]. `attention` has the packed projection's weight and
 * bias, and a Linear as its child. The heads' mean weights go to `*weights`; NULL: nobody asks. */
struct tensor *native_attention(struct engine *engine, const struct module *attention,
                                struct tensor *input, struct tensor **weights);

#endif
