/* Any bytes are a JSON result, of runs or of a gate, or an error that names its place; what is
 * accepted has its texts and counts within their bounds, and is written again by every writer. */
#include "fuzz.h"

#include "gmd_report.h"
#include "gmd_result_file.h"

#include <stdbool.h>
#include <string.h>

#define FUZZ_REQUIRE_ENDED(text) FUZZ_REQUIRE(memchr((text), '\0', sizeof(text)))

static void require_sound(const gmd_outcome *o)
{
    FUZZ_REQUIRE_ENDED(o->name);
    FUZZ_REQUIRE_ENDED(o->kind);
    FUZZ_REQUIRE_ENDED(o->variant);
    FUZZ_REQUIRE_ENDED(o->path);
    FUZZ_REQUIRE_ENDED(o->error);
    FUZZ_REQUIRE(o->violation_count <= GMD_VIOLATION_MAX);
    FUZZ_REQUIRE(o->oracle_count <= GMD_ORACLE_MAX);
    FUZZ_REQUIRE(o->phase_count <= GMD_PHASE_MAX);
    FUZZ_REQUIRE(o->note_count <= GMD_NOTE_MAX);
    FUZZ_REQUIRE(o->bound_count <= GMD_BOUND_MAX);
    FUZZ_REQUIRE(o->verdict >= GMD_PASS && o->verdict <= GMD_UNFINISHED);
    FUZZ_REQUIRE(o->seconds >= 0);
}

static void require_sound_parts(const gmd_gate_result *gate)
{
    for (size_t i = 0; i < gate->part_count; i++) {
        const gmd_gate_part *p = &gate->parts[i];
        FUZZ_REQUIRE(p->name && p->category);
        FUZZ_REQUIRE_ENDED(p->reason);
        for (size_t k = 0; k < p->item_count; k++) {
            const gmd_gate_item *item = &p->items[k];
            FUZZ_REQUIRE_ENDED(item->name);
            FUZZ_REQUIRE_ENDED(item->detail);
            FUZZ_REQUIRE(item->fate >= GMD_GATE_PASSED && item->fate <= GMD_GATE_SKIPPED);
            FUZZ_REQUIRE(item->seconds >= 0);
        }
    }
}

static void require_sound_figures(const gmd_gate_result *gate)
{
    for (size_t i = 0; i < gate->figure_count; i++) {
        const gmd_gate_figure *f = &gate->figures[i];
        FUZZ_REQUIRE_ENDED(f->category);
        FUZZ_REQUIRE_ENDED(f->item);
        FUZZ_REQUIRE_ENDED(f->name);
        FUZZ_REQUIRE_ENDED(f->unit);
        FUZZ_REQUIRE_ENDED(f->detail);
        FUZZ_REQUIRE(f->change >= GMD_GATE_UNJUDGED && f->change <= GMD_GATE_LOST);
        FUZZ_REQUIRE(f->now.low >= 0 && f->now.low <= f->now.value && f->now.value <= f->now.high);
        FUZZ_REQUIRE(f->before.low >= 0 && f->before.high <= 0x1p63);
    }
}

/* The gate is one run, and both say the same of it. */
static void require_sound_gate(const gmd_report *report)
{
    const gmd_gate_result *gate = report->gate;
    FUZZ_REQUIRE(report->outcome_count == 1);
    FUZZ_REQUIRE(report->outcomes[0]->verdict == gmd_gate_verdict(gate));
    FUZZ_REQUIRE(gate->oracle_count <= GMD_ORACLE_MAX);
    FUZZ_REQUIRE(gate->baseline.note_count <= GMD_GATE_NOTE_MAX);
    FUZZ_REQUIRE_ENDED(gate->ended_early);
    FUZZ_REQUIRE_ENDED(gate->baseline.commands);
    require_sound_parts(gate);
    require_sound_figures(gate);
    for (size_t i = 0; i < gate->finding_count; i++) {
        FUZZ_REQUIRE_ENDED(gate->findings[i].violation.message);
        FUZZ_REQUIRE_ENDED(gate->findings[i].item);
        FUZZ_REQUIRE_ENDED(gate->findings[i].replay);
    }
}

static void require_written(const gmd_report *report)
{
    static gmd_status (*const writers[])(const gmd_report *, FILE *, gmd_error *) = {
        gmd_report_json, gmd_report_junit, gmd_report_markdown, gmd_report_sarif,
        gmd_report_openmetrics};
    for (size_t i = 0; i < sizeof writers / sizeof *writers; i++) {
        char *text = NULL;
        size_t size = 0;
        FILE *out = open_memstream(&text, &size);
        FUZZ_REQUIRE(out);
        FUZZ_REQUIRE(writers[i](report, out, NULL) == GMD_OK);
        fclose(out);
        FUZZ_REQUIRE(size > 0);
        free(text);
    }
}

/* "input:LINE:COLUMN: " of what is no JSON, "input: " and where in the tree of what is. */
static bool is_place(const char *message)
{
    static const char name[] = "input:";
    return strncmp(message, name, sizeof name - 1) == 0 && strstr(message, ": ") != NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gmd_result_file *result;
    gmd_error error = {""};
    gmd_status status = gmd_result_file_parse(&result, (const char *)data, size, "input", &error);
    if (status != GMD_OK) {
        FUZZ_REQUIRE(!result && status == GMD_BAD_INPUT && is_place(error.text));
        return 0;
    }
    gmd_report report = gmd_result_file_report(result);
    for (size_t i = 0; i < report.outcome_count; i++) {
        require_sound(report.outcomes[i]);
    }
    if (report.gate) {
        require_sound_gate(&report);
    }
    require_written(&report);
    gmd_result_file_free(result);
    return 0;
}
