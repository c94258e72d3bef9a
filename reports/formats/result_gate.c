/* result_gate.c - write_gate.c and the JSON of gate_figures.c the other way round. */
#include "result_gate.h"

#include "gate.h"
#include "gate_figures.h"
#include "outcome.h"

#include <stdlib.h>
#include <string.h>

static const char *const categories[] = {"correctness", "memory", "speed", NULL};

/* A list that is freed with the gate; there is always one more, so that none is no failure. */
static void *make_list(result_reader *r, size_t count, size_t bytes)
{
    void *list = r->status == GMD_OK ? calloc(count + 1, bytes) : NULL;
    if (!list) {
        result_fail_memory(r);
    }
    return list;
}

/* --- parts ------------------------------------------------------------------------------- */

/* What has no such text has null. */
static void read_optional(result_reader *r, const json_t *from, const char *key, char *text,
                          size_t size)
{
    result_copy(r, result_member(r, from, key, RESULT_STRING, false), text, size);
}

static void read_counts(result_reader *r, const json_t *from, gmd_gate_item *item)
{
    result_text(r, from, "name", item->name, sizeof item->name);
    item->runs = result_number(r, from, "runs", UINT64_MAX);
    item->requests = result_number(r, from, "requests", UINT64_MAX);
    item->seconds = result_seconds(r, from, "seconds");
}

static void read_skipped(result_reader *r, const json_t *from, gmd_gate_item *item)
{
    item->fate = GMD_GATE_SKIPPED;
    read_counts(r, from, item);
    result_text(r, from, "reason", item->detail, sizeof item->detail);
}

static void read_item(result_reader *r, const json_t *from, gmd_gate_item *item)
{
    static const char *const verdicts[] = {"pass", "fail", NULL};
    item->fate = result_word(r, from, "verdict", verdicts) ? GMD_GATE_FAILED : GMD_GATE_PASSED;
    read_counts(r, from, item);
    item->hits = result_number(r, from, "hits", UINT64_MAX);
    read_optional(r, from, "note", item->detail, sizeof item->detail);
}

/* The items with what was skipped in between, each at its index. */
static void read_items(result_reader *r, const json_t *from, gmd_gate_part *part)
{
    const json_t *run = result_array(r, from, "items", RESULT_OBJECT, UINT32_MAX);
    const json_t *skipped = result_array(r, from, "skipped", RESULT_OBJECT, UINT32_MAX);
    size_t count = json_array_size(run) + json_array_size(skipped), next = 0, next_skipped = 0;
    part->items = make_list(r, count, sizeof *part->items);
    while (r->status == GMD_OK && part->item_count < count) {
        gmd_gate_item *item = &part->items[part->item_count];
        const json_t *one = json_array_get(skipped, next_skipped);
        bool is_skipped = one && result_number(r, one, "index", UINT32_MAX) == part->item_count;
        if (is_skipped) {
            read_skipped(r, one, item);
            next_skipped++;
        } else if (next < json_array_size(run)) {
            read_item(r, json_array_get(run, next++), item);
        } else {
            result_refuse(r, one, "\"index\": there is no such place among the part's items");
        }
        part->item_count++;
    }
}

static void read_part(result_reader *r, const json_t *from, gmd_gate_part *part)
{
    static const char *const verdicts[] = {"pass", "fail", "not run", NULL};
    part->name = result_string(r, from, "name");
    part->category = categories[result_word(r, from, "category", categories)];
    part->what = "";
    read_optional(r, from, "reason", part->reason, sizeof part->reason);
    read_items(r, from, part);
    const char *stated = verdicts[result_word(r, from, "verdict", verdicts)];
    const char *items = gmd_verdict_name(gmd_gate_part_verdict(part));
    part->was_run = strcmp(stated, "not run") != 0;
    /* What failed was run. */
    if (strcmp(stated, items) != 0 && (part->was_run || strcmp(items, "fail") == 0)) {
        result_refuse(r, from, "\"verdict\" is \"%s\", and that of the items together \"%s\"",
                      stated, items);
    }
}

static void read_parts(result_reader *r, const json_t *from, gmd_gate_result *gate)
{
    const json_t *all = result_array(r, from, "parts", RESULT_OBJECT, UINT32_MAX);
    gate->parts = make_list(r, json_array_size(all), sizeof *gate->parts);
    for (size_t i = 0; i < json_array_size(all) && r->status == GMD_OK; i++) {
        read_part(r, json_array_get(all, i), &gate->parts[gate->part_count++]);
    }
}

/* --- findings ---------------------------------------------------------------------------- */

static void read_finding(result_reader *r, const json_t *from, gmd_gate_finding *f)
{
    gmd_violation *v = &f->violation;
    result_text(r, from, "oracle", v->oracle, sizeof v->oracle);
    result_identity(r, from, v->oracle, &v->identity);
    result_text(r, from, "message", v->message, sizeof v->message);
    result_moment(r, from, v);
    result_limit(r, from, v);
    read_optional(r, from, "case", v->case_path, sizeof v->case_path);
    read_optional(r, from, "case_unfinished", f->unfinished, sizeof f->unfinished);
    result_text(r, from, "cause", f->cause, sizeof f->cause);
    result_text(r, from, "part", f->part, sizeof f->part);
    result_text(r, from, "item", f->item, sizeof f->item);
    result_text(r, from, "replay", f->replay, sizeof f->replay);
    f->case_requests = result_number(r, from, "case_requests", SIZE_MAX);
    f->hits = result_number(r, from, "times", UINT64_MAX);
    f->seconds = result_seconds(r, from, "seconds");
}

