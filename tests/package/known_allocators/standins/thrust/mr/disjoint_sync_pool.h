// A stand-in for Thrust's header: see README.md.
#ifndef STANDIN_THRUST_MR_DISJOINT_SYNC_POOL_H
#define STANDIN_THRUST_MR_DISJOINT_SYNC_POOL_H

#include <cstddef>

namespace thrust::mr
{
template <class Pointer> struct memory_resource {
    virtual ~memory_resource() = default;
    virtual Pointer do_allocate(std::size_t bytes, std::size_t alignment) = 0;
    virtual void do_deallocate(Pointer memory, std::size_t bytes, std::size_t alignment) = 0;
};

template <class Upstream, class Bookkeeper> class disjoint_synchronized_pool_resource
{
  public:
    disjoint_synchronized_pool_resource(Upstream *upstream, Bookkeeper *) : upstream_(upstream) {}
    void *do_allocate(std::size_t bytes, std::size_t alignment)
    {
        return upstream_->do_allocate(bytes, alignment);
    }
    void do_deallocate(void *memory, std::size_t bytes, std::size_t alignment)
    {
        upstream_->do_deallocate(memory, bytes, alignment);
    }

  private:
    Upstream *upstream_;
};
} // namespace thrust::mr

#endif
