/* What was seen inside a run, as tables and JSON, and the statistics of repeated runs. */
#include "gmd_inspect.h"
#include "gmd_test.h"
#include "sample.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static gmd_inspection *seen;
static char *screen;
static json_t *document;

static int prepare(void **state)
{
    gmd_error error;
    (void)state;
    sample_reset();
    seen = gmd_inspection_open(GMD_INSPECT_ALL, NULL, &error);
    assert_non_null(seen);
    seen->is_complete = seen->uses_are_known = true;
    return 0;
}

static void forget_report(void)
{
    free(screen);
    json_decref(document);
    screen = NULL;
    document = NULL;
}

static int release(void **state)
{
    (void)state;
    gmd_inspection_close(seen);
    forget_report();
    return 0;
}

FIXTURE(inside, prepare, release);

static void add_step(gmd_tensor_row *row, gmd_step_kind kind, const char *text)
{
    seen->steps[seen->step_count++] =
        (gmd_step){(uint32_t)kind, gmd_inspection_add_text(seen, text)};
    row->step_count++;
}

static gmd_tensor_row *add_tensor(const char *variable, uint64_t asked, uint64_t used)
{
    gmd_tensor_row *row = &seen->tensors[seen->tensor_count++];
    *row = (gmd_tensor_row){.shape = gmd_inspection_add_text(seen, "[2, 3]"),
                            .dtype = gmd_inspection_add_text(seen, "float32"),
                            .shares = GMD_INSPECT_NONE,
                            .first_step = seen->step_count,
                            .line = 7,
                            .holder = GMD_HELD_BY_NAME,
                            .category = GMD_INPUT,
                            .is_tensor = true,
                            .asked = asked,
                            .used = used,
                            .element_bytes = asked};
    add_step(row, GMD_STEP_ROOT, variable);
    return row;
}

typedef void table(const gmd_inspection *inspection, FILE *out, gmd_terminal terminal);

static const char *show(table *write)
{
    size_t size;
    FILE *out = open_memstream(&screen, &size);
    assert_non_null(out);
    write(seen, out, (gmd_terminal){.color = false});
    assert_int_equal(fclose(out), 0);
    return screen;
}

#define assert_contains(text, part)                                                                \
    do {                                                                                           \
        const char *whole_ = (text);                                                               \
        if (!strstr(whole_, (part))) {                                                             \
            fail_msg("there is no '%s' in:\n%s", (part), whole_);                                  \
        }                                                                                          \
    } while (0)

/* --- tables ------------------------------------------------------------------------------ */

TEST_F(inside, a_line_profile_has_memlabs_columns)
{
    seen->lines[0] = (gmd_line_row){.line = 8,
                                    .code = gmd_inspection_add_text(seen, "x = f()"),
                                    .times = 3,
                                    .active_peak = 40960,
                                    .reserved_peak = 2 << 20,
                                    .change = -512};
    seen->lines[1] = (gmd_line_row){.line = 9, .code = gmd_inspection_add_text(seen, "-- never")};
    seen->line_count = 2;
    assert_string_equal(show(gmd_inspect_lines),
                        "  active_bytes  reserved_bytes        change   times  line  code\n"
                        "           all             all  active_bytes\n"
                        "          peak            peak\n"
                        "        40.00K           2.00M      -512.00B       3     8  x = f()\n"
                        "                                                         9  -- never\n");
}

TEST_F(inside, a_tensor_shows_what_its_block_uses_beyond_what_was_asked)
{
    add_tensor("x", 24, 512);
    assert_contains(show(gmd_inspect_tensors),
                    "  x             [2, 3]  float32          512.00B   488.00B     7  input\n");
}

TEST_F(inside, a_shared_block_is_counted_once)
{
    add_tensor("x", 512, 512);
    add_tensor("y", 512, 512)->shares = 0;
    assert_contains(show(gmd_inspect_tensors), "  y(->x)        [2, 3]  float32            0.00B");
}

