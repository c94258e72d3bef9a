#include "report.h"

#include "patterns.h"

#include "gmd_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ALLOCATED = 10, FREED = 20, QUEUED = 30 };

typedef struct fixture {
    report *report;
    char path[64];
} fixture;

static size_t stack_text(uint32_t stack, char *text, size_t size)
{
    return (size_t)snprintf(text, size, "train.py:%u:step\n", stack);
}

static int open_report(void **state)
{
    static fixture f;
    sanitizer_options options;
    gmd_error error;
    assert_int_equal(sanitizer_options_parse(&options, "cheap,most_reports:2", &error), GMD_OK);
    snprintf(f.path, sizeof f.path, "test-report-%ld.jsonl", (long)getpid());
    snprintf(options.report, sizeof options.report, "%s", f.path);
    f.report = report_create(&options, stack_text);
    assert_non_null(f.report);
    *state = &f;
    return 0;
}

static int close_report(void **state)
{
    fixture *f = *state;
    report_destroy(f->report);
    (void)unlink(f->path);
    return 0;
}

FIXTURE(file, open_report, close_report);

static unsigned lines_of(const fixture *f, char *last, size_t size)
{
    unsigned count = 0;
    FILE *file = fopen(f->path, "r");
    *last = '\0';
    while (file && fgets(last, (int)size, file)) {
        count++;
    }
    if (file) {
        fclose(file);
    }
    return count;
}

static const guarded_block block = {.address = 0x10000,
                                    .size = 4096,
                                    .allocated_stack = ALLOCATED,
                                    .freed_stack = FREED,
                                    .freed_ns = 1};

static finding late_write(void)
{
    return (finding){.kind = FINDING_WRITE_AFTER_FREE,
                     .moment = MOMENT_REUSE,
                     .block = block,
                     .changed = {.first = 0x10008, .last = 0x1000f, .changed = 8, .word = 7},
                     .expected = PATTERN_FREED,
                     .evidence = EVIDENCE_BYTES};
}

static finding unordered(unsigned evidence)
{
    return (finding){.kind = FINDING_FREED_EARLY,
                     .moment = MOMENT_QUEUED,
                     .block = block,
                     .evidence = evidence,
                     .use = "reduce",
                     .use_stack = QUEUED};
}

TEST_F(file, a_finding_is_on_disk_when_it_was_reported)
{
    const fixture *f = *state;
    char line[4096];
    finding found = late_write();
    report_finding(f->report, &found);
    assert_int_equal(lines_of(f, line, sizeof line), 1);
    assert_non_null(strstr(line, "\"found_by\": [\"bytes\"]"));
    assert_non_null(strstr(line, "\"allocated\": [\"train.py:10:step\"]"));
}

TEST_F(file, the_same_cause_is_one_finding)
{
    const fixture *f = *state;
    char line[4096];
    finding found = late_write();
    report_finding(f->report, &found);
    found.changed.first += 100;
    report_finding(f->report, &found);
    assert_int_equal(report_count(f->report), 1);
    assert_int_equal(lines_of(f, line, sizeof line), 1);
}

TEST_F(file, other_evidence_of_a_cause_is_told)
{
    const fixture *f = *state;
    char line[4096];
    finding bytes = late_write(), order = unordered(EVIDENCE_HAPPENS_BEFORE);
    report_finding(f->report, &order);
    report_finding(f->report, &bytes);
    assert_int_equal(report_count(f->report), 1);
    assert_int_equal(lines_of(f, line, sizeof line), 2);
    assert_non_null(strstr(line, "\"finding\": 1"));
    assert_non_null(strstr(line, "\"found_by\": [\"bytes\", \"happens_before\"]"));
}

TEST_F(file, where_the_work_was_queued_is_told)
{
    const fixture *f = *state;
    char line[4096];
    finding order = unordered(EVIDENCE_HAPPENS_BEFORE);
    report_finding(f->report, &order);
    lines_of(f, line, sizeof line);
    assert_non_null(strstr(line, "\"used_by\": {\"what\": \"reduce\""));
    assert_non_null(strstr(line, "\"queued\": [\"train.py:30:step\"]"));
}

TEST_F(file, a_use_that_is_only_possible_is_no_finding)
{
    const fixture *f = *state;
    finding order = unordered(EVIDENCE_POSSIBLE);
    report_finding(f->report, &order);
    assert_int_equal(report_count(f->report), 0);
}

TEST_F(file, a_use_that_is_possible_supports_changed_bytes)
{
    const fixture *f = *state;
    char line[4096];
    finding order = unordered(EVIDENCE_POSSIBLE), bytes = late_write();
    report_finding(f->report, &order);
    report_finding(f->report, &bytes);
    assert_int_equal(report_count(f->report), 1);
    assert_int_equal(lines_of(f, line, sizeof line), 1);
    assert_non_null(strstr(line, "\"found_by\": [\"bytes\", \"happens_before\"]"));
}

TEST_F(file, findings_beyond_the_most_are_counted_only)
{
    const fixture *f = *state;
    char line[4096];
    for (uint32_t i = 0; i < 5; i++) {
        finding found = late_write();
        found.block.allocated_stack = 100 + i;
        report_finding(f->report, &found);
    }
    assert_int_equal(report_count(f->report), 5);
    assert_int_equal(lines_of(f, line, sizeof line), 2);
}
