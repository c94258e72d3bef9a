// torch_hooks.cpp - libgmd_torch_hooks.so: what torch.cuda.memory.CUDAPluggableAllocator hands over
// and expects in C++ types, before the C functions of libgmd_allocator.so. It needs no header of
// PyTorch: the types that cross are of the standard library, and PyTorch's own are found by their
// symbols at run time (checked with torch 2.11; c10/util/Exception.h,
// torch/csrc/cuda/CUDAPluggableAllocator.h).
//
// PyTorch takes the pointer of a pluggable allocator as it comes: a null one becomes a tensor
// without memory. So a refused request has to throw from here, and what is thrown is
// c10::OutOfMemoryError, since PyTorch itself catches that (cuDNN's benchmark goes on to the next
// plan) and Python sees torch.OutOfMemoryError. Where its symbols are not found it is
// std::runtime_error, a RuntimeError.
#include "gmd_abi.h"
extern "C" {
#include "gmd_cuda.h"
}

#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#define GMD_EXPORT extern "C" __attribute__((visibility("default")))

// As the Itanium C++ ABI has them: an exception of a type that only its symbols tell is thrown.
namespace __cxxabiv1
{
extern "C" void *__cxa_allocate_exception(size_t size) noexcept;
extern "C" void __cxa_throw(void *object, std::type_info *type, void (*destroy)(void *))
    __attribute__((noreturn));
} // namespace __cxxabiv1

namespace
{

using pool_id = std::pair<unsigned long long, unsigned long long>; // c10::cuda::MempoolId_t
using stream_filter = std::function<bool(cudaStream_t)>;

// A symbol of a library that is loaded already; nullptr: no such library, or it has none.
void *loaded_symbol(const char *library, const char *name)
{
    void *handle = dlopen(library, RTLD_NOLOAD | RTLD_LAZY);
    if (!handle) {
        return nullptr;
    }
    void *symbol = dlsym(handle, name);
    dlclose(handle);
    return symbol;
}

// --- out of memory ---------------------------------------------------------------------------

struct source_location { // c10::SourceLocation
    const char *function, *file;
    uint32_t line;
};

constexpr size_t exception_room = 1024; // c10::Error has 128 bytes in torch 2.11

// What is thrown is made of: the constructor of c10::Error, the type and the virtual table of
// c10::OutOfMemoryError, which adds nothing to it.
struct oom_symbols {
    void (*construct)(void *self, source_location where, std::string text);
    std::type_info *type;
    void **table;

    oom_symbols()
        : construct(reinterpret_cast<decltype(construct)>(loaded_symbol(
              "libc10.so",
              "_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_"
              "traitsIcESaIcEEE"))),
          type(static_cast<std::type_info *>(
              loaded_symbol("libc10_cuda.so", "_ZTIN3c1016OutOfMemoryErrorE"))),
          table(
              static_cast<void **>(loaded_symbol("libc10_cuda.so", "_ZTVN3c1016OutOfMemoryErrorE")))
    {
    }

    bool are_found() const
    {
        return construct && type && table;
    }
};

const oom_symbols &symbols()
{
    static const oom_symbols found;
    return found;
}

// The destructor is virtual, and std::exception is the first base.
void destroy_exception(void *object)
{
    static_cast<std::exception *>(object)->~exception();
}

[[noreturn]] void throw_out_of_memory(const std::string &text)
{
    const oom_symbols &s = symbols();
    if (!s.are_found()) {
        throw std::runtime_error(text);
    }
    void *object = __cxxabiv1::__cxa_allocate_exception(exception_room);
    s.construct(object, source_location{__func__, __FILE__, __LINE__}, text);
    *static_cast<void ***>(object) = s.table + 2; // behind the offset and the type
    __cxxabiv1::__cxa_throw(object, s.type, destroy_exception);
}

std::string size_text(uint64_t bytes)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB"};
    double value = static_cast<double>(bytes);
    size_t unit = 0;
    while (value >= 1024 && unit < 3) {
        value /= 1024;
        unit++;
    }
    char text[64];
    std::snprintf(text, sizeof text, unit ? "%.2f %s" : "%.0f %s", value, units[unit]);
    return text;
}

// --- snapshots when it happens ---------------------------------------------------------------