TEST_F(inside, tensors_of_one_kind_are_one_row)
{
    add_step(add_tensor("losses", 24, 512), GMD_STEP_NAME, "[1]");
    add_step(add_tensor("losses", 24, 512), GMD_STEP_NAME, "[2]");
    gmd_tensor_row *other = add_tensor("losses", 4, 512);
    add_step(other, GMD_STEP_NAME, "[3]");
    other->shape = gmd_inspection_add_text(seen, "[]");
    const char *text = show(gmd_inspect_tensors);
    assert_contains(text, "  losses[*]     [2, 3]  float32      2     1.00K   976.00B");
    assert_contains(text, "  losses[3]         []  float32          512.00B   508.00B");
}

TEST_F(inside, what_is_allocated_beyond_the_tensors_is_told)
{
    seen->allocated = 4096;
    seen->held[GMD_HELD_BY_NAME] = (gmd_held){2, 1000, 1024};
    seen->held[GMD_HELD_BY_LIBRARY] = (gmd_held){1, 2048, 2048};
    const char *text = show(gmd_inspect_tensors);
    assert_contains(text, "       1.00K        2 blocks  tensors that a name leads to\n");
    assert_contains(text, "       2.00K        1 block   workspaces of cuBLAS\n");
    assert_contains(text, "       1.00K  allocated otherwise\n");
}

TEST_F(inside, tensors_that_are_held_alike_are_one_way)
{
    add_step(add_tensor("losses", 512, 512), GMD_STEP_NAME, "[1]");
    add_step(add_tensor("losses", 512, 512), GMD_STEP_NAME, "[2]");
    add_tensor("x", 2048, 2048);
    const char *text = show(gmd_inspect_retention);
    assert_contains(text, "       2.00K        1     7  x\n"
                          "       1.00K        2     7  losses[*]\n");
}

TEST_F(inside, a_chain_is_one_way_however_long)
{
    char pattern[256];
    gmd_tensor_row *row = add_tensor("h", 512, 512);
    add_step(row, GMD_STEP_NODE, "AddBackward");
    add_step(row, GMD_STEP_NODE, "MulBackward");
    add_step(row, GMD_STEP_SKIPPED, "(90 more)");
    add_step(row, GMD_STEP_NODE, "PowBackward");
    add_step(row, GMD_STEP_SAVED, "saved[0]");
    assert_string_equal(gmd_inspection_path(seen, row, true, pattern, sizeof pattern),
                        "h -> AddBackward -> ... -> PowBackward -> saved[*]");
    assert_string_equal(gmd_inspection_path(seen, row, false, pattern, sizeof pattern),
                        "h -> AddBackward -> MulBackward -> (90 more) -> PowBackward -> saved[0]");
}

TEST_F(inside, numbers_of_submodules_are_one_star)
{
    char pattern[256];
    gmd_tensor_row *row = add_tensor("model", 512, 512);
    add_step(row, GMD_STEP_NAME, ".4");
    add_step(row, GMD_STEP_NAME, ".0");
    add_step(row, GMD_STEP_NAME, ".weight");
    assert_string_equal(gmd_inspection_path(seen, row, true, pattern, sizeof pattern),
                        "model.*.weight");
}

/* One way of a list of any length, also where its middle is left out of the path. */
TEST_F(inside, links_of_a_list_are_one_star)
{
    char pattern[256];
    gmd_tensor_row *row = add_tensor("first", 512, 512);
    add_step(row, GMD_STEP_NAME, ".next");
    add_step(row, GMD_STEP_NAME, ".next");
    add_step(row, GMD_STEP_SKIPPED, "(90 more)");
    add_step(row, GMD_STEP_NAME, ".next");
    add_step(row, GMD_STEP_NAME, ".data");
    assert_string_equal(gmd_inspection_path(seen, row, true, pattern, sizeof pattern),
                        "first.next* ... .next.data");
}

TEST_F(inside, the_timeline_has_the_end_and_the_peak_of_each_phase)
{
    gmd_phase_row *row = &seen->phases[seen->phase_count++];
    row->label = gmd_inspection_add_text(seen, "step");
    row->end[GMD_PARAMETER] = 1 << 20;
    row->peak[GMD_PARAMETER] = 1 << 20;
    row->peak[GMD_TEMPORARY] = 3 << 20;
    const char *text = show(gmd_inspect_timeline);
    assert_contains(text,
                    "  step                1.0       0.0        0.0         0.0    0.0        0.0"
                    "        0.0      1.0\n");
    assert_contains(text,
                    "  step                 1.0       0.0        0.0         0.0    0.0        3.0"
                    "        0.0      4.0\n");
}

