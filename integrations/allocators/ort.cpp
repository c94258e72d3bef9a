// ort.cpp - ONNX Runtime's StreamAwareBFCArena over cudaMalloc behind gmd's ABI, one for each
// device, which grows by what is asked for (kSameAsRequested): only such an arena gives all back.
// Free memory stays with the stream that had it until the stream is forgotten, which the adapter
// does when it is destroyed and its work is over.
//
// It compiles onnxruntime/core/framework/bfc_arena.cc. What that includes of the rest has a
// stand-in below, but allocator.h, stream_handles.h and what they state.
#include "adapter.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <ostream>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

// --- what onnxruntime/core/common has -----------------------------------------------------------

#define ORT_ENABLE_STREAM
#define ORT_DISALLOW_COPY(Class)       Class(const Class &) = delete
#define ORT_DISALLOW_ASSIGNMENT(Class) Class &operator=(const Class &) = delete
#define ORT_DISALLOW_COPY_AND_ASSIGNMENT(Class)                                                    \
    ORT_DISALLOW_COPY(Class);                                                                      \
    ORT_DISALLOW_ASSIGNMENT(Class)
#define ORT_DISALLOW_MOVE(Class)                                                                   \
    Class(Class &&) = delete;                                                                      \
    Class &operator=(Class &&) = delete
#define ORT_DISALLOW_COPY_ASSIGNMENT_AND_MOVE(Class)                                               \
    ORT_DISALLOW_COPY_AND_ASSIGNMENT(Class);                                                       \
    ORT_DISALLOW_MOVE(Class)
