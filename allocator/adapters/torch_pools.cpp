// torch_pools.cpp - see torch_pools.h; each begin, and each MemPool, holds its pool once more.
#include "torch_pools.h"

#include "torch_serving.h"
#include "torch_symbols.h"

#include "gmd_abi.h"

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>

namespace
{

using stream_filter = std::function<bool(cudaStream_t)>;

// Called under the allocator's lock, from C: nothing may be thrown through it. PyTorch's filter
// asks CUDA whether the stream is being captured, and throws when CUDA does not say: then it is not
// meant.
bool ask_filter(void *context, cudaStream_t stream)
{
    try {
        return (*static_cast<stream_filter *>(context))(stream);
    } catch (...) {
        return false;
    }
}

[[noreturn]] void refuse(const char *what, int device, pool_id id)
{
    throw std::runtime_error("gmd_allocator: " + std::string(what) + " pool (" +
                             std::to_string(id.first) + ", " + std::to_string(id.second) +
                             ") of device " + std::to_string(device));
}

bool accept_none(void *, cudaStream_t)
{
    return false;
}

struct {
    std::mutex lock;
    std::map<std::pair<int, pool_id>, int> of;
} holders;

// What of a MemPool is not in use stays its own, as with PyTorch's own allocator.
void keep_held_pools()
{
    static const int is_set = gmd_set_quirk("held_pool", 1);
    (void)is_set;
}

void count_holder(int device, pool_id id, int change)
{
    const std::lock_guard<std::mutex> hold(holders.lock);
    const auto at = holders.of.try_emplace({device, id}, 0).first;
    at->second += change;
    if (at->second == 0) {
        holders.of.erase(at);
    }
}

} // namespace

void hold_pool(int device, pool_id id)
{
    const uint64_t name[2] = {id.first, id.second};
    void *context = nullptr;
    keep_held_pools();
    if (gmd_begin_pool(device, name, accept_none, nullptr) != 0 ||
        gmd_end_pool(device, name, &context) != 0) {
        refuse("nobody can hold", device, id);
    }
    count_holder(device, id, 1);
}

void release_pool(int device, pool_id id)
{
    const uint64_t name[2] = {id.first, id.second};
    if (gmd_release_pool(device, name) != 0) {
        refuse("nobody holds", device, id);
    }
    count_holder(device, id, -1);
}

int holders_of_pool(int device, pool_id id)
{
    const std::lock_guard<std::mutex> hold(holders.lock);
    const auto at = holders.of.find({device, id});
    return at == holders.of.end() ? 0 : at->second;
}

// --- a MemPool's own allocator -------------------------------------------------------------------

namespace
{

// PyTorch's class for pluggable allocators, whose objects a MemPool gets: raw_alloc asks CUDA for
// the current device, which the caller has set.
struct source_functions {
    void *(*raw_alloc)(void *object, size_t size);
    void (*raw_delete)(void *object, void *ptr);

    source_functions()
        : raw_alloc(reinterpret_cast<decltype(raw_alloc)>(
              loaded_symbol("libtorch_cuda.so", OF_PLUGGABLE("9raw_allocEm")))),
          raw_delete(reinterpret_cast<decltype(raw_delete)>(
              loaded_symbol("libtorch_cuda.so", OF_PLUGGABLE("10raw_deleteEPv"))))
    {
    }
};

const source_functions &of_sources()
{
    static const source_functions found;
    return found;
}

// From C, under the allocator's lock: nothing may be thrown through it.
void *allocate_from_source(void *context, size_t size, int)
{
    try {
        return of_sources().raw_alloc(static_cast<std::shared_ptr<void> *>(context)->get(), size);
    } catch (...) {
        return nullptr;
    }
}

void release_to_source(void *context, void *ptr, size_t, int)
{
    try {
        of_sources().raw_delete(static_cast<std::shared_ptr<void> *>(context)->get(), ptr);
    } catch (...) {
        std::fprintf(stderr, "gmd_allocator: a MemPool's own allocator did not take %p back\n",
                     ptr);
    }
}

void end_source(void *context)
{
    delete static_cast<std::shared_ptr<void> *>(context);
}

bool is_pluggable(const void *object)
{
    auto *table = static_cast<void **>(loaded_symbol("libtorch_cuda.so", OF_PLUGGABLE_TABLE));
    return table && *static_cast<void **const *>(object) == table + 2;
}

} // namespace

void set_pool_source(int device, pool_id id, std::shared_ptr<void> source)
{
    const uint64_t name[2] = {id.first, id.second};
    auto kept = std::make_unique<std::shared_ptr<void>>(std::move(source));
    const gmd_pool_memory memory = {allocate_from_source, release_to_source, end_source,
                                    kept.get()};
    if (!of_sources().raw_alloc || !of_sources().raw_delete || !is_pluggable(kept->get()) ||
        gmd_set_pool_memory(device, name, &memory) != 0) {
        release_pool(device, id);
        refuse("an allocator of its own, which is no CUDAPluggableAllocator or comes with "
               "expandable segments, cannot be had by",
               device, id);
    }
    kept.release(); // until end_source
}

void set_pool_option(int device, pool_id id, const char *option, bool is_on)
{
    const uint64_t name[2] = {id.first, id.second};
    if (gmd_set_pool_option(device, name, option, is_on) != 0) {
        refuse("nobody holds", device, id);
    }
}

// --- what is handed to PyTorch -----------------------------------------------------------------

static void tell_pools(int change)
{
    if (serving.pools) {
        serving.pools(change);
    }
}

TORCH_EXPORT void gmd_torch_begin_pool(int device, pool_id id, stream_filter accepts)
{
    const uint64_t name[2] = {id.first, id.second};
    keep_held_pools();
    auto copy = accepts ? std::make_unique<stream_filter>(std::move(accepts)) : nullptr;
    if (gmd_begin_pool(device, name, copy ? ask_filter : nullptr, copy.get()) != 0) {
        refuse("requests go already, or cannot go, to", device, id);
    }
    copy.release(); // until gmd_torch_end_pool
    count_holder(device, id, 1);
    tell_pools(1);
}

TORCH_EXPORT void gmd_torch_end_pool(int device, pool_id id)
{
    const uint64_t name[2] = {id.first, id.second};
    void *copy = nullptr;
    if (gmd_end_pool(device, name, &copy) != 0) {
        refuse("no requests go to", device, id);
    }
    delete static_cast<stream_filter *>(copy);
    tell_pools(-1);
}

TORCH_EXPORT void gmd_torch_release_pool(int device, pool_id id)
{
    release_pool(device, id);
}