static void read_findings(result_reader *r, const json_t *from, gmd_gate_result *gate)
{
    const json_t *all = result_array(r, from, "findings", RESULT_OBJECT, UINT32_MAX);
    gate->findings = make_list(r, json_array_size(all), sizeof *gate->findings);
    for (size_t i = 0; i < json_array_size(all) && r->status == GMD_OK; i++) {
        read_finding(r, json_array_get(all, i), &gate->findings[gate->finding_count++]);
    }
}

/* --- figures ----------------------------------------------------------------------------- */

/* An exact value is its own interval. */
static gmd_gate_span read_span(result_reader *r, const json_t *from, const char *key,
                               const char *interval)
{
    double value = result_quantity(r, from, key);
    gmd_gate_span span = {value, value, value};
    const json_t *ends = NULL;
    if (result_member(r, from, interval, RESULT_ARRAY, false)) {
        ends = result_array(r, from, interval, RESULT_NUMBER, 2);
    }
    if (ends) {
        span.low = json_number_value(json_array_get(ends, 0));
        span.high = json_number_value(json_array_get(ends, 1));
        bool is_around = json_array_size(ends) == 2 && span.low >= 0 && span.low <= value &&
                         value <= span.high && span.high <= RESULT_QUANTITY_MAX;
        if (!is_around) {
            result_refuse(r, ends, "expected two numbers from 0, with \"%s\" between them", key);
        }
    }
    return span;
}

static void read_figure(result_reader *r, const json_t *from, gmd_gate_figure *f)
{
    const char *category = categories[result_word(r, from, "category", categories)];
    snprintf(f->category, sizeof f->category, "%s", category);
    result_text(r, from, "item", f->item, sizeof f->item);
    result_text(r, from, "name", f->name, sizeof f->name);
    result_text(r, from, "unit", f->unit, sizeof f->unit);
    f->change = result_word(r, from, "change", gate_changes);
    if (f->change == GMD_GATE_LOST) {
        result_text(r, from, "reason", f->detail, sizeof f->detail);
    } else {
        f->now = read_span(r, from, "value", "interval");
    }
    if (f->change != GMD_GATE_UNJUDGED) {
        f->before = read_span(r, from, "before", "before_interval");
        f->excess = f->change == GMD_GATE_LOST ? 0 : gmd_gate_excess(f->now, f->before);
    }
}

static void read_figures(result_reader *r, const json_t *from, gmd_gate_result *gate)
{
    const json_t *all = result_array(r, from, "figures", RESULT_OBJECT, UINT32_MAX);
    gate->figures = make_list(r, json_array_size(all), sizeof *gate->figures);
    for (size_t i = 0; i < json_array_size(all) && r->status == GMD_OK; i++) {
        read_figure(r, json_array_get(all, i), &gate->figures[gate->figure_count++]);
    }
}

static void read_baseline(result_reader *r, const json_t *from, gmd_gate_against *baseline)
{
    const json_t *b = result_member(r, from, "baseline", RESULT_OBJECT, false);
    if (!b) {
        return;
    }
    result_text(r, b, "path", baseline->path, sizeof baseline->path);
    result_text(r, b, "command", baseline->commands, sizeof baseline->commands);
    baseline->was_written = result_bool(r, b, "written");
    const json_t *notes = result_array(r, b, "notes", RESULT_STRING, GMD_GATE_NOTE_MAX);
    for (size_t i = 0; i < json_array_size(notes); i++) {
        result_copy(r, json_array_get(notes, i), baseline->notes[i], sizeof *baseline->notes);
        baseline->note_count++;
    }
}

/* --- the whole --------------------------------------------------------------------------- */

void result_gate(result_reader *r, const json_t *root, gmd_gate_result *gate)
{
    const json_t *from = result_member(r, root, "gate", RESULT_OBJECT, true);
    result_oracles(r, from, gate->oracles, &gate->oracle_count);
    gate->seed = result_number(r, root, "seed", UINT64_MAX);
    gate->is_quick = result_bool(r, from, "quick");
    read_optional(r, from, "ended_early", gate->ended_early, sizeof gate->ended_early);
    if (result_member(r, from, "ended_by", RESULT_STRING, false)) { /* an older gmd has none */
        gate->ended_by = result_word(r, from, "ended_by", gate_ends);
    }
    gate->seconds = result_seconds(r, from, "seconds");
    if (result_member(r, from, "known_violations", RESULT_NUMBER, false)) {
        gate->known_count = result_number(r, from, "known_violations", UINT64_MAX);
    }
    read_baseline(r, from, &gate->baseline);
    read_figures(r, from, gate);
    read_parts(r, from, gate);
    read_findings(r, from, gate);
}
