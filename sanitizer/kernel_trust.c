/* What is known of kernels' parameters, beyond their sizes. Measured with PyTorch 2.11 and
 * CUDA 13.0 (docs/sanitizer-order.md), and read in PyTorch's sources where these are named. */
#include "kernel_trust.h"

#include <string.h>

typedef struct trusted_library {
    const char *prefix; /* of the file's name */
    kernel_trust trust;
} trusted_library;

/* NVIDIA's libraries. cuBLAS fills its structures: of all addresses in its kernels' parameters none
 * was ever that of a freed block. Those that are named without trust leave even whole pointers
 * uninitialised, or were not measured. */
static const trusted_library libraries[] = {
    {"libcublas", {.in_pointers = true, .in_structures = true}},
    {"libcusolver", {.in_pointers = false}},
    {"libcusparse", {.in_pointers = false}},
    {"libcufft", {.in_pointers = false}},
    {"libnccl", {.in_pointers = false}},
    {"libnvshmem", {.in_pointers = false}},
    {"libnpp", {.in_pointers = false}},
};

typedef struct known_layout {
    const char *part, *other_part; /* of the mangled name */
    uint32_t tail_words;
} known_layout;

/* CuPy's own kernels get arrays as structures that begin with the address (CArray: data, size,
 * shape, strides), all of which CuPy fills; what else they get begins with a number of elements. */
static const char cupy[] = "cupy_";

#define WORD_FROM_END(n) (UINT32_C(1) << ((n)-1))

/* PyTorch's reductions begin with OffsetCalculators, whose arrays are filled as far as there are
 * dimensions; behind them come (aten/src/ATen/native/cuda/Reduce.cuh, ReduceOp) src, dst[2], of
 * which the second only if there are two outputs, acc_buf, cta_buf, semaphores, base_idx, three
 * flags. */
static const known_layout layouts[] = {
    {"N2at6native13reduce_kernel", "ReduceOp",
     WORD_FROM_END(8) | WORD_FROM_END(7) | WORD_FROM_END(5) | WORD_FROM_END(4) | WORD_FROM_END(3)},
};

kernel_trust kernel_trust_of(const char *library, const char *name)
{
    kernel_trust trust = {.in_pointers = true};
    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++) {
        if (strncmp(library, libraries[i].prefix, strlen(libraries[i].prefix)) == 0) {
            return libraries[i].trust;
        }
    }
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        if (strstr(name, layouts[i].part) && strstr(name, layouts[i].other_part)) {
            trust.tail_words = layouts[i].tail_words;
        }
    }
    trust.in_first_words = strncmp(name, cupy, strlen(cupy)) == 0;
    return trust;
}