using dump_fn = int (*)(const char *path, char *message, size_t message_size);

struct {
    std::mutex lock;
    std::string prefix; // empty: off
    unsigned limit = 0, count = 0;
} dumps;

dump_fn dump_function()
{
    return reinterpret_cast<dump_fn>(loaded_symbol("libgmd_allocator.so", "gmd_dump_snapshot"));
}

// What is to be said of it; empty: off, or there were enough.
std::string dump_after_refusal()
{
    const std::lock_guard<std::mutex> hold(dumps.lock);
    dump_fn dump = dumps.prefix.empty() || dumps.count == dumps.limit ? nullptr : dump_function();
    if (!dump) {
        return "";
    }
    dumps.count++;
    std::string path = dumps.prefix + "-" + std::to_string(getpid()) + "-" +
                       std::to_string(dumps.count) + ".pickle";
    char message[1000] = "";
    if (dump(path.c_str(), message, sizeof message) != 0) {
        return std::string(" No snapshot was written: ") + message;
    }
    return " The snapshot of this moment is " + path + ".";
}

std::string refusal_text(size_t size, int device)
{
    std::string text = "CUDA out of memory. Tried to allocate " + size_text(size) + ". GPU " +
                       std::to_string(device);
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    if (cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess) {
        text += " has " + size_text(free_bytes) + " free of " + size_text(total_bytes);
    } else {
        cudaGetLastError(); // the question leaves no error behind
    }
    gmd_stats stats = {};
    stats.struct_size = sizeof stats;
    if (gmd_get_stats(device, &stats) == 0) {
        text += "; gmd_allocator holds " + size_text(stats.reserved_bytes) + ", of which " +
                size_text(stats.allocated_bytes) + " are in use";
    }
    return text + "." + dump_after_refusal();
}

// --- pools -----------------------------------------------------------------------------------

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

// --- questions -------------------------------------------------------------------------------

void note_largest(void *context, const gmd_block_info *block)
{
    auto *largest = static_cast<size_t *>(context);
    if (block->state == 0 && block->size > *largest) {
        *largest = block->size;
    }
}

// CUDAPluggableAllocator::cacheInfo refuses to answer in torch 2.11, and cuDNN's benchmark asks it
// how large a workspace may be. The answer is that of PyTorch's own allocator: the largest free
// block, and, where the caller brought no figure, at least the device's free memory.
void cache_info(void *self, int8_t device, size_t *largest)
{
    (void)self;
    size_t total = 0;
    if (*largest == 0 && cudaMemGetInfo(largest, &total) != cudaSuccess) {
        cudaGetLastError();
        *largest = 0;
    }
    gmd_walk(device, note_largest, largest);
}

struct base_search {
    uint64_t address, base, size;
};

void note_segment(void *context, const gmd_block_info *block)
{
    auto *search = static_cast<base_search *>(context);
    if (search->address - block->segment_address < block->segment_size) {
        search->base = block->segment_address;
        search->size = block->segment_size;
    }
}

int fail(char *message, size_t message_size, const char *text)
{
    std::snprintf(message, message_size, "%s", text);
    return -1;
}

constexpr char plain_table[] = "_ZTVN5torch4cuda22CUDAPluggableAllocator22CUDAPluggableAllocatorE";
constexpr char plain_cache_info[] =
    "_ZN5torch4cuda22CUDAPluggableAllocator22CUDAPluggableAllocator9cacheInfoEaPm";
constexpr char current_allocator[] = "_ZN3c104cuda20CUDACachingAllocator9allocatorE";

// The virtual table with its offset and type in front; `count`: entries. nullptr: not found.
void **table_of_pluggable(size_t *count)
{
    auto **table = static_cast<void **>(loaded_symbol("libtorch_cuda.so", plain_table));
    Dl_info where;
    const ElfW(Sym) *entry = nullptr;
    if (!table ||
        !dladdr1(table, &where, const_cast<void **>(reinterpret_cast<const void **>(&entry)),
                 RTLD_DL_SYMENT) ||
        !entry) {
        return nullptr;
    }
    *count = entry->st_size / sizeof *table;
    return table;
}

} // namespace

// --- what is handed to PyTorch -----------------------------------------------------------------

