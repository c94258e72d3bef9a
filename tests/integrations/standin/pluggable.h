// pluggable.h - PyTorch's pluggable allocator as far as its virtual table and its books matter: the
// entries that the hooks know by their symbols, and between two of them the five that they know by
// their places.
#ifndef GMD_STANDIN_PLUGGABLE_H
#define GMD_STANDIN_PLUGGABLE_H

#include "c10.h"

#include <memory>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

struct CUstream_st;

namespace torch::cuda::CUDAPluggableAllocator
{

using pool_id = std::pair<unsigned long long, unsigned long long>;

struct shareable {
    ptrdiff_t offset;
    std::string handle;
};

struct STANDIN_API CUDAPluggableAllocator {
    CUDAPluggableAllocator(); // here and not inline: the table is this library's
    virtual ~CUDAPluggableAllocator();
    void *malloc(size_t size, int8_t device, CUstream_st *stream);
    virtual void (*raw_deleter() const)(void *);
    virtual void *raw_alloc(size_t size);
    virtual void raw_delete(void *ptr);
    virtual int before();
    virtual void emptyCache(pool_id id);
    virtual void cacheInfo(int8_t device, size_t *largest);
    virtual void releasePool(int8_t device, pool_id id);
    virtual int getPoolUseCount(int8_t device, pool_id id);
    virtual void createOrIncrefPool(int8_t device, pool_id id, std::shared_ptr<void> source);
    virtual void setUseOnOOM(int8_t device, pool_id id, bool is_on);
    virtual void setNoSplit(int8_t device, pool_id id);
    virtual bool checkPoolLiveAllocations(int8_t device, pool_id id,
                                          const std::unordered_set<void *> &live);
    virtual shareable shareIpcHandle(void *ptr);
    virtual std::shared_ptr<void> getIpcDevPtr(std::string handle);
    virtual int after();
    virtual std::shared_ptr<c10::cuda::CUDACachingAllocator::AllocatorState>
    getCheckpointState(int8_t device, pool_id id);
    virtual c10::cuda::CUDACachingAllocator::CheckpointDelta
    setCheckpointPoolState(int8_t device,
                           std::shared_ptr<c10::cuda::CUDACachingAllocator::AllocatorState> state);

    // What torch is given, and its books: for the tests.
    void *(*alloc_fn)(size_t size, int device, CUstream_st *stream) = nullptr;
    void (*free_fn)(void *ptr, size_t size, int device, CUstream_st *stream) = nullptr;
    std::unordered_map<void *, size_t> books;
};

} // namespace torch::cuda::CUDAPluggableAllocator

#endif
