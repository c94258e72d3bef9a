// A stand-in for OneFlow's header: see README.md.
#ifndef STANDIN_ONEFLOW_THREAD_SAFE_GUARD
#define STANDIN_ONEFLOW_THREAD_SAFE_GUARD

#include <mutex>

namespace oneflow::vm
{
struct ThreadSafeLock {
    struct RAIIGuard {
        explicit RAIIGuard(ThreadSafeLock &lock) : guard(lock.mutex) {}
        std::lock_guard<std::mutex> guard;
    };
    std::mutex mutex;
};
} // namespace oneflow::vm

#endif
