/* atomics.c - __tsan_atomic*: each operation with the order that was asked for, between two yield
 * points. Where the order is not known as this is compiled, a stronger one is as good: operations
 * that read and write are sequentially consistent. The compilers' numbers of orders are the
 * __ATOMIC_* ones. */
#include "tsan.h"

#include <stdint.h>

/* The names and the types are the compilers'. NOLINTBEGIN(readability-non-const-parameter) */
#define OPERATION(returns, bits, name, ...)                                                        \
    EXPORT returns __tsan_atomic##bits##_##name(__VA_ARGS__);                                      \
    returns __tsan_atomic##bits##_##name(__VA_ARGS__)

#define RETURN_BETWEEN(type, expression)                                                           \
    REACH(GMD_TSAN_BEFORE);                                                                        \
    type result = (expression);                                                                    \
    REACH(GMD_TSAN_AFTER);                                                                         \
    return result

/* --- 8 to 64 bits ------------------------------------------------------------------------ */

#define LOAD(type, p, order)                                                                       \
    ((order) == __ATOMIC_RELAXED   ? __atomic_load_n(p, __ATOMIC_RELAXED)                          \
     : (order) == __ATOMIC_SEQ_CST ? __atomic_load_n(p, __ATOMIC_SEQ_CST)                          \
                                   : __atomic_load_n(p, __ATOMIC_ACQUIRE))

#define STORE(p, value, order)                                                                     \
    ((order) == __ATOMIC_RELAXED   ? __atomic_store_n(p, value, __ATOMIC_RELAXED)                  \
     : (order) == __ATOMIC_RELEASE ? __atomic_store_n(p, value, __ATOMIC_RELEASE)                  \
                                   : __atomic_store_n(p, value, __ATOMIC_SEQ_CST))

#define ACCESSES(bits, type)                                                                       \
    OPERATION(type, bits, load, const volatile type *p, int order)                                 \
    {                                                                                              \
        RETURN_BETWEEN(type, LOAD(type, p, order));                                                \
    }                                                                                              \
    OPERATION(void, bits, store, volatile type *p, type value, int order)                          \
    {                                                                                              \
        REACH(GMD_TSAN_BEFORE);                                                                    \
        STORE(p, value, order);                                                                    \
        REACH(GMD_TSAN_AFTER);                                                                     \
    }

#define EXCHANGE(bits, type, name, builtin)                                                        \
    OPERATION(type, bits, name, volatile type *p, type value, int order)                           \
    {                                                                                              \
        (void)order;                                                                               \
        RETURN_BETWEEN(type, builtin(p, value, __ATOMIC_SEQ_CST));                                 \
    }

/* Without an operation that fails for no reason, weak is strong. */
#define COMPARE(bits, type, name)                                                                  \
    OPERATION(int, bits, name, volatile type *p, type *expected, type value, int order,            \
              int failure_order)                                                                   \
    {                                                                                              \
        (void)order;                                                                               \
        (void)failure_order;                                                                       \
        RETURN_BETWEEN(int, __atomic_compare_exchange_n(p, expected, value, 0, __ATOMIC_SEQ_CST,   \
                                                        __ATOMIC_SEQ_CST));                        \
    }

#define COMPARE_VALUE(bits, type)                                                                  \
    OPERATION(type, bits, compare_exchange_val, volatile type *p, type expected, type value,       \
              int order, int failure_order)                                                        \
    {                                                                                              \
        (void)order;                                                                               \
        (void)failure_order;                                                                       \
        REACH(GMD_TSAN_BEFORE);                                                                    \
        __atomic_compare_exchange_n(p, &expected, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);   \
        REACH(GMD_TSAN_AFTER);                                                                     \
        return expected;                                                                           \
    }

