/* Looking inside a run: small scripts whose right answers can be computed by hand. Blocks are
 * rounded to 512 bytes by the bench, as PyTorch's allocator does. */
#include "gmd_test.h"
#include "scenario_bench.h"

#include <stdio.h>
#include <string.h>

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

static gmd_inspection *seen;

static int release(void **state)
{
    (void)state;
    gmd_inspection_close(seen);
    seen = NULL;
    return 0;
}

FIXTURE(inspection, NULL, release);

/* What is seen of `text`, whose first line is line 2, at the end of `phase` (NULL: of the script).
 */
static void look_at(uint32_t wanted, const char *phase, const char *text)
{
    gmd_error error;
    seen = gmd_inspection_open(wanted, phase, &error);
    assert_non_null(seen);
    bench *run = bench_run_inspected(text, seen, 0);
    bench_assert_ok(run);
    bench_free(run);
    assert_true(seen->is_complete);
    assert_false(seen->no_memory);
}

/* --- the run itself ---------------------------------------------------------------------- */

static const char *const of_a_convolution =
    "conv = nn.Conv2d { 64, 128, 3, padding = 1, bias = false }\n"
    "out = conv(randn { 8, 64, 28, 28 })\n"
    "phase('end')\n";

TEST_F(inspection, a_run_that_is_looked_into_tells_lines_and_workspaces_as_others_do)
{
    gmd_error error;
    seen = gmd_inspection_open(GMD_INSPECT_LINES, NULL, &error);
    assert_non_null(seen);
    bench *plain = bench_run(of_a_convolution);
    bench_assert_ok(plain);
    bench *inspected = bench_run_inspected(of_a_convolution, seen, 0);
    bench_assert_ok(inspected);
    assert_true(plain->with_lines > 0);
    assert_int_equal(inspected->with_lines, plain->with_lines);
    assert_true(plain->workspaces.recorded + plain->workspaces.estimated > 0);
    assert_int_equal(inspected->workspaces.recorded + inspected->workspaces.estimated,
                     plain->workspaces.recorded + plain->workspaces.estimated);
    bench_free(inspected);
    bench_free(plain);
}

/* --- lines ------------------------------------------------------------------------------- */

static const gmd_line_row *line(uint32_t number)
{
    const gmd_line_row *row;
    for (uint32_t i = 0; (row = gmd_inspection_line(seen, i)); i++) {
        if (row->line == number) {
            return row;
        }
    }
    fail_msg("line %u has no row", number);
    return NULL;
}

TEST_F(inspection, a_line_has_the_largest_figures_of_its_executions)
{
    look_at(
        GMD_INSPECT_LINES, NULL,
        "a = empty { 1048576, dtype = 'uint8' }\n"
        "for i = 1, 3 do\n"
        "  b = empty { 2097152, dtype = 'uint8' }\n" /* the new one is there before the old goes */
        "end\n"
        "a = nil\n");
    assert_int_equal(line(2)->active_peak, 1 * MIB);
    assert_int_equal(line(4)->active_peak, 5 * MIB);
    assert_int_equal(line(4)->times, 3);
    assert_int_equal(line(4)->active, 3 * MIB);
}

TEST_F(inspection, the_change_of_a_line_is_the_sum_over_its_executions)
{
    look_at(GMD_INSPECT_LINES, NULL,
            "kept = list()\n"
            "for i = 1, 4 do\n"
            "  kept:append(empty { 512, dtype = 'uint8' })\n"
            "end\n"
            "kept = nil\n"
            "done = true\n");
    assert_int_equal(line(4)->change, 4 * 512);
    assert_int_equal(line(6)->change, -4 * 512);
}

TEST_F(inspection, the_lines_of_a_function_lie_within_the_line_that_calls_it)
{
    look_at(GMD_INSPECT_LINES, NULL,
            "function scratch()\n"
            "  x = empty { 1048576, dtype = 'uint8' }\n"
            "  x = nil\n"
            "end\n"
            "scratch()\n"
            "y = empty { 512, dtype = 'uint8' }\n");
    assert_int_equal(line(3)->active_peak, 1 * MIB);
    assert_int_equal(line(6)->active_peak, 1 * MIB);
    assert_int_equal(line(6)->change, 0);
    assert_int_equal(line(7)->active_peak, 512);
}

