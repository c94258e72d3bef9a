/* gmd_contract_probe.h: each clause in which a contract is looser is found out, and no other. */
#include "gmd_contract_probe.h"
#include "gmd_size.h"
#include "gmd_test.h"

#include <stdlib.h>
#include <string.h>

/* A sanitizer makes each of a probe's thousand processes thirty times as slow, and does not change
 * what is said: there the last case, and the tests that need few probes, are enough. */
#ifdef GMD_TEST_SANITIZED
enum { FIRST_CASE = 10 };
#else
enum { FIRST_CASE = 0 };
#endif

static gmd_error error;

/* The caller frees it. */
static gmd_contract_probe *probe_allocator(const char *allocator)
{
    const gmd_run_options run = {.subject.allocator = allocator,
                                 .subject.lib_directory = GMD_TEST_LIB_DIR,
                                 .device.kind = GMD_DEVICE_SIM,
                                 .conditions.device_count = 1,
                                 .conditions.capacity_bytes = 140 * GMD_GIB,
                                 .process.call_budget_s = 5};
    gmd_contract_probe *probe = calloc(1, sizeof *probe);
    assert_non_null(probe);
    if (gmd_contract_probe_run(&run, probe, &error) != GMD_OK) {
        free(probe);
        probe = NULL;
        fail_msg("%s", error.text);
        abort(); /* for those who do not know that fail_msg does not come back */
    }
    return probe;
}

static gmd_contract_probe *probe_loose(const char *clause)
{
    setenv("GMD_LOOSE", clause, 1);
    gmd_contract_probe *probe = probe_allocator(GMD_TEST_LOOSE);
    unsetenv("GMD_LOOSE");
    return probe;
}

/* All but `but` has its first term. */
static void expect_strict_but(const gmd_contract_probe *probe, gmd_clause but)
{
    for (int i = 0; i < GMD_CLAUSE_COUNT; i++) {
        if (i != (int)but && (probe->contract.terms[i] || probe->found[i][0])) {
            fail_msg("%s: %s", gmd_clause_rows[i].name, probe->found[i]);
        }
    }
    assert_int_equal(probe->defect_count, 0);
}

TEST(an_allocator_of_the_strictest_contract_has_no_clause)
{
    gmd_contract_probe *probe = probe_loose("");
    expect_strict_but(probe, GMD_CLAUSE_COUNT);
    assert_true(probe->contract.largest == UINT64_MAX);
    free(probe);
}

TEST(each_looser_clause_is_found_out_with_what_showed_it)
{
    static const struct {
        const char *loose;
        gmd_clause clause;
        uint8_t term;
    } cases[] = {
        {"zero_bytes", GMD_CLAUSE_ZERO_BYTES, GMD_ZERO_OUTSIDE},
        {"alignment128", GMD_CLAUSE_ALIGNMENT, GMD_ALIGNED_128},
        {"alignment", GMD_CLAUSE_ALIGNMENT, GMD_ALIGNED_16},
        {"blocks", GMD_CLAUSE_STREAMS, GMD_STREAMS_OUTLIVE_BLOCKS},
        {"allocator", GMD_CLAUSE_STREAMS, GMD_STREAMS_OUTLIVE_ALLOCATOR},
        {"threads", GMD_CLAUSE_THREADS, GMD_THREADS_ONE},
        {"devices", GMD_CLAUSE_DEVICES, GMD_DEVICES_ONE},
        {"pressure", GMD_CLAUSE_PRESSURE, GMD_PRESSURE_KEEPS},
        {"pool", GMD_CLAUSE_POOL, GMD_POOL_FIXED},
        {"pending_errors", GMD_CLAUSE_PENDING_ERRORS, GMD_PENDING_OUTSIDE},
        {"failing_calls", GMD_CLAUSE_FAILING_CALLS, GMD_FAILING_OUTSIDE},
    };
    for (size_t i = FIRST_CASE; i < sizeof cases / sizeof *cases; i++) {
        gmd_contract_probe *probe = probe_loose(cases[i].loose);
        gmd_clause clause = cases[i].clause;
        expect_strict_but(probe, clause);
        if (probe->contract.terms[clause] != cases[i].term || !probe->found[clause][0]) {
            fail_msg("%s: term %d, found '%s'", cases[i].loose, probe->contract.terms[clause],
                     probe->found[clause]);
        }
        free(probe);
    }
}

