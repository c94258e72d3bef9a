// A stand-in for XLA's source file: see README.md.
#include "absl/synchronization/mutex.h"
#include "xla/tsl/platform/logging.h"

namespace tsl
{
struct AllocatorStats {
    std::int64_t bytes_in_use = 0;
    std::optional<std::int64_t> pool_bytes;
    std::string DebugString() const;
};

class Allocator
{
  public:
    virtual ~Allocator();
};

class SubAllocator
{
  public:
    using Visitor = std::function<void(void *, int, size_t)>;
    SubAllocator(const std::vector<Visitor> &, const std::vector<Visitor> &);
    virtual ~SubAllocator() = default;
    virtual void *Alloc(size_t alignment, size_t bytes, size_t *received) = 0;
    virtual void Free(void *memory, size_t bytes) = 0;
    virtual bool SupportsCoalescing() const = 0;
};

class BFCAllocator : public Allocator
{
  public:
    struct Options {
        bool allow_growth = true;
        bool allow_retry_on_failure = true;
        bool garbage_collection = false;
    };
    BFCAllocator(std::unique_ptr<SubAllocator> below, size_t, const string &, const Options &)
        : below_(std::move(below))
    {
    }
    void *AllocateRaw(size_t alignment, size_t bytes)
    {
        size_t received = 0;
        void *memory = bytes ? below_->Alloc(alignment, bytes, &received) : nullptr;
        absl::MutexLock lock(mutex_);
        sizes_[memory] = memory ? received : 0;
        in_use_ += static_cast<std::int64_t>(sizes_[memory]);
        return memory;
    }
    void DeallocateRaw(void *memory)
    {
        absl::MutexLock lock(mutex_);
        in_use_ -= static_cast<std::int64_t>(sizes_[memory]);
        below_->Free(memory, sizes_[memory]);
        sizes_.erase(memory);
    }
    std::optional<AllocatorStats> GetStats()
    {
        AllocatorStats seen;
        absl::MutexLock lock(mutex_);
        seen.bytes_in_use = in_use_;
        seen.pool_bytes = in_use_;
        return seen;
    }

  private:
    std::unique_ptr<SubAllocator> below_;
    absl::Mutex mutex_;
    std::int64_t in_use_ = 0;
    std::map<void *, size_t> sizes_;
};
} // namespace tsl