static const gmd_phase_row *phase(const char *label)
{
    const gmd_phase_row *row;
    for (uint32_t i = 0; (row = gmd_inspection_phase(seen, i)); i++) {
        if (strcmp(gmd_inspection_text(seen, row->label), label) == 0) {
            return row;
        }
    }
    fail_msg("no phase '%s'", label);
    return NULL;
}

TEST_F(inspection, what_a_line_does_after_a_call_is_its_own)
{
    look_at(GMD_INSPECT_LINES, NULL,
            "function small()\n"
            "  return empty { 512, dtype = 'uint8' }\n"
            "end\n"
            "x, y = small(), empty { 1048576, dtype = 'uint8' }\n"
            "phase 'end'\n");
    assert_int_equal(line(3)->active_peak, 512);
    assert_int_equal(line(5)->active_peak, 512 + 1 * MIB);
}

TEST_F(inspection, recursion_counts_a_change_once)
{
    look_at(GMD_INSPECT_LINES, NULL,
            "kept = list()\n"
            "function down(n)\n"
            "  kept:append(empty { 512, dtype = 'uint8' })\n"
            "  if n > 1 then down(n - 1) kept:append(empty { 512, dtype = 'uint8' }) end\n"
            "end\n"
            "down(4)\n");
    assert_int_equal(line(4)->change, 4 * 512);
    assert_int_equal(line(5)->change, 6 * 512); /* three frames below the first, and three after */
    assert_int_equal(line(7)->change, 7 * 512);
}

TEST_F(inspection, an_error_that_is_caught_ends_the_lines_below)
{
    look_at(GMD_INSPECT_LINES, NULL,
            "function fails()\n"
            "  error('no')\n"
            "end\n"
            "ok = pcall(fails)\n"
            "x = empty { 1048576, dtype = 'uint8' }\n"
            "phase 'end'\n");
    assert_int_equal(line(3)->active_peak, 0);
    assert_int_equal(line(6)->active_peak, 1 * MIB);
}

TEST_F(inspection, the_declaration_is_no_part_of_the_profile)
{
    gmd_error error;
    seen = gmd_inspection_open(GMD_INSPECT_LINES, NULL, &error);
    assert_non_null(seen);
    bench *run = bench_run_file_inspected("local name =\n  'a'\n\nscenario {\n  name = name,\n"
                                          "  summary = 'b',\n}\n\nx = 1\n",
                                          seen);
    bench_assert_ok(run);
    bench_free(run);
    assert_int_equal(gmd_inspection_line(seen, 0)->line, 9);
}

TEST_F(inspection, lines_between_are_shown_with_those_that_ran)
{
    look_at(GMD_INSPECT_LINES, NULL, "\n-- a comment\nx = 1\n\ny = 2\n");
    assert_int_equal(gmd_inspection_line(seen, 0)->line, 4);
    assert_string_equal(gmd_inspection_text(seen, line(4)->code), "x = 1");
    assert_int_equal(line(5)->times, 0);
    assert_int_equal(line(6)->times, 1);
}

/* --- categories -------------------------------------------------------------------------- */

/* w and x: 4 KiB each; their product, which is saved by the square: 4 KiB; the square: 4 KiB; the
 * sum: one number. */
static const char training[] = "w = randn { 1024, requires_grad = true }\n"
                               "x = randn { 1024 }\n"
                               "loss = (w * x):square():sum()\n"
                               "phase 'forward'\n"
                               "loss:backward()\n"
                               "phase 'backward'\n";

TEST_F(inspection, bytes_are_told_by_what_they_are_for)
{
    look_at(GMD_INSPECT_TIMELINE, NULL, training);
    const uint64_t *bytes = phase("forward")->end;
    assert_int_equal(bytes[GMD_PARAMETER], 4 * KIB);
    assert_int_equal(bytes[GMD_INPUT], 4 * KIB); /* saved by the product, and still an input */
    assert_int_equal(bytes[GMD_ACTIVATION], 4 * KIB + 512);
    assert_int_equal(bytes[GMD_GRADIENT], 0);
    assert_int_equal(bytes[GMD_TEMPORARY], 0);
}

