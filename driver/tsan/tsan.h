/* tsan.h - what the files of libgmd_tsan.so share. */
#ifndef GMD_TSAN_INNER_H
#define GMD_TSAN_INNER_H

#include "gmd_tsan.h"

#include <stdatomic.h>
#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

extern _Atomic(gmd_tsan_yield) tsan_yield;

static inline void tsan_reach(const void *place, gmd_tsan_access access)
{
    gmd_tsan_yield yield = atomic_load_explicit(&tsan_yield, memory_order_acquire);
    if (__builtin_expect(yield != NULL, 0)) {
        yield(place, access);
    }
}

/* In the function that the library calls, not in one that this calls. */
#define REACH(access) tsan_reach(__builtin_return_address(0), access)

#endif
