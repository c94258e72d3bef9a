// torch_books.h - PyTorch's class for pluggable allocators keeps books of its blocks: a block that
// is not in them cannot be freed. What the allocator does without being asked by PyTorch is entered
// here, by PyTorch's own functions.
#ifndef GMD_TORCH_BOOKS_H
#define GMD_TORCH_BOOKS_H

#include <cstddef>

struct CUstream_st;

// Whether this PyTorch has these functions.
bool books_are_known();

// PyTorch's allocator object; the block is live, or is not any more.
void books_add(void *object, void *block, size_t size, int device, CUstream_st *stream);
void books_remove(void *object, void *block);

// PyTorch asks for memory, or frees some, but only its books are meant: the block, else nullptr.
void *booked_block();

// The deleter of PyTorch's tensors.
using tensor_deleter = void (*)(void *block);
tensor_deleter deleter_of(const void *object);

#endif
