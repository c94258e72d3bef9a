// torch_refusal.cpp - torch.OutOfMemoryError, thrown without PyTorch's headers
// (c10/util/Exception.h, checked with torch 2.11).
//
// PyTorch takes the pointer of a pluggable allocator as it comes: a null one becomes a tensor
// without memory. So a refused request has to throw from here, and what is thrown is
// c10::OutOfMemoryError, since PyTorch itself catches that (cuDNN's benchmark goes on to the next
// plan) and Python sees torch.OutOfMemoryError. Where its symbols are not found it is
// std::runtime_error, a RuntimeError.
#include "torch_refusal.h"

#include "torch_symbols.h"

#include "gmd_abi.h"
extern "C" {
#include "gmd_cuda.h"
}

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>
#include <typeinfo>

#include <unistd.h>

// As the Itanium C++ ABI has them: an exception of a type that only its symbols tell is thrown.
namespace __cxxabiv1
{
extern "C" void *__cxa_allocate_exception(size_t size) noexcept;
extern "C" void __cxa_throw(void *object, std::type_info *type, void (*destroy)(void *))
    __attribute__((noreturn));
} // namespace __cxxabiv1

namespace
{

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

// "-rank3" where a launcher of several processes says so.
std::string rank_of_process()
{
    const char *rank = std::getenv("RANK");
    return rank && *rank && std::strspn(rank, "0123456789") == std::strlen(rank)
               ? std::string("-rank") + rank
               : "";
}

std::string time_text()
{
    char text[32] = "";
    std::time_t now = std::time(nullptr);
    std::tm parts = {};
    std::strftime(text, sizeof text, "%Y%m%dT%H%M%S", localtime_r(&now, &parts));
    return text;
}

struct dumped {
    std::string path; // empty: off, there were enough, or it failed
    std::string text; // what is to be said of it
};

dumped dump_after_refusal()
{
    const std::lock_guard<std::mutex> hold(dumps.lock);
    dump_fn dump = dumps.prefix.empty() || dumps.count == dumps.limit ? nullptr : dump_function();
    if (!dump) {
        return {};
    }
    dumps.count++;
    std::string path = dumps.prefix + rank_of_process() + "-" + time_text() + "-" +
                       std::to_string(getpid()) + "-" + std::to_string(dumps.count) + ".pickle";
    char message[1000] = "";
    if (dump(path.c_str(), message, sizeof message) != 0) {
        return {"", std::string(" No snapshot was written: ") + message};
    }
    return {path, " The snapshot of this moment is " + path + "."};
}

// --- what is said of it ------------------------------------------------------------------------

struct moment {
    int device;
    size_t size, free_bytes, total_bytes;
    gmd_stats stats;
};

// Whoever is told of a refusal: in Python, observers and the diagnosis. What it writes to `text`
// is added to the message. `asked`: of the device. With the snapshot's path, or "".
using explain_fn = size_t(int device, uint64_t asked, uint64_t total, uint64_t free_bytes,
                          const char *path, char *text, size_t room);
std::atomic<explain_fn *> explain;

moment look(size_t size, int device)
{
    moment m = {device, size, 0, 0, {}};
    if (cudaMemGetInfo(&m.free_bytes, &m.total_bytes) != cudaSuccess) {
        cudaGetLastError(); // the question leaves no error behind
        m.total_bytes = 0;
    }
    m.stats.struct_size = sizeof m.stats;
    if (gmd_get_stats(device, &m.stats) != 0) {
        m.stats = {};
    }
    return m;
}

std::string explained(const moment &m, const std::string &path)
{
    explain_fn *tell = explain.load();
    if (!tell) {
        return "";
    }
    std::string text(4096, '\0');
    text.resize(tell(m.device, gmd_device_request(m.size), m.total_bytes, m.free_bytes,
                     path.c_str(), text.data(), text.size()));
    return text;
}

// From here on PyTorch says no more, for its arithmetic would not hold: c10's allocate.
constexpr size_t one_exabyte = size_t{1} << 60;

// Programs look for "CUDA out of memory. Tried to allocate" and "has a total capacity of".
std::string refusal_text(size_t size, int device)
{
    const moment m = look(size, device);
    std::string text = "CUDA out of memory. Tried to allocate " + size_text(size) + ". GPU " +
                       std::to_string(device);
    text += m.total_bytes ? " has a total capacity of " + size_text(m.total_bytes) + " of which " +
                                size_text(m.free_bytes) + " is free."
                          : " does not tell its capacity.";
    text += " gmd_allocator holds " + size_text(m.stats.reserved_bytes) + ", of which " +
            size_text(m.stats.allocated_bytes) + " are in use.";
    const dumped d = dump_after_refusal();
    return text + d.text + explained(m, d.path);
}

} // namespace

void refuse_request(size_t size, int device)
{
    if (size >= one_exabyte) {
        throw_out_of_memory("CUDA out of memory. Tried to allocate more than 1EB memory.");
    }
    throw_out_of_memory(refusal_text(size, device));
}

// --- what the helper calls -----------------------------------------------------------------------

// From now on the first `limit` refused requests write PREFIX-TIME-PID-N.pickle; an empty prefix:
// none. 0: accepted; else a message.
TORCH_EXPORT int gmd_torch_dump_on_oom(const char *prefix, unsigned limit, char *message,
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
TORCH_EXPORT int gmd_torch_raises_oom(void)
{
    return symbols().are_found();
}

// Null: nobody is told of refusals.
TORCH_EXPORT void gmd_torch_explain_with(explain_fn *tell)
{
    explain.store(tell);
}
