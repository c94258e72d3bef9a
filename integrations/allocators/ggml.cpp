// ggml.cpp - a memory pool of ggml's CUDA backend (llama.cpp) behind gmd's ABI, one for each device
// and stream, as a context of ggml has them: the legacy pool, or with GMD_GGML_VMM the one of
// virtual memory.
//
// ggml_cuda_pools.inc is cut out of ggml's ggml-cuda.cu when this is configured, from the first
// pool to the function that makes one; what it uses of the rest has a stand-in below. A call that
// fails ends the process in ggml, whose message a program may catch and leave with an exception
// (ggml_set_abort_callback): that is what happens here, so that more than the first can be seen.
#include "adapter.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <unordered_map>
#include <utility>
#include <vector>

#if defined GMD_GGML_VMM
#include <cuda.h>
#define GGML_USE_VMM
#endif

// --- what ggml has around its pools ------------------------------------------------------------

#define GGML_CUDA_NAME        "CUDA"
#define GGML_CUDA_MAX_DEVICES 16
#define GGML_LOG_DEBUG(...)   ((void)0)
#define GGML_LOG_INFO(...)    ((void)0)
#define GGML_LOG_WARN(...)    ((void)0)
#define GGML_ASSERT(x)        check_that(x, "GGML_ASSERT(" #x ")")
#define CUDA_CHECK(call)      check_runtime(call)
#define CU_CHECK(call)        check_driver(call)

