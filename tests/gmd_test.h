/* gmd_test.h - tests that register themselves, for every cmocka program of this tree.
 *
 *     TEST(an_empty_pool_holds_nothing)
 *     {
 *         assert_int_equal(...);
 *     }
 *
 * A program's tests run in the order in which they stand in the file; its main function is that of
 * gmd_test_main.c, which gmd_add_test() links:
 *
 *     test_pool                    runs all tests
 *     test_pool NAME ...           runs those of that name; * and ? are wildcards
 *     test_pool --list             prints the names
 *
 * What tests of a file share is a fixture. Its teardown runs after each test, whether it has
 * passed, failed or been skipped, but not where the setup itself has failed:
 *
 *     FIXTURE(pool, open_pool, close_pool)
 *
 *     TEST_F(pool, an_empty_pool_holds_nothing)
 *     {
 *         ...
 *     }
 *
 * In a test's body `state` is cmocka's: what the setup (or the group's) has left in *state. */
#ifndef GMD_TEST_H
#define GMD_TEST_H

#ifdef __cplusplus
extern "C" {
#endif

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Either may be NULL; they return 0, or fail an assertion. */
typedef struct gmd_fixture {
    CMFixtureFunction setup, teardown;
} gmd_fixture;

typedef struct gmd_test {
    const char *name;
    CMUnitTestFunction function;
    const gmd_fixture *fixture; /* NULL: none */
    void *state;                /* what *state is before the setup */
    const char *file;
    int place; /* within the file */
    struct gmd_test *next;
} gmd_test;

/* Both keep what they are given, for as long as the program runs. Called before main() only. A
 * program has one group. */
void gmd_test_register(gmd_test *test);
void gmd_test_register_group(const gmd_fixture *group);

#define FIXTURE(name, setup, teardown)                                                             \
    __attribute__((unused)) static const gmd_fixture gmd_fixture_##name = {setup, teardown}

#define TEST(name)            GMD_TEST(#name, name, NULL)
#define TEST_F(fixture, name) GMD_TEST(#name, name, &gmd_fixture_##fixture)

/* A test under another name than its function's. */
#define GMD_TEST(title, name, fixture)                                                             \
    static void name(void **state);                                                                \
    GMD_TEST_REGISTER(title, name, fixture, NULL)                                                  \
    static void name(__attribute__((unused)) void **state)

/* One more test whose body is a function that there is already, with `row` as its *state. */
#define TEST_ROW(title, function, row)                                                             \
    GMD_TEST_REGISTER(title, function, NULL, row)                                                  \
    struct gmd_test

/* What is done once, before the first and after the last test of the program. */
#define TEST_GROUP(setup, teardown)                                                                \
    __attribute__((constructor)) static void gmd_test_group(void)                                  \
    {                                                                                              \
        static const gmd_fixture group = {setup, teardown};                                        \
        gmd_test_register_group(&group);                                                           \
    }                                                                                              \
    struct gmd_test

#define GMD_TEST_REGISTER(title, function, fixture, row)                                           \
    GMD_TEST_REGISTER_AT(title, function, fixture, row, __COUNTER__)
#define GMD_TEST_REGISTER_AT(title, function, fixture, row, place)                                 \
    GMD_TEST_REGISTER_NAMED(title, function, fixture, row, place)
#define GMD_TEST_REGISTER_NAMED(title, function, fixture, row, place)                              \
    __attribute__((constructor)) static void gmd_test_register_##place(void)                       \
    {                                                                                              \
        static gmd_test test = {title, function, fixture, row, __FILE__, place, NULL};             \
        gmd_test_register(&test);                                                                  \
    }

#ifdef __cplusplus
}
#endif

#endif
