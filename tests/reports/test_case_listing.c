/* A short case beside its finding: lines of the file, answers, the failing request. */
#include "gmd_case_listing.h"
#include "gmd_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct listing_test {
    char path[256];
    gmd_outcome outcome;
    gmd_journal *journal;
    gmd_case_listing listing;
} fixture;

static int fixture_setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    const char *folder = getenv("TMPDIR");
    snprintf(f->path, sizeof f->path, "%s/gmd-case-XXXXXX", folder ? folder : "/tmp");
    int file = mkstemp(f->path);
    f->journal = gmd_journal_open(NULL);
    *state = f;
    return file >= 0 && close(file) == 0 && f->journal ? 0 : -1;
}

static int fixture_teardown(void **state)
{
    fixture *f = *state;
    unlink(f->path);
    gmd_journal_close(f->journal);
    free(f);
    return 0;
}

FIXTURE(listing, fixture_setup, fixture_teardown);

static const gmd_case_listing *list(fixture *f, const char *text)
{
    FILE *file = fopen(f->path, "w");
    fputs(text, file);
    fclose(file);
    gmd_case_listing_read(&f->listing, f->path, &f->outcome, f->journal);
    return &f->listing;
}

TEST_F(listing, comments_and_the_first_line_are_left_out)
{
    fixture *f = *state;
    list(f, "gmd-trace 1\n# found by somebody\n\nalloc a 1 s1  # the first\nfree a\n");
    assert_int_equal(f->listing.count, 2);
    assert_int_equal(f->listing.lines[0].line, 4);
    assert_string_equal(f->listing.lines[0].text, "alloc a 1 s1");
}

TEST_F(listing, a_line_that_makes_no_request_has_no_number)
{
    fixture *f = *state;
    list(f, "gmd-trace 1\ncapacity 1GiB\nalloc a 1 s1\n");
    assert_true(f->listing.lines[0].request == UINT64_MAX);
    assert_int_equal(f->listing.lines[1].request, 0);
}

TEST_F(listing, the_request_of_the_first_violation_is_marked)
{
    fixture *f = *state;
    f->outcome.violation_count = 1;
    f->outcome.violations[0].request = 1;
    list(f, "gmd-trace 1\nalloc a 1 s1\nfree a\n");
    assert_false(f->listing.lines[0].is_failing);
    assert_true(f->listing.lines[1].is_failing);
}

TEST_F(listing, an_allocation_is_answered_by_its_address)
{
    fixture *f = *state;
    f->journal->events[0] =
        (gmd_journal_event){.action = GMD_ACTION_ALLOC + 1, .address = 0x10000, .request = 1};
    f->journal->count = 1;
    list(f, "gmd-trace 1\nalloc a 1 s1\nalloc b 1 s1\n");
    assert_string_equal(f->listing.lines[0].answer, "");
    assert_string_equal(f->listing.lines[1].answer, "0x10000");
}

TEST_F(listing, a_refusal_is_answered_by_out_of_memory)
{
    fixture *f = *state;
    f->journal->events[0] = (gmd_journal_event){.action = GMD_ACTION_OOM + 1, .address = 99};
    f->journal->count = 1;
    list(f, "gmd-trace 1\nalloc a 1 s1\n");
    assert_string_equal(f->listing.lines[0].answer, "out of memory");
}

TEST_F(listing, a_case_of_more_lines_than_there_is_room_for_is_not_listed)
{
    fixture *f = *state;
    char text[400];
    int used = snprintf(text, sizeof text, "gmd-trace 1\nalloc a 1 s1\n");
    for (int i = 0; i < GMD_CASE_LINES; i++) {
        used += snprintf(text + used, sizeof text - (size_t)used, "use a s1 1us\n");
    }
    assert_int_equal(list(f, text)->count, 0);
}

TEST_F(listing, a_file_that_is_no_trace_is_not_listed)
{
    fixture *f = *state;
    assert_int_equal(list(f, "{}\n")->count, 0);
}