namespace
{
// A full pool is out of memory; any other assertion is an error.
[[maybe_unused]] void check_that(bool holds, const char *what)
{
    if (!holds && std::strstr(what, "MAX_SIZE")) {
        throw std::bad_alloc();
    }
    if (!holds) {
        throw std::runtime_error(what);
    }
}

void check_runtime(cudaError_t error)
{
    if (error == cudaErrorMemoryAllocation) {
        throw std::bad_alloc();
    }
    if (error != cudaSuccess) {
        throw std::runtime_error(cudaGetErrorString(error));
    }
}

struct ggml_cuda_pool {
    virtual ~ggml_cuda_pool() = default;
    virtual void *alloc(size_t size, size_t *actual_size) = 0;
    virtual void free(void *memory, size_t size) = 0;
};

struct ggml_cuda_device_info {
    struct {
        size_t vmm_granularity;
    } devices[GGML_CUDA_MAX_DEVICES];
    int device_count;
};

ggml_cuda_device_info info;

[[maybe_unused]] const ggml_cuda_device_info &ggml_cuda_info()
{
    return info;
}

[[maybe_unused]] int ggml_cuda_get_physical_device(int device)
{
    return device;
}

[[maybe_unused]] void ggml_cuda_set_device(int device)
{
    int current = 0;
    CUDA_CHECK(cudaGetDevice(&current));
    if (current != device) {
        CUDA_CHECK(cudaSetDevice(device));
    }
}

[[maybe_unused]] cudaError_t ggml_cuda_device_malloc(void **memory, size_t size, int device)
{
    ggml_cuda_set_device(device);
    return cudaMalloc(memory, size);
}

#if defined GGML_USE_VMM
void check_driver(CUresult error)
{
    const char *words = nullptr;
    if (error == CUDA_ERROR_OUT_OF_MEMORY) {
        throw std::bad_alloc();
    }
    if (error != CUDA_SUCCESS) {
        (void)cuGetErrorString(error, &words);
        throw std::runtime_error(words ? words : "a call of the driver failed");
    }
}

size_t granularity_of(int device)
{
    CUmemAllocationProp what = {};
    size_t granularity = size_t{2} << 20;
    what.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    what.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    what.location.id = device;
    (void)cuMemGetAllocationGranularity(&granularity, &what, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
    return granularity;
}
#endif

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#include "ggml_cuda_pools.inc"
#pragma GCC diagnostic pop

// --- ggml's pools behind gmd's ABI -------------------------------------------------------------

// A pool and its live blocks, in the order of their allocation. ggml frees in the opposite order,
// which the pool of virtual memory demands. gmd does not: there a block that is freed early waits
// until those behind it are freed, and the pool serves nothing meanwhile.
class blocks
{
  public:
#if defined GMD_GGML_VMM
    explicit blocks(int device) : pool_(std::make_unique<ggml_cuda_pool_vmm>(device)) {}
#else
    explicit blocks(int device) : pool_(std::make_unique<ggml_cuda_pool_leg>(device)) {}
#endif

    void *alloc(size_t size)
    {
        block made;
        made.memory = pool_->alloc(size, &made.size);
        if (made.memory) {
            live_.push_back(made);
        }
        return made.memory;
    }

    void free(void *memory)
    {
        for (size_t i = live_.size(); i-- > 0;) {
            if (live_[i].memory == memory && !live_[i].is_freed) {
                live_[i].is_freed = true;
                ++waiting_;
#if !defined GMD_GGML_VMM
                std::swap(live_[i], live_.back());
#endif
                break;
            }
        }
        while (!live_.empty() && live_.back().is_freed) {
            block last = live_.back();
            live_.pop_back();
            --waiting_;
            pool_->free(last.memory, last.size);
        }
    }

    bool are_none() const
    {
        return live_.empty();
    }

    bool does_one_wait() const
    {
        return waiting_ != 0;
    }

  private:
    struct block {
        void *memory = nullptr;
        size_t size = 0;
        bool is_freed = false;
    };
    std::unique_ptr<ggml_cuda_pool> pool_;
    std::vector<block> live_;
    size_t waiting_ = 0;
};

// Those of a stream: one, and where blocks wait, as many as serve.
using pools = std::vector<std::unique_ptr<blocks>>;

std::mutex calling;
// Never destroyed: the runtime may be gone when static objects are.
auto &all = *new std::map<std::pair<int, cudaStream_t>, pools>;
auto &owners = *new std::unordered_map<void *, blocks *>;

blocks &serving(int device, cudaStream_t stream)
{
    pools &of = all[{device, stream}];
    for (auto &each : of) {
        if (!each->does_one_wait()) {
            return *each;
        }
    }
    of.push_back(std::make_unique<blocks>(device));
    return *of.back();
}
} // namespace

extern "C" {

void gmd_init(int device_count)
{
    info.device_count = device_count;
#if defined GMD_GGML_VMM
    for (int device = 0; device < device_count && device < GGML_CUDA_MAX_DEVICES; ++device) {
        info.devices[device].vmm_granularity = granularity_of(device);
    }
#endif
}

void *gmd_malloc(size_t size, int device, cudaStream_t stream)
{
    void *memory = nullptr;
    std::lock_guard<std::mutex> lock(calling);
    adapter::device_scope scope(device);
    if (scope.is_set()) {
        (void)adapter::succeeded_without_exception([&] {
            blocks &from = serving(device, stream);
            memory = from.alloc(size);
            if (memory) {
                owners[memory] = &from;
            }
        });
    }
    return memory;
}

void gmd_free(void *memory, size_t, int device, cudaStream_t)
{
    std::lock_guard<std::mutex> lock(calling);
    adapter::device_scope scope(device);
    auto owner = owners.find(memory);
    if (scope.is_set() && owner != owners.end()) {
        blocks *of = owner->second;
        owners.erase(owner);
        (void)adapter::succeeded_without_exception([&] { of->free(memory); });
    }
}

// Pools without a live block go, as with the context that has them, when their work is over.
void gmd_empty_cache(void)
{
    std::lock_guard<std::mutex> lock(calling);
    for (auto &of : all) {
        adapter::device_scope scope(of.first.first);
        if (scope.is_set() && adapter::succeeded([] { return cudaDeviceSynchronize(); })) {
            pools &each = of.second;
            each.erase(std::remove_if(each.begin(), each.end(),
                                      [](const auto &pool) { return pool->are_none(); }),
                       each.end());
        }
    }
}
}
