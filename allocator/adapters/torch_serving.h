// torch_serving.h - who serves PyTorch's requests: libgmd_allocator.so, or a layer in front of it.
#ifndef GMD_TORCH_SERVING_H
#define GMD_TORCH_SERVING_H

#include "gmd_abi.h"

struct serving_functions { // of gmd_abi.h
    void *(*malloc)(size_t size, int device, cudaStream_t stream);
    void (*free)(void *ptr, size_t size, int device, cudaStream_t stream);
    uint64_t (*block_size)(int device, const void *ptr);
    void (*empty_cache)();
    void (*pools)(int change); // requests go to one private pool more, or less; null: not told
    const char *(*error)();    // why a request was refused although there is memory; null: never
};

extern serving_functions serving; // changes before the first request only

#endif
