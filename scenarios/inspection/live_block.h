/* live_block.h - what is known of a storage's block while it is alive. */
#ifndef GMD_LIVE_BLOCK_H
#define GMD_LIVE_BLOCK_H

#include "gmd_tensor.h"

/* A storage's `seen`. */
struct live_block {
    struct live_block *prev, *next;
    struct storage *storage;
    uint64_t used;      /* bytes that the allocator's figure grew by */
    struct shape shape; /* of the first tensor over it */
    enum dtype dtype;
    bool has_shape;
    uint32_t line;  /* of the script */
    uint64_t born;  /* of the timeline's clock */
    uint32_t owner; /* scratch of the report on tensors */
};

#endif
