// torch_stacks.cpp - a thread's stack as torch has it with stacks="all": the machine code's frames
// from the request up to Python's interpreter, then Python's frames.
#include "torch_symbols.h"

#include "gmd_abi.h"

#include <algorithm>
#include <cinttypes>

#include <execinfo.h>
#include <link.h>

namespace
{

struct range { // of addresses; empty: end 0
    uintptr_t start, end;

    bool has(const void *address) const
    {
        const auto a = reinterpret_cast<uintptr_t>(address);
        return start <= a && a < end;
    }
};

struct object_search {
    const void *address;
    range found;
};

int look_at_object(dl_phdr_info *info, size_t, void *context)
{
    auto *search = static_cast<object_search *>(context);
    range whole = {UINTPTR_MAX, 0};
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) &part = info->dlpi_phdr[i];
        if (part.p_type == PT_LOAD) {
            whole.start = std::min(whole.start, info->dlpi_addr + part.p_vaddr);
            whole.end = std::max(whole.end, info->dlpi_addr + part.p_vaddr + part.p_memsz);
        }
    }
    if (whole.has(search->address)) {
        search->found = whole;
        return 1;
    }
    return 0;
}

// The program or library that the address is in.
range object_of(const void *address)
{
    object_search search = {address, {0, 0}};
    if (address) {
        dl_iterate_phdr(look_at_object, &search);
    }
    return search.found;
}

struct places {
    range hooks = object_of(reinterpret_cast<const void *>(object_of));
    range allocator = object_of(reinterpret_cast<const void *>(gmd_malloc));
    range interpreter = object_of(dlsym(RTLD_DEFAULT, "PyEval_EvalCode"));

    bool are_ours(const void *address) const
    {
        return hooks.has(address) || allocator.has(address);
    }
};

constexpr int most_frames = 128;

} // namespace

// A gmd_stack_source whose context is the one of Python's frames.
TORCH_EXPORT size_t gmd_torch_stack(void *python, char *text, size_t size)
{
    static const places known;
    void *frames[most_frames];
    const int count = backtrace(frames, most_frames);
    int at = 0;
    while (at < count && known.are_ours(frames[at])) {
        at++;
    }
    size_t length = 0;
    for (; at < count && !known.interpreter.has(frames[at]); at++) {
        const int added = std::snprintf(text + length, size - length, "@%" PRIxPTR "\n",
                                        reinterpret_cast<uintptr_t>(frames[at]));
        if (added < 0 || static_cast<size_t>(added) >= size - length) {
            return length;
        }
        length += static_cast<size_t>(added);
    }
    auto *source = reinterpret_cast<gmd_stack_source *>(python);
    return length + (source ? source(nullptr, text + length, size - length) : 0);
}
