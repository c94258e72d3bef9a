/* gmd_test_main.c - the main function of every test program: runs what has registered itself. */
#define _GNU_SOURCE /* program_invocation_short_name */
#include "gmd_test.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static gmd_test *first;
static const gmd_fixture *group;

/* Constructors run in an order that is the compiler's and the linker's: a file's tests are brought
 * into the order of the file here, the files stay as they come. */
void gmd_test_register(gmd_test *test)
{
    gmd_test **position = &first;
    while (*position && strcmp((*position)->file, test->file) != 0) {
        position = &(*position)->next;
    }
    while (*position && strcmp((*position)->file, test->file) == 0 &&
           (*position)->place <= test->place) {
        position = &(*position)->next;
    }
    test->next = *position;
    *position = test;
}

void gmd_test_register_group(const gmd_fixture *g)
{
    if (group) {
        fputs("two TEST_GROUP() in one test program\n", stderr);
        exit(2);
    }
    group = g;
}

/* Without any pattern every test is meant. */
static bool is_meant(const gmd_test *test, char *const patterns[], int count)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(patterns[i], test->name) == 0 || fnmatch(patterns[i], test->name, 0) == 0) {
            return true;
        }
    }
    return count == 0;
}

static size_t count_meant(char *const patterns[], int count)
{
    size_t meant = 0;
    for (const gmd_test *t = first; t; t = t->next) {
        meant += is_meant(t, patterns, count);
    }
    return meant;
}

static int list_tests(void)
{
    for (const gmd_test *t = first; t; t = t->next) {
        puts(t->name);
    }
    return 0;
}

/* The number of tests that failed. */
static int run_meant(char *const patterns[], int count, size_t meant)
{
    struct CMUnitTest *tests = calloc(meant, sizeof *tests);
    if (!tests) {
        fputs("no memory for the list of tests\n", stderr);
        return 2;
    }
    size_t n = 0;
    for (const gmd_test *t = first; t; t = t->next) {
        if (is_meant(t, patterns, count)) {
            tests[n++] =
                (struct CMUnitTest){.name = t->name,
                                    .test_func = t->function,
                                    .setup_func = t->fixture ? t->fixture->setup : NULL,
                                    .teardown_func = t->fixture ? t->fixture->teardown : NULL,
                                    .initial_state = t->state};
        }
    }
    int failed =
        _cmocka_run_group_tests(program_invocation_short_name, tests, n,
                                group ? group->setup : NULL, group ? group->teardown : NULL);
    free(tests);
    return failed;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        return list_tests();
    }
    size_t meant = count_meant(argv + 1, argc - 1);
    if (meant == 0) {
        fprintf(stderr, "%s: no test of that name; --list shows the names\n", argv[0]);
        return 2;
    }
    return run_meant(argv + 1, argc - 1, meant);
}