TEST_F(inspection, what_became_a_gradient_is_one)
{
    look_at(GMD_INSPECT_TIMELINE, NULL, training);
    const uint64_t *bytes = phase("backward")->end;
    assert_int_equal(bytes[GMD_GRADIENT], 4 * KIB);
    assert_int_equal(bytes[GMD_ACTIVATION], 512); /* the loss */
}

/* In backward(): the gradient of the loss (512 B), then of the square, its power and its double.
 * The gradient of the product comes after those have gone. */
TEST_F(inspection, the_peak_of_a_phase_is_taken_apart)
{
    look_at(GMD_INSPECT_TIMELINE, NULL, training);
    const uint64_t *bytes = phase("backward")->peak;
    assert_int_equal(bytes[GMD_PARAMETER], 4 * KIB);
    assert_int_equal(bytes[GMD_INPUT], 4 * KIB);
    assert_int_equal(bytes[GMD_ACTIVATION], 4 * KIB + 512);
    assert_int_equal(bytes[GMD_TEMPORARY], 512 + 12 * KIB);
}

TEST_F(inspection, a_peak_belongs_to_its_phase)
{
    look_at(GMD_INSPECT_TIMELINE, NULL,
            "x = empty { 1048576, dtype = 'uint8' }\nx = nil\nphase 'a'\n"
            "y = empty { 512, dtype = 'uint8' }\ny = nil\nphase 'b'\n");
    assert_int_equal(phase("a")->peak[GMD_INPUT], 1 * MIB);
    assert_int_equal(phase("b")->peak[GMD_INPUT], 512);
    assert_int_equal(phase("b")->end[GMD_INPUT], 0);
}

static uint64_t peak_of(const char *label)
{
    uint64_t sum = 0;
    for (int i = 0; i < GMD_CATEGORIES; i++) {
        sum += phase(label)->peak[i];
    }
    return sum;
}

TEST_F(inspection, what_died_before_the_peak_is_no_part_of_it)
{
    look_at(GMD_INSPECT_TIMELINE, NULL,
            "x = empty { 1048576, dtype = 'uint8' }\nx = nil\n"
            "y = empty { 2097152, dtype = 'uint8' }\ny = nil\nphase 'a'\n");
    assert_int_equal(peak_of("a"), 2 * MIB);
}

TEST_F(inspection, what_came_after_the_peak_is_no_part_of_it)
{
    look_at(GMD_INSPECT_TIMELINE, NULL,
            "x = empty { 2097152, dtype = 'uint8' }\nx = nil\n"
            "y = empty { 1048576, dtype = 'uint8' }\ny = nil\n"
            "z = empty { 512, dtype = 'uint8' }\nphase 'a'\n");
    assert_int_equal(peak_of("a"), 2 * MIB);
}

TEST_F(inspection, modules_optimizers_and_workspaces_have_their_categories)
{
    look_at(GMD_INSPECT_TIMELINE, NULL,
            "model = nn.Linear { 1024, 256, bias = false }\n" /* 1 MiB */
            "optimizer = optim.Adam { model, lr = 0.1 }\n"
            "model(randn { 2, 1024 }):sum():backward()\n"
            "optimizer:step()\n"
            "phase 'step'\n");
    const uint64_t *bytes = phase("step")->end;
    assert_int_equal(bytes[GMD_PARAMETER], 1 * MIB);
    assert_int_equal(bytes[GMD_GRADIENT], 1 * MIB);
    assert_int_equal(bytes[GMD_OPTIMIZER_STATE], 2 * MIB);
    assert_int_equal(bytes[GMD_WORKSPACE], 64 * MIB); /* of both threads */
    assert_int_equal(bytes[GMD_ACTIVATION] + bytes[GMD_INPUT] + bytes[GMD_TEMPORARY], 0);
}