#ifndef GMD_TEST_SANITIZED
TEST(the_largest_size_is_found_out_closely_and_never_too_large)
{
    gmd_contract_probe *probe = probe_loose("largest");
    expect_strict_but(probe, GMD_CLAUSE_LARGEST);
    assert_true(probe->contract.largest <= GMD_GIB);
    assert_true(probe->contract.largest >= GMD_GIB - GMD_GIB / 128);
    free(probe);
}
#endif

#ifdef GMD_TEST_THROWING
TEST(an_allocator_that_throws_is_found_out)
{
    gmd_contract_probe *probe = probe_allocator(GMD_TEST_THROWING);
    assert_int_equal(probe->contract.terms[GMD_CLAUSE_OUT_OF_MEMORY], GMD_OOM_THROWS);
    free(probe);
}
#endif

#ifndef GMD_TEST_SANITIZED
TEST(what_each_term_shows_is_told_as_a_defect_and_hides_no_other_clause)
{
    gmd_contract_probe *probe = probe_loose("error_behind");
    assert_int_equal(probe->defect_count, 1);
    assert_non_null(strstr(probe->defects[0], "device_state.last_error"));
    probe->defect_count = 0;
    expect_strict_but(probe, GMD_CLAUSE_COUNT);
    for (const gmd_tried_promise *p = probe->promises; p->name; p++) {
        assert_null(strstr(p->why_not, "device_state.last_error"));
    }
    free(probe);
}
#endif

#ifndef GMD_TEST_SANITIZED
TEST(streams_that_are_not_waited_for_must_be_ordered_by_the_caller)
{
    setenv("GMD_DEFECT", "cudajl778", 1);
    gmd_contract_probe *probe = probe_allocator(GMD_TEST_CACHING);
    unsetenv("GMD_DEFECT");
    expect_strict_but(probe, GMD_CLAUSE_OTHER_STREAMS);
    assert_int_equal(probe->contract.terms[GMD_CLAUSE_OTHER_STREAMS], GMD_OTHERS_ORDERED);
    free(probe);
}
#endif

TEST(the_profile_that_is_written_is_one_that_is_read)
{
    char *text = NULL;
    size_t size = 0;
    gmd_contract read;
    gmd_contract_probe *probe = probe_loose("blocks");
    FILE *out = open_memstream(&text, &size);
    gmd_contract_probe_write(probe, "x.so", out);
    fclose(out);
    gmd_status status = gmd_contract_parse(&read, text, size, "x.profile", &error);
    free(probe);
    if (status != GMD_OK) {
        fail_msg("%s\n%s", error.text, text);
    }
    free(text);
    assert_int_equal(read.terms[GMD_CLAUSE_STREAMS], GMD_STREAMS_OUTLIVE_BLOCKS);
}

#ifndef GMD_TEST_SANITIZED
TEST(promises_that_are_kept_are_stated_and_others_say_why_not)
{
    gmd_contract_probe *probe = probe_allocator("reference");
    for (const gmd_tried_promise *p = probe->promises; p->name; p++) {
        bool is_itself = strcmp(p->name, "pytorch") == 0; /* it is what that is judged by */
        assert_int_equal(p->fate, is_itself ? GMD_PROMISE_UNSEEN : GMD_PROMISE_KEPT);
        assert_true(is_itself == (p->why_not[0] != '\0'));
    }
    free(probe);
}
#endif

TEST(an_allocator_that_cannot_be_loaded_is_an_error)
{
    const gmd_run_options run = {.subject.allocator = "./not_there.so",
                                 .subject.lib_directory = GMD_TEST_LIB_DIR,
                                 .device.kind = GMD_DEVICE_SIM,
                                 .conditions.device_count = 1,
                                 .conditions.capacity_bytes = GMD_GIB,
                                 .process.call_budget_s = 5};
    gmd_contract_probe probe;
    assert_int_equal(gmd_contract_probe_run(&run, &probe, &error), GMD_BAD_INPUT);
    assert_non_null(strstr(error.text, "not_there.so"));
}
