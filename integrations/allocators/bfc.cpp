// bfc.cpp - BFCAllocator of XLA and TensorFlow over cudaMalloc behind gmd's ABI, one for each
// device, with the settings of TensorFlow: it grows, and gives regions back before it refuses. It
// knows no streams.
//
// It compiles xla/tsl/framework/bfc_allocator.cc and allocator_retry.cc of XLA's
// sources. What those include of Abseil, protobuf and the platform is empty where this is built,
// and has a stand-in below.
#include "waiting.hpp"

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wtype-limits"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-variable"

// --- Abseil ------------------------------------------------------------------------------------

#define ABSL_GUARDED_BY(mutex)
#define ABSL_EXCLUSIVE_LOCKS_REQUIRED(...)
#define ABSL_NO_THREAD_SAFETY_ANALYSIS

namespace absl
{
using std::string_view;
template <class Key> struct flat_hash_set : std::unordered_set<Key> {
    bool contains(const Key &key) const
    {
        return this->count(key) != 0;
    }
};
template <class Key, class Less> using btree_set = std::set<Key, Less>;

class Mutex
{
  public:
    void Lock()
    {
        mutex_.lock();
    }
    void Unlock()
    {
        mutex_.unlock();
    }

  private:
    std::mutex mutex_;
};

class MutexLock
{
  public:
    explicit MutexLock(Mutex &mutex) : mutex_(mutex)
    {
        mutex_.Lock();
    }
    explicit MutexLock(Mutex *mutex) : MutexLock(*mutex) {}
    ~MutexLock()
    {
        mutex_.Unlock();
    }
    MutexLock(const MutexLock &) = delete;

  private:
    Mutex &mutex_;
};

// Nobody waits: the adapter has no retries.
struct CondVar {
    void SignalAll() {}
    template <class Deadline> bool WaitWithDeadline(Mutex *, Deadline)
    {
        return true;
    }
};
using Time = long long;
inline Time FromUnixMicros(long long now)
{
    return now;
}
inline Time Milliseconds(long long count)
{
    return count * 1000;
}

template <class Number> const Number &Hex(const Number &number)
{
    return number;
}
template <class... Parts> std::string StrCat(const Parts &...parts)
{
    std::ostringstream text;
    (void)(text << ... << parts);
    return text.str();
}
template <class... Parts> void StrAppend(std::string *to, const Parts &...parts)
{
    *to += StrCat(parts...);
}
// A file's, which is never written (TF_BFC_MEMORY_DUMP says where).
struct Status {
    bool ok() const
    {
        return false;
    }
    const char *message() const
    {
        return "";
    }
};
inline std::ostream &operator<<(std::ostream &out, const Status &)
{
    return out;
}
} // namespace absl

// --- tsl/platform ------------------------------------------------------------------------------

#define TF_MUST_USE_RESULT

namespace tsl
{
using std::string;
using uint32 = std::uint32_t;
using int32 = std::int32_t;
using uint64 = std::uint64_t;
using int64 = std::int64_t;

// What is said is not kept; a failed check ends the process, as XLA's does.
struct Words {
    template <class Word> const Words &operator<<(const Word &) const
    {
        return *this;
    }
};
struct Silence {
    void operator&(const Words &) const {}
};
struct Death {
    const char *failed;
    [[noreturn]] void operator&(const Words &) const
    {
        std::fprintf(stderr, "BFCAllocator: check failed: %s\n", failed);
        std::abort();
    }
};

inline int Log2Floor64(uint64_t n)
{
    return 63 - __builtin_clzll(n);
}
inline std::string CurrentStackTrace()
{
    return "";
}
namespace strings
{
inline std::string HumanReadableNumBytes(std::int64_t bytes)
{
    return std::to_string(bytes);
}
} // namespace strings
namespace port
{
constexpr int kNUMANoAffinity = -1;
}
namespace metrics
{
inline void UpdateBfcAllocatorDelayTime(uint64_t) {}
} // namespace metrics

struct WritableFile {
    absl::Status Append(const std::string &)
    {
        return {};
    }
    absl::Status Close()
    {
        return {};
    }
};
struct Env {
    static Env *Default()
    {
        static Env only;
        return &only;
    }
    uint64_t NowMicros()
    {
        return 0;
    }
    absl::Status NewWritableFile(const std::string &, std::unique_ptr<WritableFile> *)
    {
        return {};
    }
};

namespace profiler
{
enum class TraceMeFilter { kTraceMemory };
inline uint64_t TraceMeFiltersToMask(std::initializer_list<TraceMeFilter>)
{
    return 0;
}
struct ScopedMemoryDebugAnnotation {
    const char *pending_op_name = "";
    int64_t pending_step_id = 0;
    const char *pending_region_type = "";
    int32_t pending_data_type = 0;
    std::string pending_shape_func() const
    {
        return "";
    }
    static const ScopedMemoryDebugAnnotation &CurrentAnnotation()
    {
        static const ScopedMemoryDebugAnnotation none{};
        return none;
    }
};
enum TraceMeLevel { kCritical = 1, kInfo = 2, kVerbose = 3 };
struct TraceMe {
    template <class... Words> static void InstantActivity(Words &&...) {}
};
struct TraceMeArg {
    template <class Value> TraceMeArg(std::string_view, const Value &) {}
};
inline std::string TraceMeEncode(std::string_view, std::initializer_list<TraceMeArg>)
{
    return "";
}
} // namespace profiler
} // namespace tsl

