// torch_books.cpp - see torch_books.h; torch/csrc/cuda/CUDAPluggableAllocator.cpp, torch 2.11:
// malloc enters what the allocator gave, raw_delete takes it out before the allocator is told.
#include "torch_books.h"

#include "torch_symbols.h"

#include "gmd_abi.h"

namespace
{

struct functions {
    void *(*malloc)(void *object, size_t size, int8_t device, cudaStream_t stream);
    void (*raw_delete)(void *object, void *block);
    tensor_deleter (*raw_deleter)(const void *object);

    functions()
        : malloc(reinterpret_cast<decltype(malloc)>(
              loaded_symbol("libtorch_cuda.so", OF_PLUGGABLE("6mallocEmaP11CUstream_st")))),
          raw_delete(reinterpret_cast<decltype(raw_delete)>(
              loaded_symbol("libtorch_cuda.so", OF_PLUGGABLE("10raw_deleteEPv")))),
          raw_deleter(reinterpret_cast<decltype(raw_deleter)>(
              loaded_symbol("libtorch_cuda.so", CONST_OF_PLUGGABLE("11raw_deleterEv"))))
    {
    }
};

const functions &found()
{
    static const functions all;
    return all;
}

thread_local void *booked;

// While it lives, PyTorch's question is about its books only.
struct only_books {
    explicit only_books(void *block)
    {
        booked = block;
    }
    ~only_books()
    {
        booked = nullptr;
    }
};

} // namespace

bool books_are_known()
{
    return found().malloc && found().raw_delete && found().raw_deleter;
}

void books_add(void *object, void *block, size_t size, int device, cudaStream_t stream)
{
    const only_books meant(block);
    found().malloc(object, size, static_cast<int8_t>(device), stream);
}

void books_remove(void *object, void *block)
{
    const only_books meant(block);
    found().raw_delete(object, block);
}

void *booked_block()
{
    return booked;
}

tensor_deleter deleter_of(const void *object)
{
    return found().raw_deleter(object);
}
