#include "category_timeline.h"

#include "live_block.h"

#include "gmd_grow.h"

#include <stdlib.h>

void category_timeline_made(struct category_timeline *timeline, struct live_block *block)
{
    block->born = ++timeline->clock;
    timeline->bytes += block->used;
    if (timeline->bytes > timeline->peak_bytes) {
        timeline->peak_bytes = timeline->bytes;
        timeline->peak_clock = timeline->clock;
        timeline->dead_count = 0; /* they were not alive at this peak */
    }
}

void category_timeline_gone(struct category_timeline *timeline, const struct live_block *block,
                            gmd_inspection *out)
{
    timeline->bytes -= block->used;
    if (block->born > timeline->peak_clock) {
        return;
    }
    if (!GMD_GROW(&timeline->dead, &timeline->dead_capacity, timeline->dead_count + 1)) {
        out->no_memory = true;
        return;
    }
    timeline->dead[timeline->dead_count++] =
        (struct dead_block){block->used, block->storage->category};
}

void category_timeline_phase(struct category_timeline *timeline, const char *label,
                             const struct live_block *blocks, gmd_inspection *out)
{
    gmd_phase_row row = {.label = 0};
    for (const struct live_block *block = blocks; block; block = block->next) {
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

void category_timeline_free(struct category_timeline *timeline)
{
    free(timeline->dead);
    timeline->dead = NULL;
}
