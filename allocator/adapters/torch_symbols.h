// torch_symbols.h - PyTorch's own functions and types, found by their symbols in the libraries that
// are loaded: libgmd_torch_hooks.so is built without PyTorch.
#ifndef GMD_TORCH_SYMBOLS_H
#define GMD_TORCH_SYMBOLS_H

#include <cstddef>
#include <cstdint>
#include <cstdio>

#include <dlfcn.h>

#define TORCH_EXPORT extern "C" __attribute__((visibility("default")))

// Symbols of PyTorch's class for pluggable allocators.
#define OF_PLUGGABLE(rest) "_ZN5torch4cuda22CUDAPluggableAllocator22CUDAPluggableAllocator" rest
#define OF_PLUGGABLE_TABLE "_ZTVN5torch4cuda22CUDAPluggableAllocator22CUDAPluggableAllocatorE"
#define CONST_OF_PLUGGABLE(rest)                                                                   \
    "_ZNK5torch4cuda22CUDAPluggableAllocator22CUDAPluggableAllocator" rest

// A symbol of a library that is loaded already; nullptr: no such library, or it has none.
inline void *loaded_symbol(const char *library, const char *name)
{
    void *handle = dlopen(library, RTLD_NOLOAD | RTLD_LAZY);
    if (!handle) {
        return nullptr;
    }
    void *symbol = dlsym(handle, name);
    dlclose(handle);
    return symbol;
}

// For functions that tell a caller in C why not.
inline int fail(char *message, size_t message_size, const char *text)
{
    std::snprintf(message, message_size, "%s", text);
    return -1;
}

#endif
