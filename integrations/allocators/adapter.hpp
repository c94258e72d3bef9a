// adapter.hpp - what the adapters of this folder share: the device of a call, and the text of what
// went wrong in it (gmd_last_error).
#ifndef GMD_KNOWN_ALLOCATOR_ADAPTER_HPP
#define GMD_KNOWN_ALLOCATOR_ADAPTER_HPP

#include <cuda_runtime_api.h>
#include <gmd_abi.h>

#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <string>

namespace adapter
{
// What went wrong in the thread's last call but being out of memory.
inline thread_local std::string failure;

// The thread's last CUDA error. An error that the allocator reported is taken away, as a caller
// does that handles it: what it leaves there without a report stays, and so does an error that was
// there before the call, which is the caller's.
class last_error
{
  public:
    last_error() : before_(cudaPeekAtLastError()) {}
    // cudaSuccess: there is none but the caller's.
    cudaError_t take() const
    {
        return cudaPeekAtLastError() == before_ ? cudaSuccess : cudaGetLastError();
    }

  private:
    cudaError_t before_;
};

// Calls what answers with a cudaError_t.
template <class Call> bool succeeded(Call call)
{
    last_error last;
    cudaError_t error = call();
    failure.clear();
    if (error == cudaSuccess) {
        return true;
    }
    (void)last.take();
    if (error != cudaErrorMemoryAllocation) {
        failure = cudaGetErrorString(error);
    }
    return false;
}

// Makes a device current and then the caller's again, as programs do around an allocator that
// works on the current device. Where the caller's is the device, nothing is called at the end, so
// that an allocator which leaves another one current is seen. Each call is tried twice: one that
// fails once is not to be taken for such an allocator.
class device_scope
{
  public:
    explicit device_scope(int device) : device_(device)
    {
        (void)(cudaGetDevice(&caller_) == cudaSuccess || cudaGetDevice(&caller_) == cudaSuccess);
        is_set_ = caller_ == device || set(device);
    }
    ~device_scope()
    {
        if (caller_ != device_) {
            (void)set(caller_);
        }
    }
    device_scope(const device_scope &) = delete;
    device_scope &operator=(const device_scope &) = delete;

    bool is_set() const
    {
        return is_set_;
    }

  private:
    static bool set(int device)
    {
        return cudaSetDevice(device) == cudaSuccess || cudaSetDevice(device) == cudaSuccess;
    }

    int device_;
    int caller_ = 0;
    bool is_set_ = false;
};

// The statistics of an allocator that counts live and cached bytes. Live bytes are in blocks as
// they were rounded up; nothing waits for events once it was freed.
inline void fill_in(gmd_stats *stats, std::uint64_t live, std::uint64_t cached)
{
    const std::size_t size = stats->struct_size;
    std::memset(stats, 0xff, size); // GMD_STAT_UNKNOWN
    stats->struct_size = size;
    stats->allocated_bytes = live;
    stats->active_bytes = live;
    stats->reserved_bytes = live + cached;
}

// Calls what throws. std::bad_alloc is out of memory, and so is any other exception if the device's
// last error is that now; else it is noted.
template <class Call> bool succeeded_without_exception(Call call)
{
    last_error last;
    failure.clear();
    try {
        call();
        return true;
    } catch (const std::bad_alloc &) {
    } catch (const std::exception &error) {
        failure = error.what();
    }
    if (last.take() == cudaErrorMemoryAllocation) { // the exception has reported it
        failure.clear();
    }
    return false;
}
} // namespace adapter

// Each adapter is one source file, so this stands in the header.
extern "C" const char *gmd_last_error(void)
{
    return adapter::failure.empty() ? nullptr : adapter::failure.c_str();
}

#endif