TEST_F(inspection, a_script_without_phases_has_its_end)
{
    look_at(GMD_INSPECT_TIMELINE, NULL, "x = randn { 128 }\n");
    assert_int_equal(phase("(end)")->end[GMD_INPUT], 512);
}

/* --- tensors ----------------------------------------------------------------------------- */

static const char *path_of(const gmd_tensor_row *row)
{
    static char path[512];
    return gmd_inspection_path(seen, row, false, path, sizeof path);
}

static const gmd_tensor_row *find_tensor(const char *path)
{
    const gmd_tensor_row *row;
    for (uint32_t i = 0; (row = gmd_inspection_tensor(seen, i)); i++) {
        if (strcmp(path_of(row), path) == 0) {
            return row;
        }
    }
    return NULL;
}

static const gmd_tensor_row *tensor(const char *path)
{
    const gmd_tensor_row *found = find_tensor(path), *row;
    if (!found) {
        for (uint32_t i = 0; (row = gmd_inspection_tensor(seen, i)); i++) {
            print_message("  there is: %s\n", path_of(row));
        }
        fail_msg("no tensor is held as '%s'", path);
    }
    return found;
}

TEST_F(inspection, a_tensor_has_its_shape_and_what_its_block_uses)
{
    look_at(GMD_INSPECT_TENSORS, NULL, "\na = randn { 2, 3, dtype = 'float16' }\n");
    const gmd_tensor_row *a = tensor("a");
    assert_string_equal(gmd_inspection_text(seen, a->shape), "[2, 3]");
    assert_string_equal(gmd_inspection_text(seen, a->dtype), "float16");
    assert_int_equal(a->asked, 12);
    assert_int_equal(a->used, 512);
    assert_int_equal(a->line, 3);
    assert_int_equal(seen->small.used - seen->small.asked, 500);
}

TEST_F(inspection, a_view_shares_the_block_of_its_tensor)
{
    look_at(GMD_INSPECT_TENSORS, NULL, "a = randn { 4, 32 }\nb = a:view { 128 }\n");
    const gmd_tensor_row *a = tensor("a"), *b = tensor("b");
    assert_int_equal(a->shares, GMD_INSPECT_NONE);
    assert_ptr_equal(gmd_inspection_tensor(seen, b->shares), a);
    assert_int_equal(seen->held[GMD_HELD_BY_NAME].blocks, 1);
}

/* pytorch_memlab's example of memory that it cannot explain: of inp * (inp + 2) the second factor
 * has no name. */
TEST_F(inspection, what_only_the_graph_has_saved_is_seen)
{
    look_at(GMD_INSPECT_TENSORS, NULL,
            "inp = randn { 512, 1024, requires_grad = true }\nout = inp * (inp + 2)\n");
    const gmd_tensor_row *saved = tensor("out -> MulBackward -> saved[1]");
    assert_false(saved->is_tensor);
    assert_int_equal(saved->used, 2 * MIB);
    assert_string_equal(gmd_inspection_text(seen, saved->shape), "[512, 1024]");
    assert_int_equal(seen->held[GMD_HELD_BY_GRAPH].used, 2 * MIB);
    assert_int_equal(seen->held[GMD_HELD_BY_NAME].used, 4 * MIB);
}

TEST_F(inspection, the_parts_add_up_to_what_is_allocated)
{
    look_at(GMD_INSPECT_TENSORS, NULL,
            "model = nn.resnet50()\noptimizer = optim.SGD { model, lr = 0.1, momentum = 0.9 }\n"
            "x = randn { 2, 3, 64, 64 }\nkept = list()\n"
            "for i = 1, 2 do\n  out = model(x)\n  kept:append(out)\n"
            "  out:sum():backward { retain_graph = true }\n  optimizer:step()\nend\n");
    uint64_t sum = 0;
    for (int i = 0; i < GMD_HOLDERS; i++) {
        sum += seen->held[i].used;
    }
    assert_int_equal(sum, seen->allocated);
    assert_int_equal(seen->held[GMD_HELD_AS_GRAD].blocks, 161);
    assert_int_equal(seen->held[GMD_HELD_BY_STATE].blocks, 161);
    assert_int_equal(seen->held[GMD_HELD_INSIDE].blocks, 0);
}

