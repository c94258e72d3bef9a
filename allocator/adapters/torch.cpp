// torch.cpp - PyTorch's own CUDA allocator (libc10_cuda.so, as it was installed) behind the ABI of
// gmd_abi.h. gmd compiles this file on the machine where PyTorch's headers are, at first use.
//
// No exception crosses the boundary: out of memory is NULL, everything else is reported by
// gmd_last_error. No CUDA call is made here that could clear or set the thread's last error, so that
// what the allocator leaves behind stays visible.
#include "gmd_abi.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <type_traits>
#include <utility>

#include <dlfcn.h>

#define GMD_EXPORT extern "C" __attribute__((visibility("default")))

// Which PyTorch's larger library (libtorch_cuda) sets when it is loaded, and no header declares.
namespace c10::cuda::_internal {
C10_CUDA_API void setHasPrimaryContext(bool (*answer)(c10::DeviceIndex));
}

namespace {

namespace caching = c10::cuda::CUDACachingAllocator;
using c10::CachingAllocator::AcceleratorAllocatorConfig;
using c10::CachingAllocator::Stat;
using c10::CachingAllocator::StatArray;
using c10::CachingAllocator::StatType;

thread_local char last_error[1000]; // of the thread's latest call; empty: nothing went wrong
int device_count = 1;
bool is_native = true; // not the cudaMallocAsync backend, which keeps few figures

void keep_error(const char *text)
{
    std::snprintf(last_error, sizeof last_error, "%s", *text ? text : "an exception without a text");
}

// Runs what calls PyTorch; `otherwise` is the answer when it threw.
template <typename Result, typename Body> Result guarded(Result otherwise, Body &&body) noexcept
{
    last_error[0] = '\0';
    try {
        return body();
    } catch (const c10::Error &e) {
        keep_error(e.what_without_backtrace());
    } catch (const std::exception &e) {
        keep_error(e.what());
    } catch (...) {
        keep_error("an exception of an unknown type");
    }
    return otherwise;
}

std::atomic<int> open_pools{0};

// PyTorch allocates on the thread's current device; a caller of the ABI names the device. While a
// graph may be captured PyTorch asks the thread's current stream whether it is: a program allocates
// on that one.
void *allocate(size_t size, int device, cudaStream_t stream)
{
    if (open_pools.load(std::memory_order_relaxed) > 0) {
        c10::cuda::CUDAStreamGuard guard(
            c10::cuda::getStreamFromExternal(stream, static_cast<c10::DeviceIndex>(device)));
        return caching::raw_alloc_with_stream(size, stream);
    }
    c10::DeviceIndex current = -1;
    C10_CUDA_CHECK(c10::cuda::GetDevice(&current));
    if (current == device) {
        return caching::raw_alloc_with_stream(size, stream);
    }
    c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(device));
    return caching::raw_alloc_with_stream(size, stream);
}

// The device of a block. With one device there is nothing to ask.
c10::DeviceIndex device_of(void *ptr)
{
    if (device_count == 1) {
        return 0;
    }
    cudaPointerAttributes attributes;
    C10_CUDA_CHECK(cudaPointerGetAttributes(&attributes, ptr));
    return static_cast<c10::DeviceIndex>(attributes.device);
}

// The question that libtorch_cuda answers otherwise: whether a device is in use in this process.
bool has_primary_context(c10::DeviceIndex device)
{
    using get_state = int(int, unsigned int *, int *);
    static get_state *const ask = [] {
        void *driver = dlopen("libcuda.so.1", RTLD_LAZY);
        return driver ? reinterpret_cast<get_state *>(dlsym(driver, "cuDevicePrimaryCtxGetState"))
                      : nullptr;
    }();
    unsigned int flags = 0;
    int is_active = 0;
    return ask && ask(device, &flags, &is_active) == 0 && is_active;
}

// --- statistics -----------------------------------------------------------------------------

uint64_t all(const StatArray &figures)
{
    return static_cast<uint64_t>(figures[static_cast<size_t>(StatType::AGGREGATE)].current);
}

uint64_t peak(const StatArray &figures)
{
    return static_cast<uint64_t>(figures[static_cast<size_t>(StatType::AGGREGATE)].peak);
}

