/* Correct allocators that are unlike most: no case of this folder finds anything in them. */
#include "faulty_test.h"

#include <dirent.h>

enum { SEEDS = 20, WORD = 64, CASES_MAX = 400 };

static char cases[CASES_MAX][WORD];
static size_t case_count;

static int list_cases(void **state)
{
    (void)state;
    DIR *folder = opendir(GMD_TEST_CASES);
    if (!folder) {
        return -1;
    }
    for (struct dirent *e; (e = readdir(folder)) != NULL && case_count < CASES_MAX;) {
        const char *dot = strrchr(e->d_name, '.');
        if (dot && strcmp(dot, ".gmd") == 0 && dot - e->d_name < WORD) {
            snprintf(cases[case_count++], WORD, "%.*s", (int)(dot - e->d_name), e->d_name);
        }
    }
    closedir(folder);
    return 0;
}

/* A case with threads is tried in some interleavings, any other as it stands. */
static gmd_outcome *play(const char *allocator, const char *name)
{
    char path[500], library[500];
    gmd_trace trace = {0};
    const gmd_schedule first = {.kind = GMD_SCHEDULE_SEEDED};
    snprintf(path, sizeof path, "%s/%s.gmd", GMD_TEST_CASES, name);
    snprintf(library, sizeof library, "%s/lib%s.so", GMD_TEST_ALLOCATORS, allocator);
    read_trace(&trace, path);
    bool has_threads = trace.threads.count > 1;
    gmd_outcome *outcome = run_trace(library, NULL, &trace, has_threads ? &first : NULL,
                                     has_threads ? seed_count(SEEDS) : 0, NULL);
    gmd_trace_free(&trace);
    return outcome;
}

/* What a case expects is meant for the design that it was written for: another may round up more.
 */
static bool is_clean(const gmd_outcome *o)
{
    return o->verdict == GMD_PASS ||
           (o->violation_count == 1 && strcmp(o->violations[0].oracle, "expect") == 0);
}

TEST(no_case_finds_anything)
{
    char variants[] = GMD_TEST_VARIANTS, *rest = NULL;
    size_t alarms = 0, turn = 0;
    for (char *v = strtok_r(variants, " ", &rest); v; v = strtok_r(NULL, " ", &rest), turn++) {
        for (size_t i = 0; i < case_count; i++) {
            if (is_skipped(i, turn)) {
                continue;
            }
            gmd_outcome *o = play(v, cases[i]);
            if (!is_clean(o)) {
                alarms++;
                print_error("%s, %s: %s: %s%s\n", v, cases[i],
                            o->violation_count ? o->violations[0].oracle : "error",
                            o->violation_count ? o->violations[0].message : "", o->error);
            }
            free(o);
        }
    }
    assert_int_equal(alarms, 0);
}

TEST_GROUP(list_cases, NULL);
