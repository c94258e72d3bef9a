// torch_pools.cpp - see torch_pools.h; each begin, and each MemPool, holds its pool once more.
#include "torch_pools.h"

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

// --- what is handed to PyTorch -----------------------------------------------------------------

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
}

TORCH_EXPORT void gmd_torch_end_pool(int device, pool_id id)
{
    const uint64_t name[2] = {id.first, id.second};
    void *copy = nullptr;
    if (gmd_end_pool(device, name, &copy) != 0) {
        refuse("no requests go to", device, id);
    }
    delete static_cast<stream_filter *>(copy);
}

TORCH_EXPORT void gmd_torch_release_pool(int device, pool_id id)
{
    release_pool(device, id);
}