GMD_EXPORT void *gmd_torch_malloc(size_t size, int device, cudaStream_t stream)
{
    if (size == 0) {
        return nullptr; // a tensor without elements, as with PyTorch's own allocator
    }
    void *block = gmd_malloc(size, device, stream);
    if (!block) {
        throw_out_of_memory(refusal_text(size, device));
    }
    return block;
}

GMD_EXPORT void gmd_torch_begin_pool(int device, pool_id id, stream_filter accepts)
{
    const uint64_t name[2] = {id.first, id.second};
    auto copy = accepts ? std::make_unique<stream_filter>(std::move(accepts)) : nullptr;
    if (gmd_begin_pool(device, name, copy ? ask_filter : nullptr, copy.get()) != 0) {
        refuse("requests go already, or cannot go, to", device, id);
    }
    copy.release(); // until gmd_torch_end_pool
}

GMD_EXPORT void gmd_torch_end_pool(int device, pool_id id)
{
    const uint64_t name[2] = {id.first, id.second};
    void *copy = nullptr;
    if (gmd_end_pool(device, name, &copy) != 0) {
        refuse("no requests go to", device, id);
    }
    delete static_cast<stream_filter *>(copy);
}

GMD_EXPORT void gmd_torch_release_pool(int device, pool_id id)
{
    const uint64_t name[2] = {id.first, id.second};
    if (gmd_release_pool(device, name) != 0) {
        refuse("nobody holds", device, id);
    }
}

GMD_EXPORT void *gmd_torch_base_allocation(void *ptr, size_t *size)
{
    base_search search = {reinterpret_cast<uintptr_t>(ptr), 0, 0};
    for (int device = 0; search.size == 0 && gmd_walk(device, note_segment, &search) == 0;
         device++) {
    }
    if (search.size == 0) {
        throw std::runtime_error("gmd_allocator: the pointer lies in none of its segments");
    }
    if (size) {
        *size = search.size;
    }
    return reinterpret_cast<void *>(search.base);
}

// --- what the helper calls -----------------------------------------------------------------------

// From now on the first `limit` refused requests write PREFIX-PID-N.pickle; an empty prefix: none.
// 0: accepted; else a message.
GMD_EXPORT int gmd_torch_dump_on_oom(const char *prefix, unsigned limit, char *message,
                                     size_t message_size)
{
    if (*prefix && !dump_function()) {
        return fail(message, message_size, "this libgmd_allocator.so writes no snapshots");
    }
    const std::lock_guard<std::mutex> hold(dumps.lock);
    dumps.prefix = prefix;
    dumps.limit = limit;
    dumps.count = 0;
    return 0;
}

// Whether refused requests will be torch.OutOfMemoryError.
GMD_EXPORT int gmd_torch_raises_oom(void)
{
    return symbols().are_found();
}

// Lets PyTorch's current allocator, which must be a CUDAPluggableAllocator, answer cacheInfo: the
// object gets a copy of its class's virtual table with that one entry changed. Every step is
// checked against the symbols, so that another version of PyTorch is refused, not broken. 0: done;
// else a message.
GMD_EXPORT int gmd_torch_answer_cache_info(char *message, size_t message_size)
{
    size_t count = 0;
    void **table = table_of_pluggable(&count);
    void *refusing = loaded_symbol("libtorch_cuda.so", plain_cache_info);
    auto *current =
        static_cast<std::atomic<void ***> *>(loaded_symbol("libc10_cuda.so", current_allocator));
    if (!table || !refusing || !current) {
        return fail(message, message_size,
                    "PyTorch's pluggable allocator is not as it was in 2.11");
    }
    void ***object = current->load();
    if (!object || *object != table + 2) {
        return fail(message, message_size,
                    "PyTorch's current allocator is not a plain pluggable one");
    }
    // Never destroyed: PyTorch destroys its allocator, through the table, after what is made here.
    static auto &changed = *new std::vector<void *>;
    changed.assign(table, table + count);
    size_t found = 0;
    for (void *&entry : changed) {
        if (entry == refusing) {
            entry = reinterpret_cast<void *>(cache_info);
            found++;
        }
    }
    if (found != 1) {
        return fail(message, message_size,
                    "PyTorch's pluggable allocator has no cacheInfo to replace");
    }
    *object = changed.data() + 2;
    return 0;
}