TEST_F(inspection, tensors_can_be_looked_at_in_the_middle)
{
    look_at(GMD_INSPECT_TENSORS, "middle",
            "a = randn { 128 }\nphase 'middle'\na = nil\nb = randn { 128 }\nphase 'end'\n");
    assert_true(seen->was_reached);
    assert_int_equal(tensor("a")->used, 512);
    assert_null(find_tensor("b"));
}

TEST_F(inspection, of_phases_with_one_label_the_first_is_looked_at)
{
    look_at(GMD_INSPECT_TENSORS, "step",
            "a = randn { 128 }\nphase 'step'\na, b = nil, randn { 128 }\nphase 'step'\n");
    assert_non_null(tensor("a"));
    assert_null(find_tensor("b"));
    assert_int_equal(seen->held[GMD_HELD_BY_NAME].blocks, 1);
}

TEST_F(inspection, a_block_alone_has_the_shape_that_it_was_made_for)
{
    look_at(GMD_INSPECT_TENSORS, NULL,
            "w = randn { 4, 32, requires_grad = true }\nout = (w + 1):view { 128 }:square()\n");
    const gmd_tensor_row *saved = tensor("out -> PowBackward -> saved[0]");
    assert_string_equal(gmd_inspection_text(seen, saved->shape), "[4, 32]");
}

TEST_F(inspection, a_phase_that_does_not_come_is_told)
{
    look_at(GMD_INSPECT_TENSORS, "never", "a = randn { 128 }\nphase 'end'\n");
    assert_false(seen->was_reached);
    assert_int_equal(seen->tensor_count, 0);
}

TEST_F(inspection, out_of_memory_shows_what_was_alive_then)
{
    gmd_error error;
    seen = gmd_inspection_open(GMD_INSPECT_TENSORS, NULL, &error);
    assert_non_null(seen);
    bench *run = bench_run_inspected(
        "kept = list()\nwhile true do\n  kept:append(empty { 1048576, dtype = 'uint8' })\nend\n",
        seen, 3 * MIB);
    assert_true(run->out_of_memory);
    bench_free(run);
    assert_int_equal(tensor("kept[3]")->used, 1 * MIB);
    assert_int_equal(seen->allocated, 3 * MIB);
}

TEST_F(inspection, sizes_come_first_and_views_follow_their_owner)
{
    look_at(GMD_INSPECT_TENSORS, NULL,
            "small = randn { 128 }\nlarge = randn { 4096 }\nview = small:view { 2, 64 }\n");
    assert_string_equal(path_of(gmd_inspection_tensor(seen, 0)), "large");
    assert_string_equal(path_of(gmd_inspection_tensor(seen, 1)), "small");
    assert_string_equal(path_of(gmd_inspection_tensor(seen, 2)), "view");
}

/* --- retention --------------------------------------------------------------------------- */

TEST_F(inspection, a_path_leads_through_objects_and_lists)
{
    look_at(GMD_INSPECT_RETENTION, NULL,
            "history = object()\nhistory.losses = list()\n"
            "history.losses:append(randn { 128 })\nhistory.losses:append(randn { 128 })\n");
    assert_int_equal(tensor("history.losses[2]")->holder, GMD_HELD_BY_NAME);
}

TEST_F(inspection, the_shortest_path_is_told)
{
    look_at(GMD_INSPECT_RETENTION, NULL,
            "o = object()\no.first = object()\nx = randn { 128 }\no.first.x = x\n");
    assert_non_null(tensor("x"));
    assert_null(find_tensor("o.first.x"));
}

TEST_F(inspection, parameters_are_named_as_in_a_state_dict)
{
    look_at(GMD_INSPECT_RETENTION, NULL,
            "optimizer = nil\nmodel = nn.Sequential { nn.Linear { 4, 4 }, nn.LSTM { 4, 8 } }\n"
            "optimizer = optim.Adam { model, lr = 0.1 }\n"
            "model(randn { 2, 3, 4 }):sum():backward()\noptimizer:step()\n");
    assert_int_equal(tensor("model.0.weight")->holder, GMD_HELD_BY_NAME);
    assert_int_equal(tensor("model.0.bias.grad")->holder, GMD_HELD_AS_GRAD);
    assert_int_equal(tensor("model.1.weight_hh_l0")->holder, GMD_HELD_BY_NAME);
    assert_int_equal(tensor("optimizer.state[0].exp_avg_sq")->holder, GMD_HELD_BY_STATE);
}

