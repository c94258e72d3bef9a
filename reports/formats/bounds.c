/* bounds.c - the bounds that a scenario stated of its memory, in a sentence each. */
#include "gmd_report_text.h"
#include "outcome.h"

static const char *fate_of(const gmd_stated_bound *bound)
{
    if (bound->peak == GMD_STAT_UNKNOWN) {
        return "not seen";
    }
    if (!gmd_stated_bound_is_passed(bound)) {
        return "held";
    }
    return "exceeded";
}

const char *bound_text(const gmd_outcome *outcome, uint32_t index, char text[BOUND_TEXT])
{
    const gmd_stated_bound *bound = &outcome->bounds[index];
    const gmd_phase figures = {.max_allocated = bound->bytes, .max_reserved = bound->peak};
    gmd_table_unit unit = gmd_table_unit_for(&figures, 1);
    char bytes[40], peak[40];
    int used = snprintf(text, BOUND_TEXT, "%s at most %s %s: %s",
                        bound->is_reserved ? "reserved" : "allocated",
                        gmd_format_in_unit(bound->bytes, unit, bytes), unit.name, fate_of(bound));
    if (bound->peak != GMD_STAT_UNKNOWN) {
        used += snprintf(text + used, BOUND_TEXT - (size_t)used, "; peak %s %s",
                         gmd_format_in_unit(bound->peak, unit, peak), unit.name);
    }
    if (!gmd_stated_bound_is_passed(bound)) {
        snprintf(text + used, BOUND_TEXT - (size_t)used, "%s",
                 bound->leaks ? " (this variant is made to exceed it, and did not here)" : "");
        return text;
    }
    if (bound->passed_phase < outcome->phase_count) {
        used += snprintf(text + used, BOUND_TEXT - (size_t)used, ", from phase %s on",
                         outcome->phases[bound->passed_phase].label);
    }
    snprintf(text + used, BOUND_TEXT - (size_t)used, "%s",
             bound->leaks          ? " (this variant is made to)"
             : bound->is_told_only ? " (not judged: the bound is of PyTorch's allocator)"
                                   : "");
    return text;
}
