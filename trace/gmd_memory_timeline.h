/* gmd_memory_timeline.h - the memory timeline that torch.profiler exports: how much memory there
 * was of each category at each time, without blocks, lines or addresses.
 *
 * Two forms of JSON, torch/profiler/_memory_profiler.py: of export_memory_timeline("NAME.json"),
 * [[time, ...], [[0, bytes of each category...], ...]], times in microseconds; and of
 * "NAME.raw.json", [[time, action, bytes, category], ...], times in nanoseconds, -1 for what was
 * there before, and bytes less than 0 for what goes. */
#ifndef GMD_MEMORY_TIMELINE_H
#define GMD_MEMORY_TIMELINE_H

#include "gmd_category.h"
#include "gmd_error.h"

#include <stddef.h>
#include <stdint.h>

enum { GMD_TIMELINE_CATEGORIES = GMD_CATEGORIES + 1 }; /* GMD_CATEGORY_UNKNOWN is one */

typedef struct gmd_timeline_row {
    int64_t time_us;
    int64_t bytes[GMD_TIMELINE_CATEGORIES]; /* by gmd_category; all together are not below 0 */
} gmd_timeline_row;

typedef struct gmd_memory_timeline { /* in the order of the file, one row for each time */
    gmd_timeline_row *rows;
    size_t count, capacity;
} gmd_memory_timeline;

/* `name` is used in messages. GMD_BAD_INPUT: it is neither form, with the byte; the timeline is
 * then empty. */
gmd_status gmd_memory_timeline_parse(gmd_memory_timeline *timeline, const uint8_t *data,
                                     size_t size, const char *name, gmd_error *error);
void gmd_memory_timeline_free(gmd_memory_timeline *timeline);

/* All categories of a row. */
uint64_t gmd_timeline_allocated(const gmd_timeline_row *row);

/* The row with the most memory, the first of equal ones; 0 where there is none. */
size_t gmd_timeline_peak(const gmd_memory_timeline *timeline);

#endif
