// A stand-in for OneFlow's header: see README.md.
#ifndef STANDIN_ONEFLOW_BIN_ALLOCATOR
#define STANDIN_ONEFLOW_BIN_ALLOCATOR

#include <cstddef>
#include <memory>
#include <utility>

namespace oneflow::vm
{
class Allocator
{
  public:
    virtual ~Allocator() = default;
    virtual Maybe<void> Allocate(char **memory, std::size_t size) = 0;
    virtual void Deallocate(char *memory, std::size_t size) = 0;
    virtual void DeviceReset() = 0;
};

template <class Lock> class BinAllocator final : public Allocator
{
  public:
    BinAllocator(std::size_t alignment, std::unique_ptr<Allocator> &&backend)
        : backend_(std::move(backend))
    {
        CHECK_GE(alignment, 1u) << "an alignment of " << alignment;
    }
    Maybe<void> Allocate(char **memory, std::size_t size) override
    {
        typename Lock::RAIIGuard guard(lock_);
        JUST(backend_->Allocate(memory, size));
        CHECK_NOTNULL_OR_RETURN(*memory) << Error::OutOfMemoryError() << size << " bytes";
        return Maybe<void>::Ok();
    }
    void Deallocate(char *memory, std::size_t size) override
    {
        backend_->Deallocate(memory, size);
    }
    void DeviceReset() override
    {
        backend_->DeviceReset();
    }
    void Shrink()
    {
        VLOG(3) << "nothing is kept";
    }

  private:
    std::unique_ptr<Allocator> backend_;
    Lock lock_;
};
} // namespace oneflow::vm

#endif
