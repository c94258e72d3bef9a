// cnmem.cpp - NVIDIA's CNMeM behind gmd's ABI: a manager for each device, which begins with half of
// the device's memory, grows, and steals between streams. Streams are registered when they are
// first used, which CNMeM asks its users to do. It gives nothing back before its end.
#include "adapter.hpp"

#include <cnmem.h>

#include <mutex>
#include <set>
#include <utility>
#include <vector>

namespace
{
std::mutex registering;
std::set<std::pair<int, cudaStream_t>> registered;

template <class Call> bool succeeded(Call call)
{
    cnmemStatus_t status = CNMEM_STATUS_SUCCESS;
    (void)adapter::succeeded([&] {
        status = call();
        return status == CNMEM_STATUS_SUCCESS ? cudaSuccess : cudaErrorMemoryAllocation;
    });
    if (status != CNMEM_STATUS_SUCCESS && status != CNMEM_STATUS_OUT_OF_MEMORY) {
        adapter::failure = cnmemGetErrorString(status);
    }
    return status == CNMEM_STATUS_SUCCESS;
}

// The null stream is CNMeM's own.
bool is_registered(int device, cudaStream_t stream)
{
    std::lock_guard<std::mutex> lock(registering);
    if (stream == nullptr || registered.count({device, stream}) != 0) {
        return true;
    }
    if (!succeeded([&] { return cnmemRegisterStream(stream); })) {
        return false;
    }
    registered.insert({device, stream});
    return true;
}
} // namespace

extern "C" {

void gmd_init(int device_count)
{
    std::vector<cnmemDevice_t> devices(static_cast<size_t>(device_count));
    for (int i = 0; i < device_count; ++i) {
        devices[static_cast<size_t>(i)].device = i;
    }
    (void)succeeded([&] { return cnmemInit(device_count, devices.data(), CNMEM_FLAGS_DEFAULT); });
}

void *gmd_malloc(size_t size, int device, cudaStream_t stream)
{
    void *memory = nullptr;
    adapter::device_scope scope(device);
    if (!scope.is_set() || !is_registered(device, stream) ||
        !succeeded([&] { return cnmemMalloc(&memory, size, stream); })) {
        return nullptr;
    }
    return memory;
}

void gmd_free(void *memory, size_t, int device, cudaStream_t stream)
{
    adapter::device_scope scope(device);
    if (scope.is_set()) {
        (void)succeeded([&] { return cnmemFree(memory, stream); });
    }
}
}
