// torch_hooks.cpp - libgmd_torch_hooks.so: what torch.cuda.memory.CUDAPluggableAllocator hands over
// and expects in C++ types, before the C functions of libgmd_allocator.so. It needs no header of
// PyTorch: the types that cross are of the standard library, and PyTorch's own are found by their
// symbols at run time (torch_symbols.h, checked with torch 2.11).
#include "torch_books.h"
#include "torch_observers.h"
#include "torch_refusal.h"
#include "torch_segment.h"
#include "torch_serving.h"
#include "torch_symbols.h"
#include "torch_uncached.h"

#include "gmd_abi.h"

#include <stdexcept>
#include <string>

TORCH_EXPORT void *gmd_torch_malloc(size_t size, int device, cudaStream_t stream)
{
    if (void *booked = booked_block()) {
        return booked;
    }
    if (size == 0) {
        return nullptr; // a tensor without elements, as with PyTorch's own allocator
    }
    const bool is_cached = !caching_is_off();
    void *block = is_cached ? serving.malloc(size, device, stream) : allocate_uncached(size);
    if (!block) {
        if (const char *reason = serving.error ? serving.error() : nullptr) {
            throw std::runtime_error(std::string("gmd_torch: ") + reason);
        }
        tell_refused(size, device);
        refuse_request(size, device);
    }
    if (is_cached) {
        tell_allocated(block, device);
    }
    return block;
}

TORCH_EXPORT void gmd_torch_free(void *ptr, size_t size, int device, cudaStream_t stream)
{
    if (booked_block() || free_uncached(ptr)) {
        return;
    }
    if (ptr) {
        tell_freed(ptr, device);
    }
    serving.free(ptr, size, device, stream);
}

TORCH_EXPORT void *gmd_torch_base_allocation(void *ptr, size_t *size)
{
    const gmd_block_info segment = segment_of(ptr);
    if (size) {
        *size = segment.segment_size;
    }
    return reinterpret_cast<void *>(segment.segment_address);
}
