/* Without defects no case of this folder finds anything in any allocator of it. */
#include "faulty_test.h"

#include <dirent.h>

enum { SEEDS = 20, CASES_MAX = 1000, WORD = 64 };

static size_t list_cases(char (*names)[WORD])
{
    size_t count = 0;
    DIR *folder = opendir(GMD_TEST_CASES);
    assert_non_null(folder);
    for (struct dirent *e; (e = readdir(folder)) != NULL;) {
        const char *dot = strrchr(e->d_name, '.');
        if (dot && strcmp(dot, ".gmd") == 0) {
            assert_true(count < CASES_MAX && dot - e->d_name < WORD);
            snprintf(names[count++], WORD, "%.*s", (int)(dot - e->d_name), e->d_name);
        }
    }
    closedir(folder);
    return count;
}

static bool passes(const char *allocator, const char *name)
{
    gmd_outcome *o = try_case(allocator, NULL, name, seed_count(SEEDS));
    bool is_clean = o->verdict == GMD_PASS;
    if (!is_clean) {
        print_error("%s, %s: %s: %s%s\n", allocator, name,
                    o->violation_count ? o->violations[0].oracle : "error",
                    o->violation_count ? o->violations[0].message : "", o->error);
    }
    free(o);
    return is_clean;
}

TEST(without_defects_no_case_finds_anything)
{
    static char names[CASES_MAX][WORD];
    size_t count = list_cases(names), alarms = 0;
    char list[] = GMD_TEST_DESIGNS;
    size_t turn = 0;
    for (char *rest, *a = strtok_r(list, " ", &rest); a; a = strtok_r(NULL, " ", &rest), turn++) {
        for (size_t i = 0; i < count; i++) {
            alarms += !is_skipped(i, turn) && !passes(a, names[i]);
        }
    }
    assert_int_equal(alarms, 0);
}

TEST_GROUP(NULL, NULL);
