// torch_observers.cpp - tells PyTorch's profiler what PyTorch's own allocator tells it
// (c10/core/Allocator.h, checked with torch 2.11), and Python what a trace of the GPU wants to
// know.
#include "torch_observers.h"

#include "torch_serving.h"
#include "torch_symbols.h"

#include "gmd_abi.h"

#include <atomic>

namespace
{

struct device_name { // c10::Device
    int8_t type, index;
};

constexpr int8_t cuda_type = 1; // c10::DeviceType::CUDA

// Functions of libc10.so; null: this PyTorch has another profiler, which then sees no memory.
struct profiler {
    bool (*is_watching)();
    void (*changed)(void *ptr, int64_t bytes, size_t allocated, size_t reserved, device_name where);
    void (*refused)(int64_t bytes, size_t allocated, size_t reserved, device_name where);

    profiler()
        : is_watching(reinterpret_cast<decltype(is_watching)>(
              loaded_symbol("libc10.so", "_ZN3c1022memoryProfilingEnabledEv"))),
          changed(reinterpret_cast<decltype(changed)>(
              loaded_symbol("libc10.so", "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"))),
          refused(reinterpret_cast<decltype(refused)>(
              loaded_symbol("libc10.so", "_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE")))
    {
    }

    bool is_found() const
    {
        return is_watching && changed && refused;
    }
};

const profiler &the_profiler()
{
    static const profiler found;
    return found;
}

bool is_profiled()
{
    const profiler &p = the_profiler();
    return p.is_found() && p.is_watching();
}

gmd_stats stats_of(int device)
{
    gmd_stats stats = {};
    stats.struct_size = sizeof stats;
    return gmd_get_stats(device, &stats) == 0 ? stats : gmd_stats{};
}

void report_change(void *ptr, int64_t bytes, uint64_t allocated, uint64_t reserved, int device)
{
    the_profiler().changed(ptr, bytes, allocated, reserved,
                           {cuda_type, static_cast<int8_t>(device)});
}

using trace_fn = void(void *ptr);
std::atomic<trace_fn *> trace_allocated, trace_freed;

} // namespace

void tell_allocated(void *ptr, int device)
{
    if (is_profiled()) {
        const gmd_stats stats = stats_of(device);
        report_change(ptr, static_cast<int64_t>(serving.block_size(device, ptr)),
                      stats.allocated_bytes, stats.reserved_bytes, device);
    }
    if (trace_fn *trace = trace_allocated.load(std::memory_order_relaxed)) {
        trace(ptr);
    }
}

// The block is still there, and the profiler wants the figures without it.
void tell_freed(void *ptr, int device)
{
    if (is_profiled()) {
        const gmd_stats stats = stats_of(device);
        const uint64_t bytes = serving.block_size(device, ptr);
        report_change(ptr, -static_cast<int64_t>(bytes), stats.allocated_bytes - bytes,
                      stats.reserved_bytes, device);
    }
    if (trace_fn *trace = trace_freed.load(std::memory_order_relaxed)) {
        trace(ptr);
    }
}

void tell_refused(size_t size, int device)
{
    if (is_profiled()) {
        const gmd_stats stats = stats_of(device);
        the_profiler().refused(static_cast<int64_t>(size), stats.allocated_bytes,
                               stats.reserved_bytes, {cuda_type, static_cast<int8_t>(device)});
    }
}

// --- what the helper calls -----------------------------------------------------------------------

// Null: nobody is told.
TORCH_EXPORT void gmd_torch_trace_with(trace_fn *allocated, trace_fn *freed)
{
    trace_allocated.store(allocated);
    trace_freed.store(freed);
}

// Whether PyTorch traces the GPU already, as with TORCH_CUDA_SANITIZER in the environment.
TORCH_EXPORT int gmd_torch_is_traced(void)
{
    const bool *is_on =
        static_cast<bool *>(loaded_symbol("libc10.so", "_ZN3c104impl8GPUTrace9haveStateE"));
    return is_on && *is_on;
}

// Whether torch.profiler will see memory.
TORCH_EXPORT int gmd_torch_tells_profiler(void)
{
    return the_profiler().is_found();
}
