#include "c10.h"

namespace c10::cuda::CUDACachingAllocator
{

std::atomic<CUDAAllocator *> allocator;

AllocatorState::~AllocatorState() = default;

// Makes the type and the virtual table of the error part of this library, where PyTorch has them.
STANDIN_API void throw_out_of_memory()
{
    throw OutOfMemoryError(SourceLocation{"", "", 0}, "");
}

} // namespace c10::cuda::CUDACachingAllocator
