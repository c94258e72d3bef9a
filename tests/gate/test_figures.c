/* What a gate measures is held against its baseline: the same allocator has the same figures,
 * another one is flagged in the category that it is worse in, with the command that shows it. */
#include "gate_test.h"

#include <unistd.h>

#define ITEM "memory/scenarios/gpt/ample"

static char path[64];

static int choose_path(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "/tmp/gmd-figures-%d.txt", (int)getpid());
    return 0;
}

static int remove_file(void **state)
{
    (void)state;
    remove(path);
    return 0;
}

static gmd_gate_result gate(const char *allocator, const char *only, bool updates)
{
    gmd_run_options run = run_options_for(allocator);
    gmd_gate_options options = {
        .run = &run, .is_quick = true, .only = only, .baseline = path, .updates_baseline = updates};
    return run_gate(&options, NULL, NULL);
}

static void accept(const char *allocator, const char *only)
{
    gmd_gate_result r = gate(allocator, only, true);
    assert_true(r.baseline.was_written);
    gmd_gate_result_free(&r);
}

/* Puts `text` in place of `old` in the file. */
static void edit(const char *old, const char *text)
{
    static char all[1 << 16];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t size = fread(all, 1, sizeof all - 1, file);
    all[size] = '\0';
    fclose(file);
    char *at = strstr(all, old);
    assert_non_null(at);
    file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "%.*s%s%s", (int)(at - all), all, text, at + strlen(old));
    fclose(file);
}

/* --- memory ------------------------------------------------------------------------------ */

/* What a test makes, freed after it. */
static gmd_gate_result result;

static int free_result(void **state)
{
    (void)state;
    gmd_gate_result_free(&result);
    return 0;
}

FIXTURE(result, NULL, free_result);

TEST_F(result, memory_is_the_same_to_the_byte)
{
    accept("reference", "memory");
    result = gate("reference", "memory", false);
    assert_int_equal(gmd_gate_figures(&result, "memory", NULL, GMD_GATE_SAME), result.figure_count);
    assert_true(result.figure_count >= 200);
    assert_int_equal(gmd_gate_verdict(&result), GMD_PASS);
}

TEST_F(result, more_device_calls_are_a_regression_of_memory)
{
    char command[1300];
    bool was_run;
    accept("reference", ITEM);
    result = gate("cudamalloc", ITEM, false);
    assert_int_equal(gmd_gate_verdict(&result), GMD_FAIL);
    assert_int_equal(gmd_gate_category_verdict(&result, "memory", &was_run), GMD_FAIL);
    assert_int_equal(gmd_gate_category_verdict(&result, "correctness", &was_run), GMD_PASS);
    assert_int_equal(result.figures[0].change, GMD_GATE_WORSE);
    assert_string_equal(result.figures[0].name, "device_calls");
    gmd_gate_figure_command(&result, &result.figures[0], command, sizeof command);
    assert_non_null(
        strstr(command, "gmd gate --allocator cudamalloc --baseline /tmp/gmd-figures-"));
    assert_non_null(strstr(command, " --only " ITEM));
}

TEST_F(result, less_memory_is_no_failure)
{
    accept("reference", ITEM);
    edit("scenarios/gpt/ample peak_reserved ", "scenarios/gpt/ample peak_reserved 9");
    result = gate("reference", ITEM, false);
    assert_int_equal(gmd_gate_figures(&result, "memory", NULL, GMD_GATE_BETTER), 1);
    assert_int_equal(gmd_gate_verdict(&result), GMD_PASS);
}

TEST_F(result, the_worst_comes_first)
{
    accept("reference", "memory");
    result = gate("cudamalloc", "memory", false);
    size_t worse = gmd_gate_regressions(&result, "memory", NULL);
    assert_true(worse > 10);
    for (size_t i = 1; i < worse; i++) {
        assert_true(result.figures[i - 1].excess >= result.figures[i].excess);
    }
}

/* --- the baseline ------------------------------------------------------------------------ */

TEST_F(result, one_item_is_accepted_without_the_others)
{
    accept("reference", "memory");
    edit("scenarios/gpt/ample peak_reserved ", "scenarios/gpt/ample peak_reserved 9");
    edit("scenarios/gpt/scarce peak_reserved ", "scenarios/gpt/scarce peak_reserved 9");
    accept("reference", ITEM);
    result = gate("reference", "memory", false);
    assert_int_equal(gmd_gate_figures(&result, "memory", "scenarios/gpt/ample", GMD_GATE_BETTER),
                     0);
    assert_int_equal(gmd_gate_figures(&result, "memory", "scenarios/gpt/scarce", GMD_GATE_BETTER),
                     1);
}

TEST_F(result, another_allocators_baseline_is_told_of)
{
    accept("reference", ITEM);
    result = gate("cudamalloc", ITEM, false);
    assert_int_equal(result.baseline.note_count, 1);
    assert_non_null(strstr(result.baseline.notes[0], "is of the allocator reference"));
}