void fill(gmd_stats *out, const c10::CachingDeviceAllocator::DeviceStats &s)
{
    out->allocated_bytes = all(s.allocated_bytes);
    out->allocated_bytes_peak = peak(s.allocated_bytes);
    out->reserved_bytes = all(s.reserved_bytes);
    out->reserved_bytes_peak = peak(s.reserved_bytes);
    out->active_bytes = all(s.active_bytes);
    out->active_bytes_peak = peak(s.active_bytes);
    out->inactive_split_bytes = all(s.inactive_split_bytes);
    out->requested_bytes = all(s.requested_bytes);
    out->allocation_count = all(s.allocation);
    out->segment_count = all(s.segment);
    out->num_alloc_retries = static_cast<uint64_t>(s.num_alloc_retries);
    out->num_ooms = static_cast<uint64_t>(s.num_ooms);
}

// The figures of the cudaMallocAsync backend are those of the driver's pool, which counts a block
// as used until its free has been carried out: only what is reserved means the same.
void fill_from_pool(gmd_stats *out, const c10::CachingDeviceAllocator::DeviceStats &s)
{
    const size_t struct_size = out->struct_size;
    std::memset(out, 0xff, sizeof *out); // GMD_STAT_UNKNOWN
    out->struct_size = struct_size;
    out->reserved_bytes = all(s.reserved_bytes);
    out->reserved_bytes_peak = peak(s.reserved_bytes);
}

struct emitter {
    gmd_stat_fn *emit;
    void *context;

    void one(const char *name, int64_t value) const
    {
        emit(context, name, static_cast<uint64_t>(value));
    }

    void stat(const char *prefix, const Stat &s) const
    {
        const struct {
            const char *name;
            int64_t value;
        } parts[] = {{"current", s.current},
                     {"peak", s.peak},
                     {"allocated", s.allocated},
                     {"freed", s.freed}};
        for (const auto &part : parts) {
            char name[96];
            std::snprintf(name, sizeof name, "%s.%s", prefix, part.name);
            one(name, part.value);
        }
    }

    void pools(const char *figure, const StatArray &figures) const
    {
        const struct {
            const char *name;
            StatType type;
        } pools[] = {{"all", StatType::AGGREGATE},
                     {"small_pool", StatType::SMALL_POOL},
                     {"large_pool", StatType::LARGE_POOL}};
        for (const auto &pool : pools) {
            char prefix[64];
            std::snprintf(prefix, sizeof prefix, "%s.%s", figure, pool.name);
            stat(prefix, figures[static_cast<size_t>(pool.type)]);
        }
    }
};

// The names are those of torch.cuda.memory_stats().
void emit_all(const emitter &e, const c10::CachingDeviceAllocator::DeviceStats &s)
{
    e.pools("allocation", s.allocation);
    e.pools("segment", s.segment);
    e.pools("active", s.active);
    e.pools("inactive_split", s.inactive_split);
    e.pools("allocated_bytes", s.allocated_bytes);
    e.pools("reserved_bytes", s.reserved_bytes);
    e.pools("active_bytes", s.active_bytes);
    e.pools("inactive_split_bytes", s.inactive_split_bytes);
    e.pools("requested_bytes", s.requested_bytes);
    e.stat("oversize_allocations", s.oversize_allocations);
    e.stat("oversize_segments", s.oversize_segments);
    e.one("num_alloc_retries", s.num_alloc_retries);
    e.one("num_ooms", s.num_ooms);
    e.one("num_sync_all_streams", s.num_sync_all_streams);
    e.one("num_device_alloc", s.num_device_alloc);
    e.one("num_device_free", s.num_device_free);
    e.one("max_split_size", s.max_split_size);
}

// PyTorch 2.11 takes another argument than its predecessors.
template <typename Record> void record_history(Record *record, size_t max_entries)
{
    constexpr auto no_stacks = caching::RecordContext::NEVER;
    if constexpr (std::is_invocable_v<Record *, bool, std::nullptr_t, size_t,
                                      caching::RecordContext, bool>) {
        record(max_entries > 0, nullptr, max_entries, no_stacks, true);
    } else {
        record(max_entries > 0, nullptr, max_entries, no_stacks, true, {});
    }
}

// --- the device's side ----------------------------------------------------------------------

