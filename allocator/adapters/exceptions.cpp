/* exceptions.cpp - the part of gmd that is C++, for allocators that are: gmd_exceptions.h
 * (driver/subject) says what it is for, and loads it into the process of the allocator under test.
 * That process has one allocator, and so this has one of each. */
#include <cstddef>
#include <cstdlib>
#include <cxxabi.h>
#include <exception>
#include <new>
#include <string>
#include <sys/uio.h>
#include <typeinfo>
#include <unistd.h>

#define EXPORT extern "C" __attribute__((visibility("default")))

typedef struct CUstream_st *cudaStream_t;
typedef void *malloc_fn(std::size_t size, int device, cudaStream_t stream);
typedef void exception_fn(void *context, const char *type, const char *what, int is_bad_alloc);

namespace
{

exception_fn *tell;
void *tell_context;
malloc_fn *throwing_malloc;

/* What a thrown pointer points to may be gone: the system reads it, which does not die of it. */
void read_text(const char *thrown, char *text, std::size_t size)
{
    std::size_t length = 0;
    for (; length + 1 < size; length++) {
        iovec here = {text + length, 1}, there = {const_cast<char *>(thrown) + length, 1};
        if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) != 1 || !text[length]) {
            break;
        }
    }
    text[length] = '\0';
}

void tell_current(const std::type_info &type)
{
    char text[200];
    int status = 0;
    char *demangled = abi::__cxa_demangle(type.name(), nullptr, nullptr, &status);
    const char *name = demangled ? demangled : type.name();
    try {
        throw;
    } catch (const std::bad_alloc &exception) {
        tell(tell_context, name, exception.what(), 1);
    } catch (const std::exception &exception) {
        tell(tell_context, name, exception.what(), 0);
    } catch (const std::string &thrown) {
        tell(tell_context, "std::string", thrown.c_str(), 0); /* its name is much longer */
    } catch (const char *thrown) {
        read_text(thrown, text, sizeof text);
        tell(tell_context, name, text, 0);
    } catch (...) {
        tell(tell_context, name, "", 0);
    }
    std::free(demangled);
}

[[noreturn]] void end_process()
{
    static thread_local bool is_ending;
    const std::type_info *type = abi::__cxa_current_exception_type();
    if (type && tell && !is_ending) {
        is_ending = true; /* what() may throw, too */
        tell_current(*type);
    }
    std::abort();
}

void *catching_malloc(std::size_t size, int device, cudaStream_t stream)
{
    try {
        return throwing_malloc(size, device, stream);
    } catch (const std::bad_alloc &) {
        return nullptr;
    }
}

} // namespace

EXPORT void gmd_exceptions_watch_process(exception_fn *function, void *context);
EXPORT malloc_fn *gmd_exceptions_catching_malloc(malloc_fn *function);

void gmd_exceptions_watch_process(exception_fn *function, void *context)
{
    tell = function;
    tell_context = context;
    std::set_terminate(end_process);
}

malloc_fn *gmd_exceptions_catching_malloc(malloc_fn *function)
{
    throwing_malloc = function;
    return catching_malloc;
}
