#include "pool.hpp"

#include <cstdint>

namespace
{

constexpr std::size_t granularity = 512;

// The thread's current device is its caller's: it is as before at the end.
class on_device
{
  public:
    explicit on_device(int device)
    {
        cudaGetDevice(&before_);
        if (before_ != device) {
            cudaSetDevice(device);
            changed_ = true;
        }
    }
    ~on_device()
    {
        if (changed_) {
            cudaSetDevice(before_);
        }
    }

  private:
    int before_ = 0;
    bool changed_ = false;
};

std::size_t rounded(std::size_t bytes)
{
    if (bytes > SIZE_MAX - granularity) {
        return SIZE_MAX; // no device has it, and it must not wrap round to a small number
    }
    return bytes == 0 ? granularity : (bytes + granularity - 1) / granularity * granularity;
}

} // namespace

bool device_pool::take_cached(std::size_t size, cudaStream_t stream, block *out)
{
    auto found = cached_.lower_bound(size);
    if (found == cached_.end() || found->first > 2 * size) {
        return false;
    }
    // The work of its earlier owner comes first.
    if (cudaStreamWaitEvent(stream, found->second.last_use, 0) != cudaSuccess) {
        cudaGetLastError();
        return false;
    }
    *out = found->second;
    cached_.erase(found);
    return true;
}

bool device_pool::take_new(std::size_t size, block *out)
{
    block b = {nullptr, size, nullptr};
    if (cudaMalloc(&b.memory, size) != cudaSuccess) {
        cudaGetLastError(); // handled here: nobody else is to see it
        return false;
    }
    if (cudaEventCreateWithFlags(&b.last_use, cudaEventDisableTiming) != cudaSuccess) {
        cudaGetLastError();
        cudaFree(b.memory);
        return false;
    }
    *out = b;
    return true;
}

void device_pool::release(const block &b)
{
    if (cudaFree(b.memory) != cudaSuccess) { // which waits for all work on the device
        cudaGetLastError();
    }
    if (cudaEventDestroy(b.last_use) != cudaSuccess) {
        cudaGetLastError();
    }
}

void device_pool::release_cached()
{
    for (const auto &entry : cached_) {
        release(entry.second);
    }
    cached_.clear();
}

void *device_pool::allocate(std::size_t bytes, cudaStream_t stream)
{
    std::lock_guard<std::mutex> lock(mutex_);
    on_device device(device_);
    const std::size_t size = rounded(bytes);
    block b;
    if (!take_cached(size, stream, &b) && !take_new(size, &b)) {
        release_cached();
        if (!take_new(size, &b)) {
            return nullptr;
        }
    }
    live_[b.memory] = b;
    return b.memory;
}

void device_pool::deallocate(void *pointer, cudaStream_t stream)
{
    std::lock_guard<std::mutex> lock(mutex_);
    on_device device(device_);
    auto found = live_.find(pointer);
    if (found == live_.end()) {
        return;
    }
    const block b = found->second;
    live_.erase(found);
    if (cudaEventRecord(b.last_use, stream) == cudaSuccess) {
        cached_.emplace(b.size, b);
    } else {
        cudaGetLastError();
        release(b); // without the event nobody knows when it could be used again
    }
}

void device_pool::trim()
{
    std::lock_guard<std::mutex> lock(mutex_);
    on_device device(device_);
    release_cached();
}
