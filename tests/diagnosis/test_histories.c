/* Recorded jobs of which each has its mistake and is mended, and jobs whose model is compiled: the
 * class, and the guilty line first. */
#include "gmd_diagnosis.h"
#include "gmd_test.h"
#include "gmd_trace.h"

#include <stdio.h>
#include <string.h>

typedef struct recorded {
    const char *name;
    const char *class; /* NULL: healthy */
    uint32_t line;     /* of train.py, or of compiled.py */
} recorded;

static void is_told(void **state)
{
    const recorded *expected = *state;
    gmd_snapshot snapshot;
    gmd_diagnosis diagnosis;
    gmd_error error;
    char path[512];
    snprintf(path, sizeof path, "%s/%s.pickle.gz", GMD_DATA, expected->name);
    assert_int_equal(gmd_snapshot_read(&snapshot, path, &error), GMD_OK);
    assert_int_equal(gmd_diagnosis_make(&diagnosis, &snapshot, path, &error), GMD_OK);
    assert_int_equal(diagnosis.finding_count, expected->class ? 1 : 0);
    if (expected->class) {
        const gmd_job_finding *finding = diagnosis.findings[0].finding;
        const gmd_places *places = &diagnosis.devices[0].facts.places;
        assert_string_equal(gmd_finding_class_name(finding->class), expected->class);
        gmd_place place = gmd_places_get(places, finding->where[0].frame);
        assert_true(strstr(place.file, "train.py") || strstr(place.file, "compiled.py"));
        assert_int_equal(place.line, expected->line);
    }
    gmd_diagnosis_free(&diagnosis);
}

static recorded resnet_leak = {"histories/resnet50_leak", "gradient_accumulation", 37};
static recorded cycle_leak = {"histories/simple_cycle_leak", "reference_cycle", 45};
static recorded hidden_leak = {"histories/hidden_leak", "hidden_state", 107};
static recorded eval_leak = {"histories/eval_leak", "eval_graph", 114};
static recorded resnet_fixed = {"histories/resnet50_fixed", NULL, 0};
static recorded cycle_fixed = {"histories/simple_cycle_fixed", NULL, 0};
static recorded hidden_fixed = {"histories/hidden_fixed", NULL, 0};
static recorded eval_fixed = {"histories/eval_fixed", NULL, 0};

static recorded compiled = {"compiled/healthy", NULL, 0};
static recorded with_graphs = {"compiled/reduce_overhead", NULL, 0};
static recorded compiled_evaluation = {"compiled/eval_healthy", NULL, 0};
static recorded kept_losses = {"compiled/retained_graph", "retained_graph", 19};
static recorded kept_outputs = {"compiled/kept_outputs", "retained_graph", 19};
static recorded kept_gradients = {"compiled/gradient_accumulation", "gradient_accumulation", 69};
static recorded never_zeroed = {"compiled/unfreed", "gradient_accumulation", 78};
static recorded compiled_eval_graph = {"compiled/eval_graph", "eval_graph", 19};

TEST_ROW("resnet50_leak: gradients that nothing zeroes", is_told, &resnet_leak);
TEST_ROW("simple_cycle_leak: objects in a circle", is_told, &cycle_leak);
TEST_ROW("hidden_leak: a state that is not detached", is_told, &hidden_leak);
TEST_ROW("eval_leak: an evaluation with gradients on", is_told, &eval_leak);
TEST_ROW("resnet50_fixed: healthy", is_told, &resnet_fixed);
TEST_ROW("simple_cycle_fixed: healthy, since it collects by itself", is_told, &cycle_fixed);
TEST_ROW("hidden_fixed: healthy", is_told, &hidden_fixed);
TEST_ROW("eval_fixed: healthy", is_told, &eval_fixed);

TEST_ROW("a compiled model that is trained: healthy", is_told, &compiled);
TEST_ROW("one that CUDA graphs run: healthy", is_told, &with_graphs);
TEST_ROW("one that is evaluated: healthy", is_told, &compiled_evaluation);
TEST_ROW("one whose losses are kept: retained_graph", is_told, &kept_losses);
TEST_ROW("one whose outputs are kept: retained_graph", is_told, &kept_outputs);
TEST_ROW("one whose gradients are kept: the line of backward()", is_told, &kept_gradients);
TEST_ROW("one without zero_grad(): the line of backward()", is_told, &never_zeroed);
TEST_ROW("one that is evaluated with gradients on: eval_graph", is_told, &compiled_eval_graph);