#define OPERATIONS(bits, type)                                                                     \
    ACCESSES(bits, type)                                                                           \
    EXCHANGE(bits, type, exchange, __atomic_exchange_n)                                            \
    EXCHANGE(bits, type, fetch_add, __atomic_fetch_add)                                            \
    EXCHANGE(bits, type, fetch_sub, __atomic_fetch_sub)                                            \
    EXCHANGE(bits, type, fetch_and, __atomic_fetch_and)                                            \
    EXCHANGE(bits, type, fetch_or, __atomic_fetch_or)                                              \
    EXCHANGE(bits, type, fetch_xor, __atomic_fetch_xor)                                            \
    EXCHANGE(bits, type, fetch_nand, __atomic_fetch_nand)                                          \
    COMPARE(bits, type, compare_exchange_strong)                                                   \
    COMPARE(bits, type, compare_exchange_weak)                                                     \
    COMPARE_VALUE(bits, type)

OPERATIONS(8, uint8_t)
OPERATIONS(16, uint16_t)
OPERATIONS(32, uint32_t)
OPERATIONS(64, uint64_t)

/* --- 128 bits ---------------------------------------------------------------------------- */

/* All by compare and swap, which is the one operation that processors have for them; the compilers'
 * other builtins call a library. */
#ifdef __GCC_HAVE_SYNC_COMPARE_AND_SWAP_16

__extension__ typedef unsigned __int128 wide;

static wide swap_wide(volatile wide *p, wide expected, wide value)
{
    return __sync_val_compare_and_swap(p, expected, value);
}

OPERATION(wide, 128, load, const volatile wide *p, int order)
{
    (void)order;
    RETURN_BETWEEN(wide, swap_wide((volatile wide *)p, 0, 0)); /* writes what was there */
}

#define MODIFY_WIDE(name, changed)                                                                 \
    OPERATION(wide, 128, name, volatile wide *p, wide value, int order)                            \
    {                                                                                              \
        (void)order;                                                                               \
        REACH(GMD_TSAN_BEFORE);                                                                    \
        wide now = swap_wide(p, 0, 0);                                                             \
        for (wide seen; (seen = swap_wide(p, now, changed)) != now;) {                             \
            now = seen;                                                                            \
        }                                                                                          \
        REACH(GMD_TSAN_AFTER);                                                                     \
        return now;                                                                                \
    }

MODIFY_WIDE(exchange, value)
MODIFY_WIDE(fetch_add, now + value)
MODIFY_WIDE(fetch_sub, now - value)
MODIFY_WIDE(fetch_and, now &value)
MODIFY_WIDE(fetch_or, now | value)
MODIFY_WIDE(fetch_xor, now ^ value)
MODIFY_WIDE(fetch_nand, ~(now &value))

OPERATION(void, 128, store, volatile wide *p, wide value, int order)
{
    (void)order;
    REACH(GMD_TSAN_BEFORE);
    wide now = swap_wide(p, 0, 0);
    for (wide seen; (seen = swap_wide(p, now, value)) != now;) {
        now = seen;
    }
    REACH(GMD_TSAN_AFTER);
}

OPERATION(wide, 128, compare_exchange_val, volatile wide *p, wide expected, wide value, int order,
          int failure_order)
{
    (void)order;
    (void)failure_order;
    RETURN_BETWEEN(wide, swap_wide(p, expected, value));
}

#define COMPARE_WIDE(name)                                                                         \
    OPERATION(int, 128, name, volatile wide *p, wide *expected, wide value, int order,             \
              int failure_order)                                                                   \
    {                                                                                              \
        (void)order;                                                                               \
        (void)failure_order;                                                                       \
        REACH(GMD_TSAN_BEFORE);                                                                    \
        wide seen = swap_wide(p, *expected, value);                                                \
        int is_swapped = seen == *expected;                                                        \
        *expected = seen;                                                                          \
        REACH(GMD_TSAN_AFTER);                                                                     \
        return is_swapped;                                                                         \
    }

COMPARE_WIDE(compare_exchange_strong)
COMPARE_WIDE(compare_exchange_weak)

#endif

/* --- fences ------------------------------------------------------------------------------ */

EXPORT void __tsan_atomic_thread_fence(int order);
EXPORT void __tsan_atomic_signal_fence(int order);

void __tsan_atomic_thread_fence(int order)
{
    (void)order;
    REACH(GMD_TSAN_BEFORE);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    REACH(GMD_TSAN_AFTER);
}

/* It orders nothing between threads. */
void __tsan_atomic_signal_fence(int order)
{
    (void)order;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* NOLINTEND(readability-non-const-parameter) */