#define CHECK(x)          (x) ? (void)0 : tsl::Death{#x} & tsl::Words()
#define CHECK_EQ(a, b)    CHECK((a) == (b))
#define CHECK_NE(a, b)    CHECK((a) != (b))
#define CHECK_GT(a, b)    CHECK((a) > (b))
#define CHECK_GE(a, b)    CHECK((a) >= (b))
#define CHECK_LT(a, b)    CHECK((a) < (b))
#define CHECK_LE(a, b)    CHECK((a) <= (b))
#define DCHECK(x)         tsl::Silence() & tsl::Words()
#define DCHECK_EQ(a, b)   DCHECK(0)
#define DCHECK_NE(a, b)   DCHECK(0)
#define DCHECK_GE(a, b)   DCHECK(0)
#define DCHECK_LT(a, b)   DCHECK(0)
#define GMD_LOG_INFO      tsl::Silence() & tsl::Words()
#define GMD_LOG_WARNING   tsl::Silence() & tsl::Words()
#define GMD_LOG_ERROR     tsl::Silence() & tsl::Words()
#define GMD_LOG_FATAL     tsl::Death{"LOG(FATAL)"} & tsl::Words()
#define LOG(severity)     GMD_LOG_##severity
#define VLOG(level)       tsl::Silence() & tsl::Words()
#define VLOG_IS_ON(level) false

// --- protobuf: a map of the memory, which nobody asks for ---------------------------------------

namespace tensorflow
{
struct Message {
#define GMD_SETTER(name)                                                                           \
    template <class Value> void set_##name(const Value &) {}
    GMD_SETTER(allocator_name)
    GMD_SETTER(num_allocs)
    GMD_SETTER(bytes_in_use)
    GMD_SETTER(peak_bytes_in_use)
    GMD_SETTER(largest_alloc_size)
    GMD_SETTER(fragmentation_metric)
    GMD_SETTER(bin)
    GMD_SETTER(total_bytes_in_use)
    GMD_SETTER(total_bytes_in_bin)
    GMD_SETTER(total_chunks_in_use)
    GMD_SETTER(total_chunks_in_bin)
    GMD_SETTER(in_use)
    GMD_SETTER(address)
    GMD_SETTER(size)
    GMD_SETTER(requested_size)
    GMD_SETTER(freed_at_count)
    GMD_SETTER(op_name)
    GMD_SETTER(step_id)
    GMD_SETTER(action_count)
#undef GMD_SETTER
};
using MemAllocatorStats = Message;
using BinSummary = Message;
using MemChunk = Message;
using SnapShot = Message;
class MemoryDump : public Message
{
  public:
    Message *mutable_stats()
    {
        return &part_;
    }
    Message *add_bin_summary()
    {
        return &part_;
    }
    Message *add_chunk()
    {
        return &part_;
    }
    Message *add_snap_shot()
    {
        return &part_;
    }
    std::string SerializeAsString() const
    {
        return "";
    }

  private:
    Message part_;
};
} // namespace tensorflow

#include <xla/tsl/framework/bfc_allocator.cc>

#include <xla/tsl/framework/allocator_retry.cc>
#pragma GCC diagnostic pop

namespace tsl
{
Allocator::~Allocator() = default;
std::string AllocatorStats::DebugString() const
{
    return "";
}
SubAllocator::SubAllocator(const std::vector<Visitor> &, const std::vector<Visitor> &) {}
} // namespace tsl

// --- XLA's allocator behind gmd's ABI -----------------------------------------------------------

namespace
{
class device_memory final : public tsl::SubAllocator
{
  public:
    device_memory() : SubAllocator({}, {}) {}
    void *Alloc(size_t, size_t bytes, size_t *received) override
    {
        void *memory = nullptr;
        *received = bytes;
        return adapter::succeeded([&] { return cudaMalloc(&memory, bytes); }) ? memory : nullptr;
    }
    void Free(void *memory, size_t) override
    {
        (void)adapter::succeeded([&] { return cudaFree(memory); });
    }
    bool SupportsCoalescing() const override
    {
        return false;
    }
};

std::mutex finding;
std::vector<tsl::BFCAllocator *> allocators; // never destroyed: the runtime may be gone then

// The current device's.
tsl::BFCAllocator &allocator_of(int device)
{
    std::lock_guard<std::mutex> lock(finding);
    tsl::BFCAllocator *&found = allocators[static_cast<size_t>(device)];
    if (!found) {
        size_t available = 0, all = size_t{1} << 40;
        tsl::BFCAllocator::Options options;
        options.allow_retry_on_failure = false;
        options.garbage_collection = true;
        (void)adapter::succeeded([&] { return cudaMemGetInfo(&available, &all); });
        found = new tsl::BFCAllocator(std::make_unique<device_memory>(), all, "gmd", options);
    }
    return *found;
}
} // namespace

extern "C" {

void gmd_init(int device_count)
{
    allocators.resize(static_cast<size_t>(device_count));
}

void *gmd_malloc(size_t size, int device, cudaStream_t)
{
    adapter::device_scope scope(device);
    adapter::failure.clear();
    return scope.is_set() ? allocator_of(device).AllocateRaw(256, size) : nullptr;
}

void gmd_free(void *memory, size_t, int device, cudaStream_t stream)
{
    adapter::device_scope scope(device);
    if (scope.is_set() && adapter::is_unused(memory, stream)) {
        allocator_of(device).DeallocateRaw(memory);
    }
}

int gmd_get_stats(int device, gmd_stats *stats)
{
    adapter::device_scope scope(device);
    auto seen = scope.is_set() ? allocator_of(device).GetStats() : std::nullopt;
    if (!seen || !seen->pool_bytes) {
        return -1;
    }
    auto live = static_cast<std::uint64_t>(seen->bytes_in_use);
    adapter::fill_in(stats, live, static_cast<std::uint64_t>(*seen->pool_bytes) - live);
    return 0;
}
}
