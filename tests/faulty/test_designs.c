/* Every line of planted_designs.txt: with the defect on, its case is found by the oracle that fits.
 * Without defects no case of the folder finds anything in these designs, nor in any of their
 * correct variants. */
#include "faulty_test.h"

#include <dirent.h>

enum { SEEDS = 100, SEEDS_WITHOUT = 20, ROWS_MAX = 120, WORD = 64, CASES_MAX = 400 };

typedef struct row {
    char allocator[WORD], defect[WORD], name[WORD], oracle[WORD];
} row;

static row rows[ROWS_MAX];
static size_t row_count;

static int read_rows(void **state)
{
    (void)state;
    FILE *f = fopen(GMD_TEST_PLANTED, "r");
    char line[300];
    while (f && fgets(line, sizeof line, f) && row_count < ROWS_MAX) {
        row *r = &rows[row_count];
        row_count += line[0] != '#' && sscanf(line, "%63s %63s %63s %63s", r->allocator, r->defect,
                                              r->name, r->oracle) == 4;
    }
    if (f) {
        fclose(f);
    }
    return row_count ? 0 : -1;
}

/* A case with threads is tried in many interleavings, any other as it stands. */
static gmd_outcome *play(const char *allocator, const char *defect, const char *name,
                         uint64_t seeds)
{
    char path[500], library[500];
    gmd_trace trace = {0};
    const gmd_schedule first = {.kind = GMD_SCHEDULE_SEEDED};
    snprintf(path, sizeof path, "%s/%s.gmd", GMD_TEST_CASES, name);
    snprintf(library, sizeof library, "%s/lib%s.so", GMD_TEST_ALLOCATORS, allocator);
    read_trace(&trace, path);
    bool has_threads = trace.threads.count > 1;
    gmd_outcome *outcome = run_trace(library, defect, &trace, has_threads ? &first : NULL,
                                     has_threads ? seed_count(seeds) : 0, NULL);
    gmd_trace_free(&trace);
    return outcome;
}

static void each_defect_is_found_by_the_oracle_that_fits(void **state)
{
    (void)state;
    size_t missed = 0;
    for (const row *r = rows; r < rows + row_count; r++) {
        gmd_outcome *o = play(r->allocator, r->defect, r->name, SEEDS);
        const char *oracle = o->violation_count ? o->violations[0].oracle : "nothing";
        bool has_races = !gmd_interpose_is_on() && strcmp(oracle, "nothing") == 0;
        if (strcmp(oracle, r->oracle) != 0 && !has_races) {
            missed++;
            print_error("%s, %s: expected %s, found %s: %s%s\n", r->allocator, r->defect, r->oracle,
                        oracle, o->violation_count ? o->violations[0].message : "", o->error);
        }
        free(o);
    }
    assert_int_equal(missed, 0);
}

static size_t list_cases(char (*names)[WORD])
{
    size_t count = 0;
    DIR *folder = opendir(GMD_TEST_CASES);
    assert_non_null(folder);
    for (struct dirent *e; (e = readdir(folder)) != NULL && count < CASES_MAX;) {
        const char *dot = strrchr(e->d_name, '.');
        if (dot && strcmp(dot, ".gmd") == 0 && dot - e->d_name < WORD) {
            snprintf(names[count++], WORD, "%.*s", (int)(dot - e->d_name), e->d_name);
        }
    }
    closedir(folder);
    return count;
}

static size_t count_alarms(const char *allocator, char (*names)[WORD], size_t count)
{
    size_t alarms = 0;
    for (size_t i = 0; i < count; i++) {
        gmd_outcome *o = play(allocator, NULL, names[i], SEEDS_WITHOUT);
        /* What a case states is for the design that it was written for: another one may round up.
         */
        bool is_clean = o->verdict == GMD_PASS || (o->violation_count == 1 &&
                                                   strcmp(o->violations[0].oracle, "expect") == 0);
        if (!is_clean) {
            alarms++;
            print_error("%s, %s: %s: %s%s\n", allocator, names[i],
                        o->violation_count ? o->violations[0].oracle : "error",
                        o->violation_count ? o->violations[0].message : "", o->error);
        }
        free(o);
    }
    return alarms;
}

static void without_defects_no_case_finds_anything(void **state)
{
    (void)state;
    static char names[CASES_MAX][WORD];
    size_t count = list_cases(names), alarms = 0;
    char allocators[] = GMD_TEST_DESIGNS, *rest = NULL;
    for (char *a = strtok_r(allocators, " ", &rest); a; a = strtok_r(NULL, " ", &rest)) {
        alarms += count_alarms(a, names, count);
    }
    assert_int_equal(alarms, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_defect_is_found_by_the_oracle_that_fits),
        cmocka_unit_test(without_defects_no_case_finds_anything),
    };
    return cmocka_run_group_tests(tests, read_rows, NULL);
}