/* --- widths ------------------------------------------------------------------------------ */

static int columns; /* of the terminal; 0: it is none */

static int widest_line(table *write)
{
    size_t size;
    int widest = 0;
    FILE *out = open_memstream(&screen, &size);
    assert_non_null(out);
    write(seen, out, (gmd_terminal){.columns = columns});
    assert_int_equal(fclose(out), 0);
    for (const char *line = screen; *line; line += strcspn(line, "\n") + 1) {
        int length = (int)strcspn(line, "\n");
        widest = length > widest ? length : widest;
    }
    return widest;
}

static const char long_name[] =
    "model.layers.encoder_blocks.attention.projections.query_key_value.quantised.weight_scale";

static void fill_with_long_names(uint64_t of_each_category)
{
    char label[64];
    gmd_tensor_row *row = add_tensor(long_name, (uint64_t)3 << 40, (uint64_t)4 << 40);
    row->shape = gmd_inspection_add_text(seen, "[64, 1024, 4096, 128]");
    row->category = GMD_OPTIMIZER_STATE;
    seen->lines[0] = (gmd_line_row){.line = 9999,
                                    .code = gmd_inspection_add_text(seen, long_name),
                                    .times = 999999,
                                    .active_peak = (uint64_t)1023 << 20,
                                    .reserved_peak = (uint64_t)1023 << 20,
                                    .change = -((int64_t)1023 << 20)};
    seen->line_count = 1;
    snprintf(label, sizeof label, "%.63s", long_name);
    gmd_phase_row *phase = &seen->phases[seen->phase_count++];
    phase->label = gmd_inspection_add_text(seen, label);
    for (int i = 0; i < GMD_CATEGORIES; i++) {
        phase->end[i] = phase->peak[i] = of_each_category;
    }
}

static table *const tables[] = {gmd_inspect_lines, gmd_inspect_tensors, gmd_inspect_retention,
                                gmd_inspect_timeline};

static void expect_to_fit(int terminal, int width, uint64_t of_each_category)
{
    fill_with_long_names(of_each_category);
    columns = terminal;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        free(screen);
        screen = NULL;
        int widest = widest_line(tables[i]);
        if (widest > width) {
            fail_msg("%d columns, not %d:\n%s", widest, width, screen);
        }
    }
}

TEST_F(inside, all_tables_fit_into_100_columns_of_a_file)
{
    expect_to_fit(0, 100, (uint64_t)13 << 30);
}

TEST_F(inside, all_tables_fit_into_a_terminal_of_80_columns)
{
    expect_to_fit(80, 80, (uint64_t)500 << 20);
}

TEST_F(inside, a_wide_terminal_shows_long_names_whole)
{
    fill_with_long_names(1 << 20);
    columns = 200;
    widest_line(gmd_inspect_tensors);
    assert_contains(screen, long_name);
}

TEST_F(inside, a_long_name_keeps_both_ends)
{
    fill_with_long_names(1 << 20);
    columns = 0;
    widest_line(gmd_inspect_retention);
    assert_contains(screen, "model.layers.encoder_blocks.attent...");
    assert_contains(screen, ".quantised.weight_scale\n");
}

TEST_F(inside, a_run_that_died_shows_no_half_of_a_table)
{
    seen->is_complete = false;
    add_tensor("x", 512, 512);
    assert_string_equal(show(gmd_inspection_terminal),
                        "\n  The run ended before what was seen inside could be written down.\n");
}

/* The child's memory may have been written over by the allocator under test. */
TEST_F(inside, numbers_out_of_bounds_are_not_followed)
{
    gmd_tensor_row *row = add_tensor("x", 512, 512);
    row->first_step = UINT32_MAX - 1;
    row->step_count = UINT32_MAX;
    row->shape = row->dtype = UINT32_MAX;
    row->shares = UINT32_MAX - 7;
    row->category = row->holder = 1000;
    seen->tensor_count = seen->line_count = seen->phase_count = seen->step_count = UINT32_MAX;
    memset(seen->texts, 'x', sizeof seen->texts);
    seen->lines[3].code = 5;
    assert_non_null(show(gmd_inspect_lines));
    free(screen);
    assert_non_null(show(gmd_inspect_tensors));
}

