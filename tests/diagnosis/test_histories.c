/* The eight recorded jobs of issue 18, each with its mistake and mended: the class, and the guilty
 * line first. */
#include "gmd_diagnosis.h"
#include "gmd_test.h"
#include "gmd_trace.h"

#include <stdio.h>
#include <string.h>

typedef struct recorded {
    const char *name;
    const char *class; /* NULL: healthy */
    uint32_t line;     /* of train.py */
} recorded;

static void is_told(void **state)
{
    const recorded *expected = *state;
    gmd_snapshot snapshot;
    gmd_diagnosis diagnosis;
    gmd_error error;
    char path[512];
    snprintf(path, sizeof path, "%s/%s.pickle.gz", GMD_HISTORIES, expected->name);
    assert_int_equal(gmd_snapshot_read(&snapshot, path, &error), GMD_OK);
    assert_int_equal(gmd_diagnosis_make(&diagnosis, &snapshot, path, &error), GMD_OK);
    assert_int_equal(diagnosis.finding_count, expected->class ? 1 : 0);
    if (expected->class) {
        const gmd_job_finding *finding = diagnosis.findings[0].finding;
        const gmd_places *places = &diagnosis.devices[0].facts.places;
        assert_string_equal(gmd_finding_class_name(finding->class), expected->class);
        gmd_place place = gmd_places_get(places, finding->where[0].frame);
        assert_non_null(strstr(place.file, "train.py"));
        assert_int_equal(place.line, expected->line);
    }
    gmd_diagnosis_free(&diagnosis);
}

static recorded resnet_leak = {"resnet50_leak", "gradient_accumulation", 37};
static recorded cycle_leak = {"simple_cycle_leak", "reference_cycle", 45};
static recorded hidden_leak = {"hidden_leak", "hidden_state", 107};
static recorded eval_leak = {"eval_leak", "eval_graph", 114};
static recorded resnet_fixed = {"resnet50_fixed", NULL, 0};
static recorded cycle_fixed = {"simple_cycle_fixed", NULL, 0};
static recorded hidden_fixed = {"hidden_fixed", NULL, 0};
static recorded eval_fixed = {"eval_fixed", NULL, 0};

TEST_ROW("resnet50_leak: gradients that nothing zeroes", is_told, &resnet_leak);
TEST_ROW("simple_cycle_leak: objects in a circle", is_told, &cycle_leak);
TEST_ROW("hidden_leak: a state that is not detached", is_told, &hidden_leak);
TEST_ROW("eval_leak: an evaluation with gradients on", is_told, &eval_leak);
TEST_ROW("resnet50_fixed: healthy", is_told, &resnet_fixed);
TEST_ROW("simple_cycle_fixed: healthy, since it collects by itself", is_told, &cycle_fixed);
TEST_ROW("hidden_fixed: healthy", is_told, &hidden_fixed);
TEST_ROW("eval_fixed: healthy", is_told, &eval_fixed);
