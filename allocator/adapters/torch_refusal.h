// torch_refusal.h - a request was refused: the snapshot of that moment, what is said of it, and the
// exception.
#ifndef GMD_TORCH_REFUSAL_H
#define GMD_TORCH_REFUSAL_H

#include <cstddef>

[[noreturn]] void refuse_request(size_t size, int device);

#endif