// The documented rounding of a request, and the segment for it: what the allocator asks of the
// device when nothing that it holds can serve (docs "CUDA memory management",
// c10/core/AllocatorConfig.h for the constants).
uint64_t round_request(uint64_t size)
{
    using namespace c10::CachingAllocator;
    if (size < kMinBlockSize) {
        return kMinBlockSize;
    }
    const uint64_t divisions = AcceleratorAllocatorConfig::roundup_power2_divisions(size);
    if (divisions > 1 && size > kMinBlockSize * divisions) {
        uint64_t power = 1;
        while (power <= size / 2) {
            power *= 2;
        }
        const uint64_t step = power / divisions;
        return size == power || !step ? size : power + (size - power + step - 1) / step * step;
    }
    return (size + kMinBlockSize - 1) / kMinBlockSize * kMinBlockSize;
}

uint64_t segment_for(uint64_t size)
{
    using namespace c10::CachingAllocator;
    if (size > UINT64_MAX / 2) { // rounding must not wrap around; no device has as much
        return size;
    }
    const uint64_t rounded = round_request(size);
    const uint64_t large = AcceleratorAllocatorConfig::large_segment_size();
    if (rounded <= kSmallSize) {
        return kSmallBuffer;
    }
    if (AcceleratorAllocatorConfig::use_expandable_segments()) {
        return (rounded + large - 1) / large * large;
    }
    return rounded < kMinLargeAlloc ? large : (rounded + kRoundLarge - 1) / kRoundLarge * kRoundLarge;
}

void walk_segment(const c10::CachingDeviceAllocator::SegmentInfo &segment, gmd_walk_fn *visit,
                  void *context)
{
    uint64_t address = segment.address;
    for (const auto &block : segment.blocks) {
        gmd_block_info info{};
        info.segment_address = segment.address;
        info.segment_size = segment.total_size;
        info.address = address;
        info.size = block.size;
        info.requested_size = block.requested_size;
        info.stream = static_cast<CUstream_st *>(segment.stream);
        info.state = block.allocated ? 1 : block.active ? 2 : 0;
        info.is_large = segment.is_large;
        info.is_expandable = segment.is_expandable;
        info.pool_id[0] = segment.owner_private_pool_id.first;
        info.pool_id[1] = segment.owner_private_pool_id.second;
        visit(context, &info);
        address += block.size;
    }
}

// --- private pools --------------------------------------------------------------------------

using pool_name = std::pair<int, c10::MempoolId_t>; // of which device

std::map<pool_name, void *> pool_contexts; // of the open ones: PyTorch takes a function
std::mutex pool_lock;

pool_name name_of(int device, const uint64_t id[2])
{
    return {device, {id[0], id[1]}};
}

} // namespace

GMD_EXPORT const char *gmd_last_error(void)
{
    return last_error[0] ? last_error : nullptr;
}

GMD_EXPORT void gmd_init(int count)
{
    guarded(0, [&] {
        device_count = count;
        c10::cuda::_internal::setHasPrimaryContext(has_primary_context);
        caching::init(count);
        is_native = caching::name() == "native";
        return 0;
    });
}

GMD_EXPORT void *gmd_malloc(size_t size, int device, cudaStream_t stream)
{
    return guarded<void *>(nullptr, [&]() -> void * {
        try {
            return allocate(size, device, stream);
        } catch (const c10::OutOfMemoryError &) {
            return nullptr;
        }
    });
}

GMD_EXPORT void gmd_free(void *ptr, size_t, int, cudaStream_t)
{
    guarded(0, [&] {
        caching::raw_delete(ptr);
        return 0;
    });
}

// PyTorch takes the owner of a block, not its address: one is made for the call, and given up again
// without freeing the block.
GMD_EXPORT void gmd_record_stream(void *ptr, cudaStream_t stream)
{
    guarded(0, [&] {
        const c10::DeviceIndex device = device_of(ptr);
        c10::DataPtr owner(ptr, ptr, caching::get()->raw_deleter(),
                           c10::Device(c10::DeviceType::CUDA, device));
        try {
            caching::recordStream(owner, c10::cuda::getStreamFromExternal(stream, device));
        } catch (...) {
            owner.release_context();
            throw;
        }
        owner.release_context();
        return 0;
    });
}

GMD_EXPORT void gmd_empty_cache(void)
{
    guarded(0, [] {
        caching::emptyCache();
        return 0;
    });
}

