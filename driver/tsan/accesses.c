/* accesses.c - plain reads and writes: a yield point before each, which the library's own
 * instructions follow; copies and fills, which are calls instead of those; and what is told to
 * ThreadSanitizer only, where there is nothing to do. */
#include "tsan.h"

#include <string.h>

_Atomic(gmd_tsan_yield) tsan_yield;

EXPORT void gmd_tsan_set_yield(gmd_tsan_yield yield)
{
    atomic_store_explicit(&tsan_yield, yield, memory_order_release);
}

/* --- plain accesses ---------------------------------------------------------------------- */

#define ACCESS(name)                                                                               \
    EXPORT void __tsan_##name(const void *p);                                                      \
    void __tsan_##name(const void *p)                                                              \
    {                                                                                              \
        (void)p;                                                                                   \
        REACH(GMD_TSAN_PLAIN);                                                                     \
    }

/* Each size: aligned, not aligned, of volatile objects; a read that a write of the same object
 * follows (clang); and with the place of the access given (of inlined functions). */
#define ACCESSES_OF(bytes)                                                                         \
    ACCESS(read##bytes)                                                                            \
    ACCESS(write##bytes)                                                                           \
    ACCESS(read_write##bytes)                                                                      \
    ACCESS(unaligned_read##bytes)                                                                  \
    ACCESS(unaligned_write##bytes)                                                                 \
    ACCESS(unaligned_read_write##bytes)                                                            \
    ACCESS(volatile_read##bytes)                                                                   \
    ACCESS(volatile_write##bytes)                                                                  \
    ACCESS(unaligned_volatile_read##bytes)                                                         \
    ACCESS(unaligned_volatile_write##bytes)                                                        \
    ACCESS_AT(read##bytes##_pc)                                                                    \
    ACCESS_AT(write##bytes##_pc)

#define ACCESS_AT(name)                                                                            \
    EXPORT void __tsan_##name(const void *p, const void *place);                                   \
    void __tsan_##name(const void *p, const void *place)                                           \
    {                                                                                              \
        (void)p;                                                                                   \
        tsan_reach(place, GMD_TSAN_PLAIN);                                                         \
    }

ACCESSES_OF(1)
ACCESSES_OF(2)
ACCESSES_OF(4)
ACCESSES_OF(8)
ACCESSES_OF(16)
ACCESS(vptr_read)

EXPORT void __tsan_vptr_update(const void *p, const void *value);
EXPORT void __tsan_read_range(const void *p, size_t size);
EXPORT void __tsan_write_range(const void *p, size_t size);
EXPORT void __tsan_read_range_pc(const void *p, size_t size, const void *place);
EXPORT void __tsan_write_range_pc(const void *p, size_t size, const void *place);

void __tsan_vptr_update(const void *p, const void *value)
{
    (void)p;
    (void)value;
    REACH(GMD_TSAN_PLAIN);
}

void __tsan_read_range(const void *p, size_t size)
{
    (void)p;
    (void)size;
    REACH(GMD_TSAN_PLAIN);
}

void __tsan_write_range(const void *p, size_t size)
{
    (void)p;
    (void)size;
    REACH(GMD_TSAN_PLAIN);
}

void __tsan_read_range_pc(const void *p, size_t size, const void *place)
{
    (void)p;
    (void)size;
    tsan_reach(place, GMD_TSAN_PLAIN);
}

void __tsan_write_range_pc(const void *p, size_t size, const void *place)
{
    (void)p;
    (void)size;
    tsan_reach(place, GMD_TSAN_PLAIN);
}

/* --- copies and fills -------------------------------------------------------------------- */

EXPORT void *__tsan_memset(void *to, int value, size_t size);
EXPORT void *__tsan_memcpy(void *to, const void *from, size_t size);
EXPORT void *__tsan_memmove(void *to, const void *from, size_t size);

void *__tsan_memset(void *to, int value, size_t size)
{
    REACH(GMD_TSAN_PLAIN);
    return memset(to, value, size);
}

void *__tsan_memcpy(void *to, const void *from, size_t size)
{
    REACH(GMD_TSAN_PLAIN);
    return memcpy(to, from, size);
}

void *__tsan_memmove(void *to, const void *from, size_t size)
{
    REACH(GMD_TSAN_PLAIN);
    return memmove(to, from, size);
}

/* --- what is only told ------------------------------------------------------------------- */

#define TOLD(name, ...)                                                                            \
    EXPORT void __tsan_##name(__VA_ARGS__);                                                        \
    void __tsan_##name(__VA_ARGS__) {}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
TOLD(init, void)
TOLD(func_entry, void *caller)
TOLD(func_exit, void)
TOLD(ignore_thread_begin, void)
TOLD(ignore_thread_end, void)
TOLD(acquire, void *object)
TOLD(release, void *object)
TOLD(mutex_create, void *mutex, unsigned flags)
TOLD(mutex_destroy, void *mutex, unsigned flags)
TOLD(mutex_pre_lock, void *mutex, unsigned flags)
TOLD(mutex_post_lock, void *mutex, unsigned flags, int recursion)
TOLD(mutex_post_unlock, void *mutex, unsigned flags)
TOLD(mutex_pre_signal, void *mutex, unsigned flags)
TOLD(mutex_post_signal, void *mutex, unsigned flags)
TOLD(mutex_pre_divert, void *mutex, unsigned flags)
TOLD(mutex_post_divert, void *mutex, unsigned flags)
#pragma GCC diagnostic pop

/* The one of them that answers: how often a recursive mutex was locked. */
EXPORT int __tsan_mutex_pre_unlock(void *mutex, unsigned flags);
int __tsan_mutex_pre_unlock(void *mutex, unsigned flags)
{
    (void)mutex;
    (void)flags;
    return 0;
}
