/* Every line of planted.txt: the case is found by the oracle that fits, with the defect on. */
#include "faulty_test.h"

enum { SEEDS = 100, ROWS_MAX = 1000, WORD = 64 };

typedef struct row {
    char allocator[WORD], defect[WORD], name[WORD], oracle[WORD];
} row;

static row rows[ROWS_MAX];
static size_t row_count;

static bool read_row(const char *line)
{
    row *r = &rows[row_count];
    if (line[0] == '#' || line[0] == '\n') {
        return true;
    }
    if (row_count == ROWS_MAX ||
        sscanf(line, "%63s %63s %63s %63s", r->allocator, r->defect, r->name, r->oracle) != 4) {
        print_error("%s: one row too many, or not a row: %s", GMD_TEST_PLANTED, line);
        return false;
    }
    row_count++;
    return true;
}

static int read_rows(void **state)
{
    (void)state;
    forget_raised();
    FILE *f = fopen(GMD_TEST_PLANTED, "r");
    if (!f) {
        return -1;
    }
    char line[400];
    bool is_good = true;
    while (is_good && fgets(line, sizeof line, f)) {
        is_good = read_row(line);
    }
    fclose(f);
    return is_good && row_count ? 0 : -1;
}

static bool is_found(const row *r)
{
    gmd_outcome *o = try_case(r->allocator, r->defect, r->name, seed_count(SEEDS));
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

TEST_GROUP(read_rows, NULL);
