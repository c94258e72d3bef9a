/* Every line of planted.txt: the case is found by the oracle that fits, with the defect on. And no
 * case finds anything in any allocator of this folder without defects. */
#include "faulty_test.h"

#include <dirent.h>

enum { SEEDS = 100, ROWS_MAX = 400, WORD = 64, CASES_MAX = 400 };

typedef struct row {
    char allocator[WORD], defect[WORD], name[WORD], oracle[WORD];
} row;

static row rows[ROWS_MAX];
static size_t row_count;

static int read_rows(void **state)
{
    (void)state;
    FILE *f = fopen(GMD_TEST_PLANTED, "r");
    if (!f) {
        return -1;
    }
    char line[400];
    while (fgets(line, sizeof line, f) && row_count < ROWS_MAX) {
        row *r = &rows[row_count];
        row_count += line[0] != '#' && sscanf(line, "%63s %63s %63s %63s", r->allocator, r->defect,
                                              r->name, r->oracle) == 4;
    }
    fclose(f);
    return row_count ? 0 : -1;
}

static const char *path_of(const char *allocator)
{
    static char path[500];
    snprintf(path, sizeof path, "%s/lib%s.so", GMD_TEST_ALLOCATORS, allocator);
    return path;
}

/* A race that needs threads to be switched in few places says so: few seeds do that in those. */
static uint64_t seeds_of(const gmd_trace *trace, uint64_t usual)
{
    return gmd_schedule_is_stated(&trace->conditions.interleave) ? 10 * usual : usual;
}

/* A case with threads is tried in many interleavings, any other as it stands. */
static gmd_outcome *play(const char *allocator, const char *defect, const char *name,
                         uint64_t seeds)
{
    char path[500];
    gmd_trace trace = {0};
    gmd_schedule first = {.kind = GMD_SCHEDULE_SEEDED};
    snprintf(path, sizeof path, "%s/%s.gmd", GMD_TEST_CASES, name);
    read_trace(&trace, path);
    bool has_threads = trace.threads.count > 1;
    if (gmd_schedule_is_stated(&trace.conditions.interleave)) {
        first = trace.conditions.interleave; /* a view */
    }
    gmd_outcome *outcome =
        run_trace(path_of(allocator), defect, &trace, has_threads ? &first : NULL,
                  has_threads ? seeds_of(&trace, seeds) : 0, NULL);
    gmd_trace_free(&trace);
    return outcome;
}

static bool is_found(const row *r)
{
    gmd_outcome *o = play(r->allocator, r->defect, r->name, seed_count(SEEDS));
    const char *oracle = o->violation_count ? o->violations[0].oracle : "nothing";
    bool found = strcmp(oracle, r->oracle) == 0;
    if (found) {
        note_raised(&o->violations[0].identity);
    }
    if (!found) {
        print_error("%s, %s: expected %s, found %s: %s%s\n", r->allocator, r->defect, r->oracle,
                    oracle, o->violation_count ? o->violations[0].message : "", o->error);
    }
    free(o);
    return found;
}

/* Under ThreadSanitizer its accesses are no yield points, and the races are for that to find. */
static bool is_for_accesses(const row *r)
{
    return !interpose_is_on() && strcmp(r->allocator, "lock_free_pool") == 0;
}

TEST(every_defect_is_found_by_the_oracle_that_fits)
{
    size_t missed = 0;
    for (size_t i = 0; i < row_count; i++) {
        missed += !is_skipped(i, 0) && !is_for_accesses(&rows[i]) && !is_found(&rows[i]);
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

static bool passes(const char *allocator, const char *name)
{
    gmd_outcome *o = play(allocator, NULL, name, seed_count(20));
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

TEST_GROUP(read_rows, NULL);
