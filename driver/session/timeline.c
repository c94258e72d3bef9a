#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "timeline.h"

#include "session_internal.h"

#include "gmd_timeline.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

gmd_timeline *gmd_timeline_open(gmd_error *error)
{
    gmd_timeline *timeline = mmap(NULL, sizeof *timeline, PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (timeline == MAP_FAILED) {
        gmd_fail(error, GMD_NO_MEMORY, "no memory for the timeline of a run: %s", strerror(errno));
        return NULL;
    }
    return timeline;
}

void gmd_timeline_close(gmd_timeline *timeline)
{
    if (timeline) {
        munmap(timeline, sizeof *timeline);
    }
}

void gmd_session_note_timeline(gmd_session *s, const gmd_request *r)
{
    gmd_timeline *timeline = s->options->timeline;
    if (s->options->is_second_run) {
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
                                  .op = r->op,
                                  .device = device,
                                  .allocated = s->live_bytes[device],
                                  .reserved = GMD_STAT_UNKNOWN};
    if (r->op == GMD_OP_ALLOC) {
        entry->bytes = r->bytes;
        entry->address = gmd_session_address(s, r->block);
    }
    if (s->has_stats) {
        entry->allocated = s->stats[device].allocated_bytes;
        entry->reserved = s->stats[device].reserved_bytes;
    } else if (s->runtime.sim) {
        entry->reserved = s->figures[device].physical_bytes;
    }
}