/* --- JSON -------------------------------------------------------------------------------- */

static json_t *inspection_of(const gmd_report *report)
{
    json_error_t error;
    forget_report();
    screen = sample_written(gmd_report_json, report);
    assert_non_null(screen);
    document = json_loads(screen, 0, &error);
    assert_non_null(document);
    return json_object_get(json_array_get(json_object_get(document, "scenarios"), 0), "inspection");
}

static json_t *reported(void)
{
    static const gmd_inspection *inspections[1];
    gmd_report report = *sample_report("run", &sample_passing, NULL, NULL);
    inspections[0] = seen;
    report.inspections = inspections;
    return inspection_of(&report);
}

static json_int_t number(const json_t *object, const char *key)
{
    assert_true(json_is_integer(json_object_get(object, key)));
    return json_integer_value(json_object_get(object, key));
}

TEST_F(inside, the_json_has_each_tensor_with_its_path)
{
    add_step(add_tensor("losses", 24, 512), GMD_STEP_NAME, "[2]");
    const json_t *tensor = json_array_get(json_object_get(reported(), "tensors"), 0);
    assert_string_equal(json_string_value(json_object_get(tensor, "name")), "losses[2]");
    assert_string_equal(json_string_value(json_object_get(tensor, "held_by")), "name");
    assert_int_equal(number(tensor, "asked"), 24);
    assert_int_equal(number(tensor, "used"), 512);
    const json_t *shape = json_object_get(tensor, "shape"), *path = json_object_get(tensor, "path");
    assert_int_equal(json_integer_value(json_array_get(shape, 1)), 3);
    assert_string_equal(json_string_value(json_array_get(path, 1)), "[2]");
}

TEST_F(inside, the_json_has_the_lines_that_ran)
{
    seen->lines[0] = (gmd_line_row){.line = 8, .times = 1, .change = -512};
    seen->lines[1] = (gmd_line_row){.line = 9};
    seen->line_count = 2;
    const json_t *lines = json_object_get(reported(), "lines");
    assert_int_equal(json_array_size(lines), 1);
    assert_int_equal(number(json_array_get(lines, 0), "change"), -512);
}

TEST_F(inside, a_run_that_nobody_looked_into_has_no_such_key)
{
    assert_null(inspection_of(sample_report("run", &sample_passing, NULL, NULL)));
}

/* --- repeats ----------------------------------------------------------------------------- */

static gmd_outcome runs[4];

static const gmd_report *report_runs(size_t count, bool are_placements)
{
    static const gmd_outcome *outcomes[4];
    static gmd_report report;
    static gmd_repeat repeat;
    static const uint64_t requests[] = {30, 10, 40, 21};
    for (size_t i = 0; i < count; i++) {
        runs[i] = sample_passing;
        runs[i].seed = 7 + i;
        runs[i].requests = requests[i];
        outcomes[i] = &runs[i];
    }
    repeat = (gmd_repeat){.count = count, .is_of_placements = are_placements};
    report = *sample_report("run", &sample_passing, NULL, NULL);
    report.outcomes = outcomes;
    report.outcome_count = count;
    report.repeats = &repeat;
    report.repeat_count = 1;
    return &report;
}

static const gmd_report *repeated(size_t count)
{
    return report_runs(count, false);
}

static const json_t *spread(const gmd_report *report, const char *key)
{
    (void)inspection_of(report);
    return json_object_get(json_array_get(json_object_get(document, "repeats"), 0), key);
}

TEST_F(inside, repeats_have_least_median_and_most)
{
    const json_t *requests = spread(repeated(3), "requests");
    assert_int_equal(number(requests, "min"), 10);
    assert_int_equal(number(requests, "median"), 30);
    assert_int_equal(number(requests, "max"), 40);
}

TEST_F(inside, the_median_of_an_even_number_lies_in_the_middle)
{
    assert_int_equal(number(spread(repeated(4), "requests"), "median"), 25); /* of 21 and 30 */
}

