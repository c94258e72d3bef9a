/* libgmd_tsan.so, what libraries compiled with -fsanitize=thread call: each operation does what its
 * name says between two yield points, and such libraries are loaded however they were linked. */
#include "driver_test.h"
#include "gmd_tsan.h"

#include <stdatomic.h>
#include <stdint.h>

static unsigned before, after, plain;
static const void *latest;

static void count(const void *place, gmd_tsan_access access)
{
    latest = place;
    before += access == GMD_TSAN_BEFORE;
    after += access == GMD_TSAN_AFTER;
    plain += access == GMD_TSAN_PLAIN;
}

static void begin_counting(void)
{
    before = after = plain = 0;
    gmd_tsan_set_yield(count);
}

/* Twenty-one is 10101 in bits, and three 00011. */
#define OPERATIONS_WORK(bits, type)                                                                \
    type __tsan_atomic##bits##_load(const volatile type *, int);                                   \
    void __tsan_atomic##bits##_store(volatile type *, type, int);                                  \
    type __tsan_atomic##bits##_exchange(volatile type *, type, int);                               \
    type __tsan_atomic##bits##_fetch_add(volatile type *, type, int);                              \
    type __tsan_atomic##bits##_fetch_sub(volatile type *, type, int);                              \
    type __tsan_atomic##bits##_fetch_and(volatile type *, type, int);                              \
    type __tsan_atomic##bits##_fetch_or(volatile type *, type, int);                               \
    type __tsan_atomic##bits##_fetch_xor(volatile type *, type, int);                              \
    type __tsan_atomic##bits##_fetch_nand(volatile type *, type, int);                             \
    int __tsan_atomic##bits##_compare_exchange_strong(volatile type *, type *, type, int, int);    \
    int __tsan_atomic##bits##_compare_exchange_weak(volatile type *, type *, type, int, int);      \
    type __tsan_atomic##bits##_compare_exchange_val(volatile type *, type, type, int, int);        \
    static void operations_of_##bits(void)                                                         \
    {                                                                                              \
        _Alignas(16) type x = 0, expected = 21;                                                    \
        const int order = __ATOMIC_SEQ_CST;                                                        \
        __tsan_atomic##bits##_store(&x, 21, __ATOMIC_RELEASE);                                     \
        assert_true(__tsan_atomic##bits##_load(&x, __ATOMIC_ACQUIRE) == 21);                       \
        assert_true(__tsan_atomic##bits##_fetch_add(&x, 3, order) == 21 && x == 24);               \
        assert_true(__tsan_atomic##bits##_fetch_sub(&x, 3, order) == 24 && x == 21);               \
        assert_true(__tsan_atomic##bits##_fetch_or(&x, 3, order) == 21 && x == 23);                \
        assert_true(__tsan_atomic##bits##_fetch_xor(&x, 2, order) == 23 && x == 21);               \
        assert_true(__tsan_atomic##bits##_fetch_and(&x, 3, order) == 21 && x == 1);                \
        assert_true(__tsan_atomic##bits##_fetch_nand(&x, 1, order) == 1 && x == (type)~1);         \
        assert_true(__tsan_atomic##bits##_exchange(&x, 21, __ATOMIC_RELAXED) == (type)~1);         \
        assert_true(__tsan_atomic##bits##_compare_exchange_strong(&x, &expected, 3, order, 0));    \
        assert_false(__tsan_atomic##bits##_compare_exchange_weak(&x, &expected, 5, order, 0));     \
        assert_true(expected == 3 && x == 3);                                                      \
        assert_true(__tsan_atomic##bits##_compare_exchange_weak(&x, &expected, 5, order, 0));      \
        assert_true(__tsan_atomic##bits##_compare_exchange_val(&x, 4, 6, order, 0) == 5);          \
        assert_true(__tsan_atomic##bits##_compare_exchange_val(&x, 5, 6, order, 0) == 5);          \
        assert_true(x == 6);                                                                       \
    }

/* NOLINTBEGIN(readability-named-parameter) */
OPERATIONS_WORK(8, uint8_t)
OPERATIONS_WORK(16, uint16_t)
OPERATIONS_WORK(32, uint32_t)
OPERATIONS_WORK(64, uint64_t)
#ifdef __GCC_HAVE_SYNC_COMPARE_AND_SWAP_16
__extension__ typedef unsigned __int128 wide;
OPERATIONS_WORK(128, wide)
#endif
void __tsan_read8(const void *);
void __tsan_write_range(const void *, size_t);
void *__tsan_memcpy(void *, const void *, size_t);
void __tsan_func_entry(void *);
/* NOLINTEND(readability-named-parameter) */

TEST(atomic_operations_of_each_size_do_what_their_names_say)
{
    operations_of_8();
    operations_of_16();
    operations_of_32();
    operations_of_64();
#ifdef __GCC_HAVE_SYNC_COMPARE_AND_SWAP_16
    operations_of_128();
#endif
}

TEST(a_yield_point_is_before_and_after_each_atomic_operation)
{
    begin_counting();
    operations_of_32();
    gmd_tsan_set_yield(NULL);
    assert_int_equal(before, 14);
    assert_int_equal(after, 14);
    assert_int_equal(plain, 0);
}

TEST(a_yield_point_is_before_each_plain_access)
{
    char from[4] = "abc", to[4] = "";
    begin_counting();
    __tsan_func_entry(NULL);
    __tsan_read8(from);
    __tsan_write_range(from, sizeof from);
    __tsan_memcpy(to, from, sizeof from);
    gmd_tsan_set_yield(NULL);
    assert_string_equal(to, "abc");
    assert_int_equal(plain, 3);
    assert_int_equal(before + after, 0);
    assert_non_null(latest);
}

TEST(without_a_function_to_call_nothing_is_called)
{
    begin_counting();
    gmd_tsan_set_yield(NULL);
    operations_of_32();
    assert_int_equal(before + after + plain, 0);
}

/* --- loading ----------------------------------------------------------------------------- */

static const char lines[] = "alloc a 1000 s1\nfree a\n";

TEST(a_library_that_names_no_library_of_thread_sanitizer_is_loaded)
{
    expect_clean(run_lines(GMD_TEST_COMPILED, lines));
}

TEST(a_library_that_gcc_linked_with_thread_sanitizer_is_loaded)
{
#ifdef GMD_TEST_LINKED
    expect_clean(run_lines(GMD_TEST_LINKED, lines));
#else
    skip(); /* clang links none to a shared library */
#endif
}

TEST(a_library_whose_own_library_is_compiled_so_is_loaded)
{
    expect_clean(run_lines(GMD_TEST_DEPENDING, lines));
}

TEST(a_function_that_gmd_does_not_have_is_named)
{
    gmd_outcome *o = run_lines(GMD_TEST_ASKING, lines);
    assert_int_equal(o->verdict, GMD_ERROR);
    assert_non_null(strstr(o->error, "__tsan_create_fiber"));
    assert_non_null(strstr(o->error, "gmd has what compilers call for -fsanitize=thread"));
    free(o);
}
