// A stand-in for cumo's source file: see README.md.
#include <cstdint>
#include <cuda_runtime.h>
#include <mutex>
#include <ruby.h>
#include <stdexcept>
#include <unordered_map>

namespace cumo::internal
{
class OutOfMemoryError : public std::runtime_error
{
  public:
    OutOfMemoryError() : runtime_error("out of memory") {}
};

class MemoryPool
{
  public:
    std::intptr_t Malloc(std::size_t size, cudaStream_t)
    {
        void *memory = nullptr;
        if (cudaMallocManaged(&memory, size, 0) != cudaSuccess) {
            throw OutOfMemoryError();
        }
        std::lock_guard<std::mutex> lock(mutex_);
        blocks_[memory] = {size, device()};
        return reinterpret_cast<std::intptr_t>(memory);
    }
    bool Free(std::intptr_t address)
    {
        void *memory = reinterpret_cast<void *>(address);
        std::lock_guard<std::mutex> lock(mutex_);
        blocks_.erase(memory);
        return cudaFree(memory) == cudaSuccess;
    }
    void FreeAllBlocks() {}
    std::size_t GetUsedBytes()
    {
        std::lock_guard<std::mutex> lock(mutex_);
        std::size_t used = 0;
        for (const auto &each : blocks_) {
            used += each.second.device == device() ? each.second.size : 0;
        }
        return used;
    }
    std::size_t GetFreeBytes()
    {
        return 0;
    }

  private:
    struct block {
        std::size_t size;
        int device;
    };
    static int device()
    {
        int current = 0;
        (void)cudaGetDevice(&current);
        return current;
    }
    std::mutex mutex_;
    std::unordered_map<void *, block> blocks_;
};
} // namespace cumo::internal
