#include "c10.h"

#include <utility>

namespace c10
{

Error::Error(SourceLocation where, std::string text) : text_(std::move(text))
{
    text_ += " (";
    text_ += where.function;
    text_ += ")";
}

const char *Error::what() const noexcept
{
    return text_.c_str();
}

told last_told;
bool is_profiling;

bool impl::GPUTrace::haveState = false;

bool memoryProfilingEnabled()
{
    return is_profiling;
}

void reportMemoryUsageToProfiler(void *ptr, int64_t bytes, size_t allocated, size_t reserved,
                                 Device device)
{
    last_told = {ptr, bytes, allocated, reserved, last_told.refusals, device};
}

void reportOutOfMemoryToProfiler(int64_t bytes, size_t allocated, size_t reserved, Device device)
{
    last_told = {nullptr, bytes, allocated, reserved, last_told.refusals + 1, device};
}

} // namespace c10
