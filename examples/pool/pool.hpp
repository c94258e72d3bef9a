// pool.hpp - a pool of device memory: freed blocks are kept, each with an event that marks the end
// of its use, and serve later requests of about their size on any stream.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <map>
#include <mutex>
#include <unordered_map>

class device_pool
{
  public:
    explicit device_pool(int device) : device_(device) {}
    device_pool(const device_pool &) = delete;
    device_pool &operator=(const device_pool &) = delete;

    // Null: out of memory. The block may be used by work on `stream` at once.
    void *allocate(std::size_t bytes, cudaStream_t stream);
    // Work queued on `stream` so far may still use the block.
    void deallocate(void *pointer, cudaStream_t stream);
    // Everything that is not in use goes back to the device.
    void trim();

  private:
    struct block {
        void *memory;
        std::size_t size;
        cudaEvent_t last_use;
    };

    bool take_cached(std::size_t size, cudaStream_t stream, block *out);
    bool take_new(std::size_t size, block *out);
    void release(const block &b);
    void release_cached();

    int device_;
    std::mutex mutex_;
    std::multimap<std::size_t, block> cached_;
    std::unordered_map<void *, block> live_;
};
