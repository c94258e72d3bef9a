/* figures.h - the figures of a run: what the allocator says of itself, and what its device tells.
 */
#ifndef GMD_FIGURES_H
#define GMD_FIGURES_H

#include "gmd_oracle.h"

/* Figures by device. The simulated device reports them; a real one does not, and its entries stay
 * zero. */
typedef struct run_figures {
    bool has_stats; /* the allocator exports statistics */
    gmd_stats stats[GMD_MAX_DEVICES];
    gmd_stats before; /* the request: of its device */
    uint64_t reserved_at_start[GMD_MAX_DEVICES], held_at_start[GMD_MAX_DEVICES];
    gmd_device_figures now[GMD_MAX_DEVICES];
    gmd_device_figures untouched[GMD_MAX_DEVICES]; /* before the allocator was loaded */
    gmd_device_figures baseline[GMD_MAX_DEVICES];  /* before the first request */
    uint64_t
        peak_reserved; /* of the first device, from outside: for allocators without statistics */
    uint64_t free_at_start; /* of a real device 0, before the allocator was loaded */
} run_figures;

/* Bytes that the allocator holds, as last read. */
uint64_t figures_held(const run_figures *figures, int device);

/* What was just read is from before the allocator was loaded; from before the first request. */
void figures_keep_untouched(run_figures *figures, int device);
void figures_keep_baseline(run_figures *figures, int device);

/* The device's memory has been read: is it a peak? And the peak starts again from what there is. */
static inline void figures_follow_peak(run_figures *f)
{
    if (f->now[0].physical_bytes > f->peak_reserved) {
        f->peak_reserved = f->now[0].physical_bytes;
    }
}

void figures_restart_peak(run_figures *figures);

/* Whether it holds more than before the first request: memory, events, streams and so on. */
bool figures_hold_more_than_at_start(const run_figures *figures, int device);

#endif
