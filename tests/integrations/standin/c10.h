// c10.h - of PyTorch's types only what the hooks and their test touch, with PyTorch's names, so
// that the stand-in libraries export the symbols of the real ones (and the test runs with those,
// too).
#ifndef GMD_STANDIN_C10_H
#define GMD_STANDIN_C10_H

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>

#define STANDIN_API __attribute__((visibility("default")))

namespace c10
{

struct SourceLocation {
    const char *function, *file;
    uint32_t line;
};

class STANDIN_API Error : public std::exception
{
  public:
    Error(SourceLocation where, std::string text);
    const char *what() const noexcept override;

  private:
    std::string text_;
};

class STANDIN_API OutOfMemoryError : public Error
{
    using Error::Error;
};

namespace cuda::CUDACachingAllocator
{
class CUDAAllocator;
STANDIN_API extern std::atomic<CUDAAllocator *> allocator;
} // namespace cuda::CUDACachingAllocator

} // namespace c10

#endif
