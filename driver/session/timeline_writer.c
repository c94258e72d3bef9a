#include "timeline_writer.h"

#include "blocks.h"
#include "request_place.h"

void timeline_note(gmd_session *s, const gmd_request *r)
{
    gmd_timeline *timeline = s->options->recording.timeline;
    if (s->options->process.is_second_run) {
        return;
    }
    if (s->request_index == 0) {
        timeline->count = timeline->dropped = 0;
    }
    if (timeline->count == GMD_TIMELINE_MAX) {
        timeline->dropped++;
        return;
    }
    uint8_t device = r->device % GMD_MAX_DEVICES;
    gmd_timeline_entry *entry = &timeline->entries[timeline->count++];
    *entry = (gmd_timeline_entry){.block = r->block,
                                  .stream = r->stream,
                                  .line = place_of_request(s, r),
                                  .op = r->op,
                                  .device = device,
                                  .allocated = s->blocks.bytes[device],
                                  .reserved = GMD_STAT_UNKNOWN};
    if (r->op == GMD_OP_ALLOC) {
        entry->bytes = r->bytes;
        entry->address = live_blocks_address(&s->blocks, r->block);
    }
    if (s->figures.has_stats) {
        entry->allocated = s->figures.stats[device].allocated_bytes;
        entry->reserved = s->figures.stats[device].reserved_bytes;
    } else if (s->runtime.sim) {
        entry->reserved = s->figures.now[device].physical_bytes;
    }
}