GMD_EXPORT void gmd_set_memory_fraction(double fraction, int device)
{
    guarded(0, [&] {
        caching::setMemoryFraction(fraction, static_cast<c10::DeviceIndex>(device));
        return 0;
    });
}

GMD_EXPORT void gmd_reset_peak_stats(int device)
{
    guarded(0, [&] {
        caching::resetPeakStats(static_cast<c10::DeviceIndex>(device));
        return 0;
    });
}

GMD_EXPORT int gmd_get_stats(int device, gmd_stats *out)
{
    return guarded(-1, [&] {
        if (out->struct_size != sizeof *out) {
            return -1;
        }
        const auto stats = caching::getDeviceStats(static_cast<c10::DeviceIndex>(device));
        (is_native ? fill : fill_from_pool)(out, stats);
        return 0;
    });
}

GMD_EXPORT int gmd_memory_stats(int device, gmd_stat_fn *emit, void *context)
{
    return guarded(-1, [&] {
        emit_all({emit, context}, caching::getDeviceStats(static_cast<c10::DeviceIndex>(device)));
        return 0;
    });
}

GMD_EXPORT int gmd_configure(const char *conf, char *message, size_t message_size)
{
    const int status = guarded(-1, [&] {
        c10::CachingAllocator::setAllocatorSettings(conf);
        return 0;
    });
    if (status != 0) {
        std::snprintf(message, message_size, "%s", last_error);
    }
    return status;
}

// Without stacks only: those of Python are taken by libtorch_python.
GMD_EXPORT int gmd_record_history(uint64_t max_entries, int stacks, char *message,
                                  size_t message_size)
{
    if (stacks != 0) {
        std::snprintf(message, message_size, "no stacks without Python");
        return -1;
    }
    const int status = guarded(-1, [&] {
        record_history(&caching::recordHistory, max_entries);
        return 0;
    });
    if (status != 0) {
        std::snprintf(message, message_size, "%s", last_error);
    }
    return status;
}

GMD_EXPORT uint64_t gmd_device_request(size_t size)
{
    return guarded<uint64_t>(GMD_STAT_UNKNOWN,
                             [&] { return is_native ? segment_for(size) : GMD_STAT_UNKNOWN; });
}

GMD_EXPORT unsigned gmd_promises(void)
{
    return is_native ? GMD_PROMISE_PYTORCH | GMD_PROMISE_DETERMINISM | GMD_PROMISE_COALESCING |
                           GMD_PROMISE_ALIGN_512
                     : 0;
}

GMD_EXPORT int gmd_walk(int device, gmd_walk_fn *visit, void *context)
{
    return guarded(-1, [&] {
        for (const auto &segment : caching::snapshot({0, 0}, false).segments) {
            if (segment.device == device) {
                walk_segment(segment, visit, context);
            }
        }
        return 0;
    });
}

// PyTorch's cudaMallocAsync backend has no such pools; it throws.
GMD_EXPORT int gmd_begin_pool(int device, const uint64_t id[2], gmd_stream_filter *accepts,
                              void *context)
{
    return guarded(-1, [&] {
        const pool_name name = name_of(device, id);
        caching::get()->beginAllocateToPool(
            static_cast<c10::DeviceIndex>(device), name.second, [accepts, context](cudaStream_t s) {
                return !accepts || accepts(context, static_cast<CUstream_st *>(s));
            });
        const std::lock_guard<std::mutex> guard(pool_lock);
        pool_contexts[name] = context;
        open_pools++;
        return 0;
    });
}

GMD_EXPORT int gmd_end_pool(int device, const uint64_t id[2], void **context)
{
    return guarded(-1, [&] {
        const pool_name name = name_of(device, id);
        caching::get()->endAllocateToPool(static_cast<c10::DeviceIndex>(device), name.second);
        const std::lock_guard<std::mutex> guard(pool_lock);
        *context = pool_contexts[name];
        pool_contexts.erase(name);
        open_pools--;
        return 0;
    });
}

GMD_EXPORT int gmd_release_pool(int device, const uint64_t id[2])
{
    return guarded(-1, [&] {
        caching::get()->releasePool(static_cast<c10::DeviceIndex>(device),
                                    name_of(device, id).second);
        return 0;
    });
}
