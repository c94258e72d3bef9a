// oneflow.cpp - OneFlow's BinAllocator behind gmd's ABI, one for each device and stream, as OneFlow
// has them. Its cache is emptied as by VirtualMachine::ShrinkAllMem, which waits for the device.
//
// Of OneFlow's sources it needs oneflow/core/vm/{allocator,caching_allocator,bin_allocator,
// thread_safe_guard}.h. What those include of the framework (protobuf, glog) has a stand-in below.
#include "adapter.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

// --- what oneflow/core/common has ------------------------------------------------------------

#define ONEFLOW_CORE_COMMON_UTIL_H_
#define ONEFLOW_CORE_COMMON_MAYBE_H_
#define ONEFLOW_CORE_COMMON_THROW_H_

namespace oneflow
{
template <class Key, class Value> using HashMap = std::unordered_map<Key, Value>;
template <class Key> using HashSet = std::unordered_set<Key>;

const std::size_t kCudaMemAllocAlignSize = 512;

inline std::size_t RoundUp(std::size_t n, std::size_t to)
{
    return (n + to - 1) / to * to;
}

struct Error {
    std::string text;
    bool is_out_of_memory = false;

    static Error OutOfMemoryError()
    {
        return {"out of memory", true};
    }
    static Error CheckFailedError()
    {
        return {"a check failed", false};
    }
};
// A kind of error takes the place of the one before; more words are not kept.
inline Error operator<<(Error &&, Error &&kind)
{
    return std::move(kind);
}
template <class Word> Error operator<<(Error &&error, const Word &)
{
    return std::move(error);
}

template <class Value> class Maybe
{
  public:
    Maybe(Value value) : value_(value) {}
    Maybe(Error error) : error_(std::move(error)) {}
    const std::optional<Error> &error() const
    {
        return error_;
    }
    Value value() const
    {
        return value_;
    }

  private:
    Value value_{};
    std::optional<Error> error_;
};
template <> class Maybe<void>
{
  public:
    Maybe(Error error) : error_(std::move(error)) {}
    static Maybe Ok()
    {
        return Maybe();
    }
    const std::optional<Error> &error() const
    {
        return error_;
    }
    void value() const {}

  private:
    Maybe() = default;
    std::optional<Error> error_;
};

// What is said is not kept; a failed check ends the process, as glog's does.
struct Words {
    template <class Word> const Words &operator<<(const Word &) const
    {
        return *this;
    }
};
struct Silence {
    void operator&(const Words &) const {}
};
struct Death {
    const char *failed;
    [[noreturn]] void operator&(const Words &) const
    {
        std::fprintf(stderr, "OneFlow: check failed: %s\n", failed);
        std::abort();
    }
};
} // namespace oneflow

#define JUST(...)                                                                                  \
    __extension__({                                                                                \
        auto just = (__VA_ARGS__);                                                                 \
        if (just.error()) {                                                                        \
            return *just.error();                                                                  \
        }                                                                                          \
        just.value();                                                                              \
    })
#define CHECK(x)         (x) ? (void)0 : oneflow::Death{#x} & oneflow::Words()
#define CHECK_EQ(a, b)   CHECK((a) == (b))
#define CHECK_NE(a, b)   CHECK((a) != (b))
#define CHECK_GT(a, b)   CHECK((a) > (b))
#define CHECK_GE(a, b)   CHECK((a) >= (b))
#define CHECK_NOTNULL(x) CHECK((x) != nullptr)
#define CHECK_OR_RETURN(x)                                                                         \
    if (!(x))                                                                                      \
    return oneflow::Error::CheckFailedError()
#define CHECK_NOTNULL_OR_RETURN(x)  CHECK_OR_RETURN((x) != nullptr)
#define UNIMPLEMENTED_THEN_RETURN() return oneflow::Error::CheckFailedError()
#define LOG(severity)               oneflow::Death{#severity} & oneflow::Words()
#define VLOG(level)                 oneflow::Silence() & oneflow::Words()
#define OF_DISALLOW_COPY_AND_MOVE(Class)                                                           \
    Class(const Class &) = delete;                                                                 \
    Class &operator=(const Class &) = delete

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-compare"
#include <oneflow/core/vm/bin_allocator.h>
#include <oneflow/core/vm/thread_safe_guard.h>
#pragma GCC diagnostic pop

// --- OneFlow's allocator behind gmd's ABI ----------------------------------------------------

namespace
{
// OneFlow's memory of a device (EpBackendAllocator, ep::CudaDevice): the current device's.
class device_memory final : public oneflow::vm::Allocator
{
  public:
    oneflow::Maybe<void> Allocate(char **memory, std::size_t size) override
    {
        cudaError_t error = cudaMalloc(reinterpret_cast<void **>(memory), size);
        if (error == cudaErrorMemoryAllocation) {
            return oneflow::Error::OutOfMemoryError();
        }
        if (error != cudaSuccess) {
            return oneflow::Error{cudaGetErrorString(error)};
        }
        return oneflow::Maybe<void>::Ok();
    }
    void Deallocate(char *memory, std::size_t) override
    {
        cudaError_t error = cudaFree(memory);
        CHECK_EQ(error, cudaSuccess);
    }
    void DeviceReset() override {}
};

using bins = oneflow::vm::BinAllocator<oneflow::vm::ThreadSafeLock>;
std::mutex finding;
std::map<std::pair<int, cudaStream_t>, std::unique_ptr<bins>> all;
std::unordered_map<void *, bins *> owners; // of live blocks: OneFlow's tensors know their allocator

bins &bins_of(int device, cudaStream_t stream)
{
    std::lock_guard<std::mutex> lock(finding);
    std::unique_ptr<bins> &found = all[{device, stream}];
    if (!found) {
        found = std::make_unique<bins>(oneflow::kCudaMemAllocAlignSize,
                                       std::make_unique<device_memory>());
    }
    return *found;
}

void own(void *memory, bins *owner)
{
    std::lock_guard<std::mutex> lock(finding);
    owners[memory] = owner;
}

bins *disown(void *memory)
{
    std::lock_guard<std::mutex> lock(finding);
    auto found = owners.find(memory);
    bins *owner = found == owners.end() ? nullptr : found->second;
    owners.erase(memory);
    return owner;
}

} // namespace

extern "C" {

void *gmd_malloc(size_t size, int device, cudaStream_t stream)
{
    char *memory = nullptr;
    adapter::device_scope scope(device);
    if (!scope.is_set()) {
        return nullptr;
    }
    adapter::last_error last;
    bins &from = bins_of(device, stream);
    auto asked = from.Allocate(&memory, size);
    adapter::failure.clear();
    if (asked.error()) {
        (void)last.take();
        adapter::failure = asked.error()->is_out_of_memory ? "" : asked.error()->text;
        return nullptr;
    }
    own(memory, &from);
    return memory;
}

void gmd_free(void *memory, size_t size, int device, cudaStream_t)
{
    adapter::device_scope scope(device);
    bins *owner = disown(memory);
    if (scope.is_set() && owner) {
        owner->Deallocate(static_cast<char *>(memory), size);
    }
}

// What is free goes back to the device, when its work is over.
void gmd_empty_cache(void)
{
    std::lock_guard<std::mutex> lock(finding);
    for (auto &each : all) {
        adapter::device_scope scope(each.first.first);
        if (scope.is_set() && adapter::succeeded([] { return cudaDeviceSynchronize(); })) {
            each.second->Shrink();
        }
    }
}
}
