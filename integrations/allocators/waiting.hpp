// waiting.hpp - for an allocator that knows no streams: its adapter waits for the work on a block
// before it gives the block back, on the block's stream and on the recorded ones.
#ifndef GMD_KNOWN_ALLOCATOR_WAITING_HPP
#define GMD_KNOWN_ALLOCATOR_WAITING_HPP

#include "adapter.hpp"

#include <iterator>
#include <map>
#include <mutex>

namespace adapter
{
inline std::mutex recording;
inline std::multimap<void *, cudaStream_t> recorded;

// False: no wait says that its work is over, as while it is captured into a graph.
inline bool is_over(cudaStream_t stream)
{
    return succeeded([&] { return cudaStreamSynchronize(stream); }) ||
           succeeded([] { return cudaDeviceSynchronize(); });
}

// Waits, with the block's device current. False: the block is to be lost rather than to be
// somebody's early.
inline bool is_unused(void *memory, cudaStream_t stream)
{
    std::lock_guard<std::mutex> lock(recording);
    auto users = recorded.equal_range(memory);
    bool is_unused = is_over(stream);
    for (auto user = users.first; user != users.second; ++user) {
        is_unused = is_over(user->second) && is_unused;
    }
    recorded.erase(users.first, users.second);
    return is_unused;
}
} // namespace adapter

extern "C" {

void gmd_record_stream(void *memory, cudaStream_t stream)
{
    std::lock_guard<std::mutex> lock(adapter::recording);
    adapter::recorded.emplace(memory, stream);
}

void gmd_forget_stream(int device, cudaStream_t stream)
{
    adapter::device_scope scope(device);
    if (!adapter::is_over(stream)) {
        return;
    }
    std::lock_guard<std::mutex> lock(adapter::recording);
    for (auto user = adapter::recorded.begin(); user != adapter::recorded.end();) {
        user = user->second == stream ? adapter::recorded.erase(user) : std::next(user);
    }
}
}

#endif