#define ORT_TRY                    try
#define ORT_CATCH(what)            catch (what)
#define ORT_RETHROW                throw;
#define ORT_HANDLE_EXCEPTION(body) body()
#define ORT_THROW(...)             throw std::bad_alloc() // what an arena says that has no memory
#define ORT_ENFORCE(holds, ...)                                                                    \
    ((holds) ? (void)0 : throw std::runtime_error("ORT_ENFORCE(" #holds ")"))
#define ORT_UNUSED_PARAMETER(what)       ((void)(what))
#define ORT_MAKE_STATUS(kind, code, ...) ::onnxruntime::Status(false)
#define ORT_RETURN_IF_ERROR(call)        (void)(call)
#define LOGS_DEFAULT(severity)           ::onnxruntime::Silence() & ::onnxruntime::Words()

namespace onnxruntime
{
struct Words {
    template <class Word> const Words &operator<<(const Word &) const
    {
        return *this;
    }
};
struct Silence {
    void operator&(const Words &) const {}
};
class Status
{
  public:
    explicit Status(bool is_ok) : is_ok_(is_ok) {}
    static Status OK()
    {
        return Status(true);
    }
    bool IsOK() const
    {
        return is_ok_;
    }
    std::string ErrorMessage() const
    {
        return "";
    }

  private:
    bool is_ok_;
};
namespace common
{
using onnxruntime::Status;
}
struct OnnxRuntimeException : std::runtime_error {
    using std::runtime_error::runtime_error;
};
} // namespace onnxruntime

// A number whose products do not wrap.
template <class Number> class SafeInt
{
  public:
    SafeInt() = default;
    SafeInt(Number number) : number_(number) {}
    operator Number() const
    {
        return number_;
    }
    SafeInt &operator*=(Number by)
    {
        if (__builtin_mul_overflow(number_, by, &number_)) {
            throw onnxruntime::OnnxRuntimeException("Integer overflow");
        }
        return *this;
    }

  private:
    Number number_ = 0;
};

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <core/framework/bfc_arena.cc>
#pragma GCC diagnostic pop

// --- ONNX Runtime's arena behind gmd's ABI
// --------------------------------------------------------

namespace
{
const OrtDevice &device_of(int device)
{
    static std::mutex making;
    static auto &made = *new std::map<int, OrtDevice>;
    std::lock_guard<std::mutex> lock(making);
    return made
        .emplace(device, OrtDevice(OrtDevice::GPU, OrtDevice::MemType::DEFAULT,
                                   OrtDevice::VendorIds::NVIDIA, static_cast<int16_t>(device)))
        .first->second;
}

// The current device's, as CUDAAllocator takes it.
class device_memory final : public onnxruntime::IAllocator
{
  public:
    explicit device_memory(int device)
        : IAllocator(OrtMemoryInfo("Cuda", OrtAllocatorType::OrtDeviceAllocator, device_of(device)))
    {
    }
    void *Alloc(size_t size) override
    {
        void *memory = nullptr;
        if (!adapter::succeeded([&] { return cudaMalloc(&memory, size); })) {
            throw std::bad_alloc();
        }
        return memory;
    }
    void Free(void *memory) override
    {
        (void)adapter::succeeded([&] { return cudaFree(memory); });
    }
};

class stream_of_device final : public onnxruntime::Stream
{
  public:
    stream_of_device(cudaStream_t stream, int device) : Stream(stream, device_of(device)) {}
};

std::mutex finding;
// Never destroyed: the runtime may be gone when static objects are.
auto &arenas = *new std::vector<std::unique_ptr<onnxruntime::StreamAwareBFCArena>>;
auto &streams = *new std::map<std::pair<int, cudaStream_t>, std::unique_ptr<stream_of_device>>;

onnxruntime::StreamAwareBFCArena &arena_of(int device)
{
    return *arenas[static_cast<size_t>(device)];
}

onnxruntime::Stream *stream_of(int device, cudaStream_t stream)
{
    std::lock_guard<std::mutex> lock(finding);
    auto &found = streams[{device, stream}];
    if (!found) {
        found = std::make_unique<stream_of_device>(stream, device);
    }
    return found.get();
}
} // namespace

extern "C" {

void gmd_init(int device_count)
{
    for (int device = 0; device < device_count; ++device) {
        arenas.push_back(std::make_unique<onnxruntime::StreamAwareBFCArena>(
            std::make_unique<device_memory>(device), onnxruntime::BFCArena::DEFAULT_MAX_MEM,
            onnxruntime::ArenaExtendStrategy::kSameAsRequested));
    }
}

void *gmd_malloc(size_t size, int device, cudaStream_t stream)
{
    void *memory = nullptr;
    adapter::device_scope scope(device);
    if (scope.is_set()) {
        (void)adapter::succeeded_without_exception(
            [&] { memory = arena_of(device).AllocOnStream(size, stream_of(device, stream)); });
    }
    return memory;
}

void gmd_free(void *memory, size_t, int device, cudaStream_t)
{
    adapter::device_scope scope(device);
    if (scope.is_set()) {
        (void)adapter::succeeded_without_exception([&] { arena_of(device).Free(memory); });
    }
}

void gmd_forget_stream(int device, cudaStream_t stream)
{
    adapter::device_scope scope(device);
    if (!scope.is_set() || !adapter::succeeded([&] { return cudaStreamSynchronize(stream); })) {
        return;
    }
    (void)adapter::succeeded_without_exception(
        [&] { arena_of(device).ReleaseStreamBuffers(stream_of(device, stream)); });
    std::lock_guard<std::mutex> lock(finding);
    streams.erase({device, stream});
}

void gmd_empty_cache(void)
{
    for (size_t device = 0; device < arenas.size(); ++device) {
        adapter::device_scope scope(static_cast<int>(device));
        if (scope.is_set() && adapter::succeeded([] { return cudaDeviceSynchronize(); })) {
            (void)adapter::succeeded_without_exception([&] { (void)arenas[device]->Shrink(); });
        }
    }
}

int gmd_get_stats(int device, gmd_stats *stats)
{
    onnxruntime::AllocatorStats seen;
    arena_of(device).GetStats(&seen);
    auto live = static_cast<std::uint64_t>(seen.bytes_in_use);
    adapter::fill_in(stats, live, static_cast<std::uint64_t>(seen.total_allocated_bytes) - live);
    return 0;
}
}
