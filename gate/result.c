#include "gmd_gate_result.h"

#include "gmd_error.h"
#include "gmd_size.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

gmd_verdict gmd_gate_part_verdict(const gmd_gate_part *part)
{
    for (size_t i = 0; i < part->item_count; i++) {
        if (part->items[i].fate == GMD_GATE_FAILED) {
            return GMD_FAIL;
        }
    }
    return GMD_PASS;
}

gmd_verdict gmd_gate_verdict(const gmd_gate_result *result)
{
    bool has_failed = result->finding_count || gmd_gate_regressions(result, NULL, NULL);
    for (size_t i = 0; i < result->part_count; i++) {
        has_failed = has_failed || gmd_gate_part_verdict(&result->parts[i]) == GMD_FAIL;
    }
    return result->ended_by == GMD_GATE_INTERRUPTED ? GMD_UNFINISHED
           : result->ended_by == GMD_GATE_BROKEN    ? GMD_ERROR
           : has_failed                             ? GMD_FAIL
           : result->ended_early[0]                 ? GMD_ERROR /* what is left was not judged */
                                                    : GMD_PASS;
}

/* --- categories and figures -------------------------------------------------------------- */

const char *gmd_gate_category(size_t index)
{
    static const char *const names[] = {"correctness", "memory", "speed"};
    return index < sizeof names / sizeof *names ? names[index] : NULL;
}

gmd_verdict gmd_gate_category_verdict(const gmd_gate_result *result, const char *category,
                                      bool *was_run)
{
    bool has_failed = gmd_gate_regressions(result, category, NULL) > 0;
    *was_run = false;
    for (size_t i = 0; i < result->part_count; i++) {
        if (strcmp(result->parts[i].category, category) == 0) {
            *was_run = *was_run || result->parts[i].was_run;
            has_failed = has_failed || gmd_gate_part_verdict(&result->parts[i]) == GMD_FAIL;
        }
    }
    return has_failed                                 ? GMD_FAIL
           : result->ended_by == GMD_GATE_INTERRUPTED ? GMD_UNFINISHED
           : result->ended_by == GMD_GATE_BROKEN      ? GMD_ERROR
                                                      : GMD_PASS;
}

bool gmd_gate_is_regression(const gmd_gate_figure *figure)
{
    return figure->change == GMD_GATE_WORSE || figure->change == GMD_GATE_LOST;
}

double gmd_gate_excess(gmd_gate_span now, gmd_gate_span before)
{
    return (now.value - before.value) / (before.value > 0 ? before.value : 1);
}

size_t gmd_gate_figures(const gmd_gate_result *result, const char *category, const char *item,
                        gmd_gate_change change)
{
    size_t sum = 0;
    for (size_t i = 0; i < result->figure_count; i++) {
        const gmd_gate_figure *f = &result->figures[i];
        bool is_of = (!category || strcmp(f->category, category) == 0) &&
                     (!item || strcmp(f->item, item) == 0);
        sum += is_of && f->change == change;
    }
    return sum;
}

size_t gmd_gate_regressions(const gmd_gate_result *result, const char *category, const char *item)
{
    return gmd_gate_figures(result, category, item, GMD_GATE_WORSE) +
           gmd_gate_figures(result, category, item, GMD_GATE_LOST);
}

static const char *put_value(const gmd_gate_figure *f, double value, char text[64])
{
    char bytes[24];
    if (strcmp(f->unit, "B") == 0) {
        snprintf(text, 64, "%s", gmd_format_size((uint64_t)value, bytes));
    } else if (strcmp(f->unit, "ppm") == 0) {
        snprintf(text, 64, "%.2f %%", value / 10000);
    } else if (strcmp(f->unit, "ratio") == 0) {
        snprintf(text, 64, "%.3g x", value);
    } else {
        snprintf(text, 64, "%.0f", value);
    }
    return text;
}

