#include "category_timeline.h"

#include "live_block.h"

#include "gmd_grow.h"

#include <stdlib.h>

void gmd_timeline_made(gmd_timeline *timeline, gmd_seen *block)
{
    block->born = ++timeline->clock;
    timeline->bytes += block->used;
    if (timeline->bytes > timeline->peak_bytes) {
        timeline->peak_bytes = timeline->bytes;
        timeline->peak_clock = timeline->clock;
        timeline->dead_count = 0; /* they were not alive at this peak */
    }
}

void gmd_timeline_gone(gmd_timeline *timeline, const gmd_seen *block, gmd_inspection *out)
{
    timeline->bytes -= block->used;
    if (block->born > timeline->peak_clock) {
        return;
    }
    if (!GMD_GROW(&timeline->dead, &timeline->dead_capacity, timeline->dead_count + 1)) {
        out->no_memory = true;
        return;
    }
    timeline->dead[timeline->dead_count++] = (gmd_dead){block->used, block->storage->category};
}

void gmd_timeline_phase(gmd_timeline *timeline, const char *label, const gmd_seen *blocks,
                        gmd_inspection *out)
{
    gmd_phase_row row = {.label = 0};
    for (const gmd_seen *block = blocks; block; block = block->next) {
        row.end[block->storage->category] += block->used;
        if (block->born <= timeline->peak_clock) {
            row.peak[block->storage->category] += block->used;
        }
    }
    for (size_t i = 0; i < timeline->dead_count; i++) {
        row.peak[timeline->dead[i].category] += timeline->dead[i].used;
    }
    timeline->dead_count = 0;
    timeline->peak_bytes = timeline->bytes;
    timeline->peak_clock = timeline->clock;
    if (out->phase_count == GMD_INSPECT_PHASE_MAX) {
        out->phases_dropped++;
        return;
    }
    row.label = gmd_inspection_add_text(out, label);
    out->phases[out->phase_count++] = row;
}

void gmd_timeline_free(gmd_timeline *timeline)
{
    free(timeline->dead);
    timeline->dead = NULL;
}
