#include "device_state.h"

#include "device_access.h"
#include "history.h"
#include "walk.h"

#include "gmd_grow.h"

#include <stdlib.h>

typedef struct copier {
    device_state *to;
    const device_allocator *device;
    bool is_short; /* of host memory */
} copier;

static bool reserve(device_state *s)
{
    return GMD_GROW(&s->segments, &s->segment_capacity, s->segment_count + 1) &&
           GMD_GROW(&s->blocks, &s->block_capacity, s->block_count + 1);
}

static segment_state *add_segment(copier *c, const gmd_block_info *info)
{
    device_state *s = c->to;
    segment_state *added = &s->segments[s->segment_count++];
    *added = (segment_state){
        .address = info->segment_address,
        .total_size = info->segment_size,
        .stream = info->stream,
        .pool_id = {info->pool_id[0], info->pool_id[1]},
        .stack = segment_stacks_at(&c->device->history.segments, info->segment_address),
        .is_large = info->is_large,
        .is_expandable = info->is_expandable,
        .first_block = s->block_count,
    };
    return added;
}

static void copy_block(void *context, const block *b, const gmd_block_info *info)
{
    copier *c = context;
    device_state *s = c->to;
    if (c->is_short || !reserve(s)) {
        c->is_short = true;
        return;
    }
    bool is_first = !s->segment_count || info->address == info->segment_address;
    segment_state *in = is_first ? add_segment(c, info) : &s->segments[s->segment_count - 1];
    bool is_active = info->state != 0;
    in->allocated_size += info->state == 1 ? info->size : 0;
    in->active_size += is_active ? info->size : 0;
    in->requested_size += is_active ? info->requested_size : 0;
    in->block_count++;
    bool has_stack = is_active && c->device->history.epoch;
    s->blocks[s->block_count++] =
        (block_state){.address = info->address,
                      .size = info->size,
                      .requested_size = info->requested_size,
                      .stack = has_stack ? block_detail_seen(b)->stack : 0,
                      .state = info->state};
}

static uint64_t active_bytes(const device_state *s)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < s->segment_count; i++) {
        bytes += s->segments[i].active_size;
    }
    return bytes;
}

bool device_state_copy(device_state *s, device_allocator *d)
{
    *s = (device_state){0};
    copier c = {.to = s, .device = d};
    device_enter(d);
    bool is_copied = walk_blocks(d, copy_block, &c) && !c.is_short &&
                     history_collect(d, &s->events, &s->event_count);
    s->start = d->history.start;
    s->end = ticks_moment_now();
    if (is_copied) {
        history_note_snapshot(d, active_bytes(s)); /* shows in the next one, as in PyTorch's */
    }
    device_leave(d);
    return is_copied;
}

void device_state_release(device_state *s)
{
    free(s->segments);
    free(s->blocks);
    free(s->events);
    *s = (device_state){0};
}
