/* baseline.h - the figures of an earlier gate as a file: text, sorted, a line each, to be kept
 * beside the sources and reviewed like them.
 *
 *     gmd-baseline 1
 *     allocator ./libmine.so
 *     machine AMD EPYC, 2 cores
 *     memory scenarios/gpt/ample peak_reserved 2147483648 B
 *     speed churn_1000 time 1.013 ratio 0.998 1.021
 *
 * A line of figures has the category, the item, the name, the value, the unit, and for what is not
 * exact the interval that holds the true value. `#` starts a comment. */
#ifndef GMD_GATE_BASELINE_H
#define GMD_GATE_BASELINE_H

#include "gmd_error.h"
#include "gmd_gate_result.h"

typedef struct gate_baseline {
    char allocator[512];      /* SPEC */
    char machine[160];        /* where the figures of speed were measured */
    char versus[512];         /* SPEC of the allocator that they are held against */
    char conf[512];           /* settings; empty: none were given */
    gmd_gate_figure *figures; /* sorted by category, item and name */
    size_t count, capacity;
} gate_baseline;

/* GMD_BAD_INPUT names the file, the line and what was expected. On failure it is left empty. */
gmd_status baseline_read(gate_baseline *baseline, const char *path, gmd_error *error);

/* Whether the file can be written: GMD_BAD_INPUT says why not. Nothing is left behind. */
gmd_status baseline_probe(const char *path, gmd_error *error);

/* Replaces the file as a whole: writes another one beside it, which then takes its name. */
gmd_status baseline_write(const gate_baseline *baseline, const char *path, gmd_error *error);

/* Replaces the figure of that category, item and name, or adds it. baseline_sort is to be called
 * afterwards. */
gmd_status baseline_set(gate_baseline *baseline, const gmd_gate_figure *figure, gmd_error *error);
void baseline_sort(gate_baseline *baseline);

/* NULL: there is none. */
const gmd_gate_figure *baseline_find(const gate_baseline *baseline, const char *category,
                                     const char *item, const char *name);

/* Compares `figure` with `before`: fills in before, change and excess. An exact figure changes by
 * whatever differs; any other when the intervals lie apart by more than repeated measuring varies
 * by. */
void baseline_judge(gmd_gate_figure *figure, const gmd_gate_figure *before);

void baseline_free(gate_baseline *baseline);

#endif
