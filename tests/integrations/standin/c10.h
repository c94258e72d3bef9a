// c10.h - of PyTorch's types only what the hooks and their test touch, with PyTorch's names, so
// that the stand-in libraries export the symbols of the real ones (and the test runs with those,
// too).
#ifndef GMD_STANDIN_C10_H
#define GMD_STANDIN_C10_H

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#define STANDIN_API __attribute__((visibility("default")))

namespace c10
{

struct SourceLocation {
    const char *function, *file;
    uint32_t line;
};

class STANDIN_API Error : public std::exception
{
  public:
    Error(SourceLocation where, std::string text);
    const char *what() const noexcept override;

  private:
    std::string text_;
};

class STANDIN_API OutOfMemoryError : public Error
{
    using Error::Error;
};

struct Device {
    int8_t type, index;
};

// What the profiler was told last, and whether it watches: for the tests.
struct told {
    void *ptr;
    int64_t bytes;
    size_t allocated, reserved, refusals;
    Device device;
};
STANDIN_API extern told last_told;
STANDIN_API extern bool is_profiling;

namespace impl
{
struct STANDIN_API GPUTrace {
    static bool haveState;
};
} // namespace impl

STANDIN_API bool memoryProfilingEnabled();
STANDIN_API void reportMemoryUsageToProfiler(void *ptr, int64_t bytes, size_t allocated,
                                             size_t reserved, Device device);
STANDIN_API void reportOutOfMemoryToProfiler(int64_t bytes, size_t allocated, size_t reserved,
                                             Device device);

namespace cuda::CUDACachingAllocator
{
class CUDAAllocator;

struct STANDIN_API AllocatorState {
    virtual ~AllocatorState();
};

struct DataPtr { // of c10
    void *data;
    std::unique_ptr<void, void (*)(void *)> owner;
    Device device;
};

struct CheckpointDelta {
    std::vector<void *> ptrs_freed;
    std::vector<DataPtr> dataptrs_allocd;
};

STANDIN_API extern std::atomic<CUDAAllocator *> allocator;
} // namespace cuda::CUDACachingAllocator

} // namespace c10

#endif
