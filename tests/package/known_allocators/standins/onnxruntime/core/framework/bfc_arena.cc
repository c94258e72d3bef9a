// A stand-in for ONNX Runtime's source file, and for what it includes: see README.md.
#include "core/common/common.h"

enum class OrtAllocatorType { OrtDeviceAllocator };

struct OrtDevice {
    enum DeviceType { GPU };
    enum class MemType { DEFAULT };
    enum class VendorIds { NVIDIA };
    OrtDevice(DeviceType, MemType, VendorIds, int16_t which) : id(which) {}
    int16_t id;
};

struct OrtMemoryInfo {
    OrtMemoryInfo(const char *, OrtAllocatorType, OrtDevice) {}
};

namespace onnxruntime
{
enum class ArenaExtendStrategy { kSameAsRequested };

struct AllocatorStats {
    int64_t bytes_in_use = 0;
    int64_t total_allocated_bytes = 0;
};

class IAllocator
{
  public:
    explicit IAllocator(const OrtMemoryInfo &) {}
    virtual ~IAllocator() = default;
    virtual void *Alloc(size_t size) = 0;
    virtual void Free(void *memory) = 0;
};

class Stream
{
  public:
    Stream(void *, const OrtDevice &) {}
    virtual ~Stream() = default;
};

class BFCArena
{
  public:
    static const size_t DEFAULT_MAX_MEM = std::numeric_limits<size_t>::max();
};

class StreamAwareBFCArena
{
  public:
    StreamAwareBFCArena(std::unique_ptr<IAllocator> below, size_t, ArenaExtendStrategy)
        : below_(std::move(below))
    {
    }
    void *AllocOnStream(size_t size, Stream *)
    {
        void *memory = size ? below_->Alloc(size) : nullptr;
        std::lock_guard<std::mutex> lock(mutex_);
        live_ += static_cast<int64_t>(memory ? size : 0);
        sizes_[memory] = memory ? size : 0;
        return memory;
    }
    void Free(void *memory)
    {
        std::lock_guard<std::mutex> lock(mutex_);
        live_ -= static_cast<int64_t>(sizes_[memory]);
        sizes_.erase(memory);
        below_->Free(memory);
    }
    void ReleaseStreamBuffers(Stream *) {}
    Status Shrink()
    {
        return Status::OK();
    }
    void GetStats(AllocatorStats *stats)
    {
        std::lock_guard<std::mutex> lock(mutex_);
        stats->bytes_in_use = live_;
        stats->total_allocated_bytes = live_;
    }

  private:
    std::unique_ptr<IAllocator> below_;
    std::mutex mutex_;
    int64_t live_ = 0;
    std::map<void *, size_t> sizes_;
};
} // namespace onnxruntime