/* What was asked for by name and cannot be run is no pass. */
static void expect_not_run(const char *only, const char *baseline, const char *reason)
{
    gmd_run_options run = run_options_for("reference");
    gmd_gate_options options = {.run = &run, .is_quick = true, .only = only, .baseline = baseline};
    gmd_gate_result r;
    gmd_error error = {""};
    assert_int_equal(gmd_gate_run(&options, &r, &error), GMD_BAD_INPUT);
    if (!strstr(error.text, reason)) {
        fail_msg("'%s' does not say '%s'", error.text, reason);
    }
    gmd_gate_result_free(&r);
}

TEST(on_another_machine_memory_is_judged_and_speed_is_not)
{
    accept("reference", ITEM);
    edit("machine ", "machine Z80, ");
    gmd_gate_result r = gate("reference", ITEM, false);
    assert_true(gmd_gate_figures(&r, "memory", NULL, GMD_GATE_SAME) > 0);
    assert_non_null(strstr(r.baseline.notes[0], "made on another machine (Z80"));
    gmd_gate_result_free(&r);
    expect_not_run("speed", path, "the baseline is of another machine (Z80");
}

TEST_F(result, a_baseline_that_is_not_there_is_bad_input)
{
    gmd_run_options run = run_options_for("reference");
    gmd_gate_options options = {.run = &run, .baseline = "/nowhere/baseline.txt"};
    gmd_error error = {""};
    assert_int_equal(gmd_gate_run(&options, &result, &error), GMD_BAD_INPUT);
    assert_non_null(strstr(error.text, "/nowhere/baseline.txt"));
}

TEST(without_a_baseline_memory_is_not_run)
{
    expect_not_run("memory", NULL, "--baseline FILE");
}

TEST_F(result, a_figure_that_is_there_no_more_is_told_of)
{
    accept("reference", ITEM);
    edit("scenarios/gpt/ample retries", "scenarios/gpt/ample reprises");
    result = gate("reference", ITEM, false);
    assert_int_equal(result.baseline.note_count, 1);
    assert_non_null(strstr(result.baseline.notes[0], "memory scenarios/gpt/ample reprises"));
}

TEST_F(result, what_cannot_be_measured_is_not_accepted_in_silence)
{
    gmd_run_options run = run_options_for(GMD_TEST_PLANTED);
    gmd_gate_options options = {
        .run = &run, .is_quick = true, .only = ITEM, .baseline = path, .updates_baseline = true};
    result = run_gate(&options, "GMD_PLANT", "crash");
    assert_int_equal(gmd_gate_verdict(&result), GMD_FAIL);
}

TEST_F(result, a_baseline_that_cannot_be_written_is_refused_before_anything_runs)
{
    gmd_run_options run = run_options_for("reference");
    gmd_gate_options options = {.run = &run, .baseline = "/nowhere/b", .updates_baseline = true};
    gmd_error error = {""};
    assert_int_equal(gmd_gate_run(&options, &result, &error), GMD_BAD_INPUT);
    assert_non_null(strstr(error.text, "/nowhere/b: cannot be written"));
    assert_int_equal(gmd_gate_part_runs(&result.parts[0]), 0);
}

TEST_F(result, the_printed_commands_have_the_options_they_need)
{
    gmd_run_options run = run_options_for("reference");
    gmd_gate_options options = {.run = &run,
                                .is_quick = true,
                                .only = ITEM,
                                .baseline = path,
                                .updates_baseline = true,
                                .subject_words = "--promise prompt",
                                .battery_words = "--history mine.pickle"};
    result = run_gate(&options, NULL, NULL);
    assert_non_null(strstr(result.baseline.commands, " --promise prompt --history mine.pickle "));
}

/* --- speed ------------------------------------------------------------------------------- */

TEST_F(result, a_request_of_the_same_library_takes_as_many_instructions)
{
    accept("reference", "speed/pair_512B");
    result = gate("reference", "speed/pair_512B", false);
    if (!result.figure_count || strcmp(result.figures[0].name, "instructions") != 0) {
        gmd_gate_result_free(&result);
        skip(); /* they cannot be counted here */
    }
    assert_int_equal(result.figures[0].change, GMD_GATE_SAME);
    assert_true(result.figures[0].excess < 0.001 && result.figures[0].excess > -0.001);
}

TEST_F(result, more_instructions_are_a_regression_of_speed)
{
    if (GMD_ASSERT_LEVEL >= 3) {
        skip(); /* the reference allocator's own walks take the most */
    }
    accept("reference", "speed/pair_512B");
    result = gate("cudamallocasync", "speed/pair_512B", false);
    if (!result.figure_count || strcmp(result.figures[0].name, "instructions") != 0) {
        gmd_gate_result_free(&result);
        skip(); /* they cannot be counted here */
    }
    assert_int_equal(result.figures[0].change, GMD_GATE_WORSE);
}

TEST_GROUP(choose_path, remove_file);
