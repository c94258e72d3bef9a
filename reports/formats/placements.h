/* placements.h - how far the figures of one workload are apart where the device's addresses come in
 * other orders. */
#ifndef GMD_REPORTS_PLACEMENTS_H
#define GMD_REPORTS_PLACEMENTS_H

#include "gmd_json.h"
#include "gmd_report.h"

/* A phase: with rising addresses, and the least and the most of all runs that reached it. A figure
 * that one of them does not know is GMD_STAT_UNKNOWN in both. */
typedef struct phase_range {
    gmd_phase rising, least, most;
    size_t runs;
} phase_range;

/* Phase number `index` of the first run, which must have one. */
phase_range placements_phase(const gmd_report *report, const gmd_repeat *repeat, uint32_t index);

/* The runs agree in all four figures. */
bool phase_range_is_point(const phase_range *range);

/* Bound number `index` of the first run: peaks from `least` to `most`, and whether it was held. */
typedef struct bound_range {
    gmd_stated_bound rising;
    uint64_t least, most;
    size_t runs, held;
} bound_range;
bound_range placements_bound(const gmd_report *report, const gmd_repeat *repeat, uint32_t index);

/* "reserved at most 474.0 MiB: held in 20 of 21 runs; peaks from 350.0 to 480.0 MiB" */
enum { BOUND_RANGE_TEXT = 256 };
const char *bound_range_text(const bound_range *range, char text[BOUND_RANGE_TEXT]);

/* "20 of 21 runs pass: rising addresses, and orders of seeds 0 to 19" */
enum { PLACEMENTS_TEXT = 160 };
const char *placements_text(const gmd_report *report, const gmd_repeat *repeat,
                            char text[PLACEMENTS_TEXT]);

/* The array "placements" of an open object; nothing where no placement was drawn. */
void placements_json(gmd_json *json, const gmd_report *report);

#endif