TEST_F(inside, a_figure_that_one_run_lacks_has_no_statistics)
{
    const gmd_report *report = repeated(3);
    runs[1].has_stats = false;
    const json_t *retries = spread(report, "num_alloc_retries");
    assert_true(json_is_null(retries));
}

TEST_F(inside, repeats_that_pass_are_shown_by_their_statistics_alone)
{
    screen = sample_terminal(repeated(3), (gmd_terminal){.color = false});
    assert_contains(screen, "growth  leak=true\n  3 of 3 runs pass, seeds 7 to 9\n");
    assert_contains(
        screen,
        "  requests                         10                    30                    40\n");
    assert_null(strstr(screen, "step 1"));
}

/* Three runs whose first phase reserves 300, 100 and 400 bytes: the first with rising addresses. */
static const gmd_report *placed(void)
{
    const gmd_report *report = report_runs(3, true);
    static const uint64_t reserved[] = {300 << 20, 100 << 20, 400 << 20};
    for (size_t i = 0; i < 3; i++) {
        runs[i].seed = 7;
        runs[i].phases[0].reserved = reserved[i];
        snprintf(runs[i].placement, sizeof runs[i].placement, i ? "seed %zu" : "", 6 + i);
    }
    return report;
}

static const json_t *placed_phase(const gmd_report *report, const char *key)
{
    (void)inspection_of(report);
    const json_t *entry = json_array_get(json_object_get(document, "placements"), 0);
    return json_object_get(json_array_get(json_object_get(entry, "phases"), 0), key);
}

TEST_F(inside, placements_have_each_phases_figures_with_rising_addresses_and_their_range)
{
    const gmd_report *report = placed();
    assert_int_equal(number(placed_phase(report, "rising"), "reserved"), 300 << 20);
    assert_int_equal(number(placed_phase(report, "min"), "reserved"), 100 << 20);
    assert_int_equal(number(placed_phase(report, "max"), "reserved"), 400 << 20);
    assert_null(json_object_get(document, "repeats"));
}

TEST_F(inside, a_phase_that_a_placement_does_not_reach_is_not_in_its_range)
{
    const gmd_report *report = placed();
    runs[2].phase_count = 0;
    assert_int_equal(number(placed_phase(report, "max"), "reserved"), 300 << 20);
    assert_int_equal(json_integer_value(placed_phase(report, "runs")), 2);
}

TEST_F(inside, a_figure_that_one_placement_does_not_know_has_no_range)
{
    const gmd_report *report = placed();
    runs[1].phases[0].reserved = GMD_STAT_UNKNOWN;
    assert_true(json_is_null(json_object_get(placed_phase(report, "max"), "reserved")));
}

TEST_F(inside, placements_are_shown_as_rows_of_least_and_most_where_they_are_apart)
{
    screen = sample_terminal(placed(), (gmd_terminal){.color = false});
    assert_contains(screen, "  3 of 3 runs pass: rising addresses, and orders of seeds 7 to 8\n");
    assert_contains(screen, "\n    least ");
    assert_contains(screen, "100.0 MiB");
    assert_contains(screen, "\n    most ");
    assert_contains(screen, "400.0 MiB");
}

TEST_F(inside, placements_tell_in_how_many_runs_a_bound_was_held)
{
    const gmd_report *report = placed();
    for (size_t i = 0; i < 3; i++) {
        runs[i].bounds[0] = (gmd_stated_bound){
            .is_reserved = true, .bytes = 350 << 20, .peak = runs[i].phases[0].reserved};
        runs[i].bound_count = 1;
    }
    screen = sample_terminal(report, (gmd_terminal){.color = false});
    assert_contains(screen, "  bound: reserved at most 350.0 MiB: held in 2 of 3 runs; peaks from "
                            "100.0 to 400.0 MiB\n");
}

TEST_F(inside, a_repeat_that_fails_is_shown_in_full)
{
    const gmd_report *report = repeated(3);
    runs[1].verdict = GMD_FAIL;
    screen = sample_terminal(report, (gmd_terminal){.color = false});
    assert_contains(screen, "step 1");
    assert_contains(screen, "2 of 3 runs pass");
}