const char *gmd_gate_figure_text(const gmd_gate_figure *f, char *text, size_t size)
{
    char now[64], before[64];
    put_value(f, f->now.value, now);
    put_value(f, f->before.value, before);
    if (f->change == GMD_GATE_UNJUDGED) {
        snprintf(text, size, "%s %s", f->name, now);
    } else if (f->change == GMD_GATE_LOST) {
        snprintf(text, size, "%s was %s and cannot be measured: %s", f->name, before, f->detail);
    } else if (f->now.low < f->now.high) {
        snprintf(text, size, "%s %s (%.3g to %.3g), was %s (%.3g to %.3g): %+.0f %%", f->name, now,
                 f->now.low, f->now.high, before, f->before.low, f->before.high, f->excess * 100);
    } else if (f->before.value > 0) {
        snprintf(text, size, "%s %s, was %s: %+.*f %%", f->name, now, before,
                 f->excess < 0.1 && f->excess > -0.1 ? 2 : 0, f->excess * 100);
    } else {
        snprintf(text, size, "%s %s, was %s", f->name, now, before);
    }
    return text;
}

const char *gmd_gate_figure_command(const gmd_gate_result *result, const gmd_gate_figure *f,
                                    char *text, size_t size)
{
    snprintf(text, size, "%s --only %s/%s", result->baseline.commands, f->category, f->item);
    return text;
}

/* --- parts ------------------------------------------------------------------------------- */

uint64_t gmd_gate_part_runs(const gmd_gate_part *part)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < part->item_count; i++) {
        sum += part->items[i].runs;
    }
    return sum;
}

uint64_t gmd_gate_part_requests(const gmd_gate_part *part)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < part->item_count; i++) {
        sum += part->items[i].requests;
    }
    return sum;
}

double gmd_gate_part_seconds(const gmd_gate_part *part)
{
    double sum = 0;
    for (size_t i = 0; i < part->item_count; i++) {
        sum += part->items[i].seconds;
    }
    return sum;
}

size_t gmd_gate_part_skipped(const gmd_gate_part *part)
{
    size_t sum = 0;
    for (size_t i = 0; i < part->item_count; i++) {
        sum += part->items[i].fate == GMD_GATE_SKIPPED;
    }
    return sum;
}

size_t gmd_gate_part_findings(const gmd_gate_result *result, const gmd_gate_part *part)
{
    size_t sum = 0;
    for (size_t i = 0; i < result->finding_count; i++) {
        sum += strcmp(result->findings[i].part, part->name) == 0;
    }
    return sum;
}

/* --- the whole --------------------------------------------------------------------------- */

void gmd_gate_outcome(const gmd_gate_result *result, gmd_outcome *outcome)
{
    snprintf(outcome->name, sizeof outcome->name, "gate");
    snprintf(outcome->kind, sizeof outcome->kind, "gate");
    outcome->verdict = gmd_gate_verdict(result);
    if (outcome->verdict == GMD_ERROR || outcome->verdict == GMD_UNFINISHED) {
        outcome->error_status = outcome->verdict == GMD_UNFINISHED ? GMD_INTERRUPTED : GMD_FAILED;
        snprintf(outcome->error, sizeof outcome->error, "%s: what is left was not judged",
                 result->ended_early);
    }
    outcome->seconds = result->seconds;
    outcome->seed = result->seed;
    for (size_t i = 0; i < result->part_count; i++) {
        outcome->requests += gmd_gate_part_requests(&result->parts[i]);
    }
    outcome->known_count = result->known_count;
    gmd_outcome_note_known(outcome);
    gmd_outcome_note_troubles(outcome, result->restarts, result->left_behind);
    outcome->oracle_count = result->oracle_count;
    memcpy(outcome->oracles, result->oracles, sizeof result->oracles);
    for (size_t i = 0; i < result->finding_count && i < GMD_VIOLATION_MAX; i++) {
        outcome->violations[outcome->violation_count++] = result->findings[i].violation;
    }
}

void gmd_gate_result_free(gmd_gate_result *result)
{
    for (size_t i = 0; i < result->part_count; i++) {
        free(result->parts[i].items);
    }
    free(result->parts);
    free(result->findings);
    free(result->figures);
    *result = (gmd_gate_result){0};
}