TEST_F(inspection, a_loss_that_is_kept_holds_its_graph)
{
    look_at(GMD_INSPECT_RETENTION, NULL,
            "w = randn { 1024, requires_grad = true }\nlosses = list()\n"
            "for i = 1, 3 do\n  losses:append((w + 1):square():sum())\nend\n");
    const gmd_tensor_row *saved = tensor("losses[2] -> SumBackward -> PowBackward -> saved[0]");
    char pattern[256];
    assert_int_equal(saved->holder, GMD_HELD_BY_GRAPH);
    assert_string_equal(gmd_inspection_path(seen, saved, true, pattern, sizeof pattern),
                        "losses[*] -> SumBackward -> ... -> PowBackward -> saved[*]");
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

static const gmd_tensor_row *tensor_that_ends_with(const char *end)
{
    const gmd_tensor_row *row;
    for (uint32_t i = 0; (row = gmd_inspection_tensor(seen, i)); i++) {
        if (ends_with(path_of(row), end)) {
            return row;
        }
    }
    fail_msg("no path ends with '%s'", end);
    return NULL;
}

/* The leaf has no name: 44 steps lead to it, of which 8 and 7 are kept. */
TEST_F(inspection, a_long_chain_keeps_both_ends)
{
    look_at(GMD_INSPECT_RETENTION, NULL,
            "h = randn { 1024, requires_grad = true }:square()\n"
            "for i = 1, 40 do\n  h = h + 1\nend\n");
    const gmd_tensor_row *leaf =
        tensor_that_ends_with("-> PowBackward -> AccumulateGrad -> variable");
    const gmd_step *gap = gmd_inspection_step(seen, leaf, GMD_INSPECT_PATH_MAX / 2);
    assert_int_equal(leaf->step_count, GMD_INSPECT_PATH_MAX);
    assert_int_equal(gap->kind, GMD_STEP_SKIPPED);
    assert_string_equal(gmd_inspection_text(seen, gap->text), "(29 more)");
}

TEST_F(inspection, what_only_a_cycle_holds_is_told_with_the_cycle)
{
    look_at(GMD_INSPECT_RETENTION, NULL,
            "a, b = object(), object()\na.other, b.other = b, a\na.data = randn { 128 }\n"
            "a, b = nil, nil\n");
    const gmd_tensor_row *data = tensor("(cycle object.other.other).data");
    assert_int_equal(data->holder, GMD_HELD_BY_CYCLE);
    assert_int_equal(seen->held[GMD_HELD_BY_CYCLE].used, 512);
}

TEST_F(inspection, an_object_that_holds_itself_is_a_cycle)
{
    look_at(GMD_INSPECT_RETENTION, NULL,
            "a = object()\na.callback = list()\na.callback:append(a)\na.data = randn { 128 }\n"
            "a = nil\n");
    assert_non_null(tensor("(cycle object.callback[1]).data"));
}

TEST_F(inspection, what_hangs_on_a_cycle_is_held_by_it)
{
    look_at(GMD_INSPECT_RETENTION, NULL,
            "a, held = object(), list()\nheld:append(randn { 128 })\na.self, a.held = a, held\n"
            "a, held = nil, nil\n");
    assert_non_null(tensor("(cycle object.self).held[1]"));
}

TEST_F(inspection, a_cycle_that_a_variable_leads_to_is_no_leak)
{
    look_at(GMD_INSPECT_RETENTION, NULL,
            "a, b = object(), object()\na.other, b.other = b, a\nb.data = randn { 128 }\n");
    assert_int_equal(tensor("b.data")->holder, GMD_HELD_BY_NAME);
}

/* However near it is to the cycle, and however far from the variable. */
TEST_F(inspection, what_a_variable_and_a_cycle_hold_is_the_variables)
{
    look_at(GMD_INSPECT_RETENTION, NULL,
            "a, x = object(), randn { 128 }\na.self, a.x = a, x\n"
            "far = list()\nfar:append(list())\nfar[1]:append(list())\nfar[1][1]:append(x)\n"
            "a, x = nil, nil\n");
    assert_int_equal(tensor("far[1][1][1]")->holder, GMD_HELD_BY_NAME);
}

TEST_F(inspection, an_optimizer_holds_its_parameters)
{
    look_at(GMD_INSPECT_RETENTION, NULL,
            "model = nn.Linear { 8, 8, bias = false }\noptimizer = optim.SGD { model, lr = 0.1 }\n"
            "model = nil\n");
    assert_int_equal(tensor("optimizer.params[0]")->holder, GMD_HELD_BY_NAME);
}

TEST_F(inspection, workspaces_are_the_librarys)
{
    look_at(GMD_INSPECT_RETENTION, NULL,
            "model = nn.Linear { 4, 4, bias = false }\ny = model(randn { 2, 4 })\n");
    assert_int_equal(tensor("(workspace of cuBLAS)")->holder, GMD_HELD_BY_LIBRARY);
}

TEST_F(inspection, a_grad_fn_that_is_kept_holds_its_graph)
{
    look_at(GMD_INSPECT_RETENTION, NULL,
            "w = randn { 1024, requires_grad = true }\nfns = list()\n"
            "fns:append((w + 1):square().grad_fn)\n");
    assert_int_equal(tensor("fns[1] -> PowBackward -> saved[0]")->holder, GMD_HELD_BY_GRAPH);
}

static void expect_all_explained(void *context, const char *name)
{
    gmd_error error;
    (void)context;
    gmd_inspection_close(seen);
    seen = gmd_inspection_open(GMD_INSPECT_ALL, NULL, &error);
    assert_non_null(seen);
    bench *run = bench_run_named_inspected(name, seen);
    bench_assert_ok(run);
    bench_free(run);
    uint64_t sum = 0;
    for (int i = 0; i < GMD_HOLDERS; i++) {
        sum += seen->held[i].used;
    }
    if (sum != seen->allocated || seen->held[GMD_HELD_INSIDE].blocks) {
        fail_msg("%s: of %llu bytes %llu are not explained", name,
                 (unsigned long long)seen->allocated,
                 (unsigned long long)(seen->allocated - sum + seen->held[GMD_HELD_INSIDE].used));
    }
}

/* A class of things whose references the walk does not know would show here. */
TEST_F(inspection, what_is_left_of_every_scenario_is_explained)
{
    gmd_error error;
    assert_int_equal(gmd_scenario_each(GMD_SCENARIO_FOLDER, expect_all_explained, NULL, &error),
                     GMD_OK);
}

/* --- the run itself ---------------------------------------------------------------------- */

TEST_F(inspection, looking_changes_no_request)
{
    bench *plain = bench_run(training);
    gmd_error error;
    seen = gmd_inspection_open(GMD_INSPECT_ALL, "forward", &error);
    bench *watched = bench_run_inspected(training, seen, 0);
    assert_int_equal(plain->requests, watched->requests);
    assert_int_equal(plain->hash, watched->hash);
    bench_free(plain);
    bench_free(watched);
}

TEST_F(inspection, an_error_in_the_script_still_names_its_line)
{
    gmd_error error;
    seen = gmd_inspection_open(GMD_INSPECT_ALL, NULL, &error);
    bench *run = bench_run_inspected("x = randn { 2 }\ny = x + randn { 3 }\n", seen, 0);
    bench_assert_refused(run, ":3: add:");
    bench_free(run);
}

TEST_F(inspection, an_endless_loop_still_ends)
{
    gmd_error error;
    seen = gmd_inspection_open(GMD_INSPECT_ALL, NULL, &error);
    bench *run = bench_run_inspected("while true do end\n", seen, 0);
    bench_assert_refused(run, ":2: the script used up its");
    bench_free(run);
}
