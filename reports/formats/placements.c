#include "placements.h"

#include "gmd_report_text.h"
#include "outcome.h"
#include "repeats.h"

#include <inttypes.h>
#include <string.h>

static void widen(uint64_t value, uint64_t *least, uint64_t *most)
{
    if (value == GMD_STAT_UNKNOWN || *most == GMD_STAT_UNKNOWN) {
        *least = *most = GMD_STAT_UNKNOWN;
        return;
    }
    *least = value < *least ? value : *least;
    *most = value > *most ? value : *most;
}

/* The same phase of another run; NULL: it did not reach it. */
static const gmd_phase *counterpart(const gmd_outcome *outcome, uint32_t index, const char *label)
{
    const gmd_phase *phase = index < outcome->phase_count ? &outcome->phases[index] : NULL;
    return phase && strcmp(phase->label, label) == 0 ? phase : NULL;
}

phase_range placements_phase(const gmd_report *report, const gmd_repeat *repeat, uint32_t index)
{
    const gmd_phase *rising = &report->outcomes[repeat->first]->phases[index];
    phase_range range = {.rising = *rising, .least = *rising, .most = *rising};
    for (size_t i = 0; i < repeat->count; i++) {
        const gmd_outcome *outcome = report->outcomes[repeat->first + i];
        const gmd_phase *phase = counterpart(outcome, index, rising->label);
        if (phase) {
            range.runs++;
            widen(phase->allocated, &range.least.allocated, &range.most.allocated);
            widen(phase->max_allocated, &range.least.max_allocated, &range.most.max_allocated);
            widen(phase->reserved, &range.least.reserved, &range.most.reserved);
            widen(phase->max_reserved, &range.least.max_reserved, &range.most.max_reserved);
        }
    }
    return range;
}

bool phase_range_is_point(const phase_range *range)
{
    const gmd_phase *a = &range->least, *b = &range->most;
    return a->allocated == b->allocated && a->max_allocated == b->max_allocated &&
           a->reserved == b->reserved && a->max_reserved == b->max_reserved;
}

bound_range placements_bound(const gmd_report *report, const gmd_repeat *repeat, uint32_t index)
{
    const gmd_stated_bound *rising = &report->outcomes[repeat->first]->bounds[index];
    bound_range range = {.rising = *rising, .least = rising->peak, .most = rising->peak};
    for (size_t i = 0; i < repeat->count; i++) {
        const gmd_outcome *outcome = report->outcomes[repeat->first + i];
        if (index < outcome->bound_count) {
            const gmd_stated_bound *bound = &outcome->bounds[index];
            range.runs++;
            range.held += !gmd_stated_bound_is_passed(bound);
            widen(bound->peak, &range.least, &range.most);
        }
    }
    return range;
}

const char *bound_range_text(const bound_range *range, char text[BOUND_RANGE_TEXT])
{
    const gmd_stated_bound *bound = &range->rising;
    const gmd_phase figures = {.max_allocated = bound->bytes, .max_reserved = range->most};
    const gmd_table_unit unit = gmd_table_unit_for(&figures, 1);
    const char *figure = bound->is_reserved ? "reserved" : "allocated";
    char bytes[40], least[40], most[40];
    gmd_format_in_unit(bound->bytes, unit, bytes);
    if (range->most == GMD_STAT_UNKNOWN) {
        snprintf(text, BOUND_RANGE_TEXT, "%s at most %s %s: not seen", figure, bytes, unit.name);
        return text;
    }
    snprintf(text, BOUND_RANGE_TEXT,
             "%s at most %s %s: held in %zu of %zu runs; peaks from %s to %s %s%s", figure, bytes,
             unit.name, range->held, range->runs, gmd_format_in_unit(range->least, unit, least),
             gmd_format_in_unit(range->most, unit, most), unit.name,
             bound->leaks          ? " (this variant is made to pass it)"
             : bound->is_told_only ? " (not judged: the bound is of PyTorch's allocator)"
                                   : "");
    return text;
}

const char *placements_text(const gmd_report *report, const gmd_repeat *repeat,
                            char text[PLACEMENTS_TEXT])
{
    uint64_t seed = report->outcomes[repeat->first]->seed;
    int used = snprintf(text, PLACEMENTS_TEXT, "%zu of %zu runs pass: rising addresses",
                        repeat_passes(report, repeat), repeat->count);
    if (repeat->count > 1) {
        snprintf(text + used, PLACEMENTS_TEXT - (size_t)used,
                 ", and orders of seeds %" PRIu64 " to %" PRIu64, seed, seed + repeat->count - 2);
    }
    return text;
}

/* --- JSON -------------------------------------------------------------------------------- */

static void write_figures(gmd_json *json, const char *key, const gmd_phase *phase)
{
    gmd_json_row(json, key);
    phase_figures_json(json, phase);
    gmd_json_end(json);
}

static void write_phases(gmd_json *json, const gmd_report *report, const gmd_repeat *repeat)
{
    gmd_json_array(json, "phases");
    for (uint32_t i = 0; i < report->outcomes[repeat->first]->phase_count; i++) {
        const phase_range range = placements_phase(report, repeat, i);
        gmd_json_object(json, NULL);
        gmd_json_string(json, "label", range.rising.label);
        gmd_json_u64(json, "runs", range.runs);
        write_figures(json, "rising", &range.rising);
        write_figures(json, "min", &range.least);
        write_figures(json, "max", &range.most);
        gmd_json_end(json);
    }
    gmd_json_end(json);
}

static void write_bounds(gmd_json *json, const gmd_report *report, const gmd_repeat *repeat)
{
    gmd_json_array(json, "bounds");
    for (uint32_t i = 0; i < report->outcomes[repeat->first]->bound_count; i++) {
        const bound_range range = placements_bound(report, repeat, i);
        gmd_json_row(json, NULL);
        gmd_json_string(json, "figure", range.rising.is_reserved ? "reserved" : "allocated");
        gmd_json_u64(json, "bytes", range.rising.bytes);
        gmd_json_u64(json, "runs", range.runs);
        gmd_json_u64(json, "held", range.held);
        figure_json(json, "rising", range.rising.peak);
        figure_json(json, "min", range.least);
        figure_json(json, "max", range.most);
        gmd_json_end(json);
    }
    gmd_json_end(json);
}

void placements_json(gmd_json *json, const gmd_report *report)
{
    bool is_open = false;
    for (size_t i = 0; i < report->repeat_count; i++) {
        const gmd_repeat *repeat = &report->repeats[i];
        if (!repeat->is_of_placements) {
            continue;
        }
        if (!is_open) {
            gmd_json_array(json, "placements");
            is_open = true;
        }
        gmd_json_object(json, NULL);
        repeat_head_json(json, report, repeat);
        write_phases(json, report, repeat);
        write_bounds(json, report, repeat);
        gmd_json_end(json);
    }
    if (is_open) {
        gmd_json_end(json);
    }
}
