#include "snapshot_state.h"

#include "gmd_address_table.h"

#include "gmd_grow.h"
#include "gmd_intervals.h"
#include "gmd_min.h"

#include <stdlib.h>
#include <string.h>

enum { SMALL_SEGMENT = 2 << 20 }; /* PyTorch's: no other allocator says which pool one is of */

typedef struct builder {
    snapshot_state *state;
    const gmd_journal *journal;
    uint64_t event_count;
    size_t live_count, live_max;
    gmd_address_table live; /* blocks: by address the event of the allocation, twice, and 1 more
                           where it is freed and pending */
    gmd_intervals segments; /* to the events that they came with */
} builder;

static gmd_action action_of(const gmd_journal_event *e)
{
    return (gmd_action)(e->action - 1);
}

/* --- parts -------------------------------------------------------------------------------- */

static snapshot_state_segment *add_segment(snapshot_state *s,
                                           const gmd_snapshot_file_segment *segment)
{
    if (!GMD_GROW(&s->segments, &s->segment_capacity, s->segment_count + 1)) {
        return NULL;
    }
    s->segments[s->segment_count] =
        (snapshot_state_segment){.segment = *segment, .first_block = s->block_count};
    return &s->segments[s->segment_count++];
}

/* To the segment that was added last. */
static bool add_block(snapshot_state *s, snapshot_state_segment *to,
                      const gmd_snapshot_file_block *b)
{
    if (!GMD_GROW(&s->blocks, &s->block_capacity, s->block_count + 1)) {
        return false;
    }
    s->blocks[s->block_count++] = *b;
    to->block_count++;
    to->segment.allocated_size += b->state == GMD_BLOCK_ALLOCATED ? b->size : 0;
    to->segment.active_size += b->state != GMD_BLOCK_INACTIVE ? b->size : 0;
    to->segment.requested_size += b->state != GMD_BLOCK_INACTIVE ? b->requested_size : 0;
    return true;
}

/* --- what follows from the events --------------------------------------------------------- */

/* The most blocks at a time; more only where the allocator has written over the events. */
static size_t most_live(const builder *b)
{
    size_t live = 0, most = 0;
    for (uint64_t i = 0; i < b->event_count; i++) {
        gmd_action action = action_of(&b->journal->events[i]);
        live += action == GMD_ACTION_ALLOC;
        live -= action == GMD_ACTION_FREE_COMPLETED && live;
        most = gmd_max(live, most);
    }
    return most;
}

static void put_live(builder *b, uint64_t address, uint32_t value)
{
    if (b->live_count < b->live_max && gmd_address_table_put(&b->live, address, value)) {
        b->live_count++;
    }
}

static bool take_live(builder *b, uint64_t address, uint32_t *value)
{
    bool is_there = address && gmd_address_table_take(&b->live, address, value);
    b->live_count -= is_there;
    return is_there;
}

static void follow_block(builder *b, const gmd_journal_event *e, uint32_t index)
{
    uint32_t made = 0;
    bool is_known = take_live(b, e->address, &made);
    if (action_of(e) == GMD_ACTION_ALLOC && e->address) {
        put_live(b, e->address, 2 * index); /* in the place of one that is there */
    } else if (action_of(e) == GMD_ACTION_FREE_REQUESTED && is_known) {
        put_live(b, e->address, made | 1);
    }
}

/* False: no host memory. */
static bool remove_range(gmd_intervals *set, uint64_t address, uint64_t end)
{
    for (;;) {
        const gmd_interval *found = gmd_intervals_after(set, address);
        if (!found || found->address >= end) {
            return true;
        }
        gmd_interval cut = *found;
        gmd_intervals_remove(set, cut.address);
        if ((cut.address < address &&
             !gmd_intervals_insert(set, cut.address, address, cut.value)) ||
            (cut.end > end && !gmd_intervals_insert(set, end, cut.end, cut.value))) {
            return false;
        }
    }
}

static bool follow_segment(builder *b, const gmd_journal_event *e, uint32_t index)
{
    uint64_t end = e->address + e->size;
    bool is_made =
        action_of(e) == GMD_ACTION_SEGMENT_ALLOC || action_of(e) == GMD_ACTION_SEGMENT_MAP;
    return end <= e->address ||
           (remove_range(&b->segments, e->address, end) &&
            (!is_made || gmd_intervals_insert(&b->segments, e->address, end, index)));
}

static bool follow_events(builder *b)
{
    b->live_max = most_live(b);
    bool is_done = gmd_address_table_make(&b->live, b->live_max + 1);
    for (uint64_t i = 0; i < b->event_count && is_done; i++) {
        const gmd_journal_event *e = &b->journal->events[i];
        switch (action_of(e)) {
        case GMD_ACTION_ALLOC:
        case GMD_ACTION_FREE_REQUESTED:
        case GMD_ACTION_FREE_COMPLETED:
            follow_block(b, e, (uint32_t)i);
            break;
        case GMD_ACTION_SEGMENT_ALLOC:
        case GMD_ACTION_SEGMENT_FREE:
        case GMD_ACTION_SEGMENT_MAP:
        case GMD_ACTION_SEGMENT_UNMAP:
            is_done = follow_segment(b, e, (uint32_t)i);
            break;
        default:
            break;
        }
    }
    return is_done;
}

/* --- a state from them -------------------------------------------------------------------- */

static int compare_blocks(const void *a, const void *b)
{
    const gmd_snapshot_file_block *x = a, *y = b;
    return (x->address > y->address) - (x->address < y->address);
}

/* A block's segment tells which device it is on: addresses of several are distinct. */
static gmd_snapshot_file_block *list_live(const builder *b, size_t *count)
{
    size_t capacity = 0;
    *count = 0;
    for (size_t i = 0; i <= b->live.mask; i++) {
        capacity += b->live.slots[i].address != 0;
    }
    gmd_snapshot_file_block *list = malloc((capacity + 1) * sizeof *list);
    for (size_t i = 0; i <= b->live.mask && list; i++) {
        const gmd_address_slot *slot = &b->live.slots[i];
        if (slot->address) {
            const gmd_journal_event *e = &b->journal->events[slot->value / 2];
            list[(*count)++] = (gmd_snapshot_file_block){
                .address = e->address,
                .size = e->size,
                .requested_size = e->size,
                .state = slot->value & 1 ? GMD_BLOCK_PENDING_FREE : GMD_BLOCK_ALLOCATED,
                .stack = slot->value / 2 + 1};
        }
    }
    if (list) {
        qsort(list, *count, sizeof *list, compare_blocks);
    }
    return list;
}

/* Where the device's calls are not seen, a block is all that is known of its segment. */
static bool cover(builder *b, const gmd_snapshot_file_block *block)
{
    uint64_t at = block->address, end = block->address + block->size;
    while (at < end) {
        const gmd_interval *next = gmd_intervals_after(&b->segments, at);
        if (next && next->address <= at) {
            at = next->end;
            continue;
        }
        uint64_t until = next && next->address < end ? next->address : end;
        if (!gmd_intervals_insert(&b->segments, at, until, block->stack - 1)) {
            return false;
        }
        at = until;
    }
    return true;
}

static bool put_gap(snapshot_state *s, snapshot_state_segment *to, uint64_t address, uint64_t end)
{
    return address == end ||
           add_block(s, to, &(gmd_snapshot_file_block){.address = address, .size = end - address});
}

/* Blocks that overlap are there only in an allocator with a defect: the part that is not the one's
 * before it is the other's. */
static bool fill(snapshot_state *s, snapshot_state_segment *to, const gmd_snapshot_file_block *live,
                 size_t count, size_t *next)
{
    bool is_done = true;
    uint64_t at = to->segment.address, end = at + to->segment.total_size;
    for (; *next < count && live[*next].address < end && is_done; (*next)++) {
        gmd_snapshot_file_block b = live[*next];
        uint64_t b_end = b.address + b.size < end ? b.address + b.size : end;
        b.address = gmd_max(b.address, at);
        if (b.address >= b_end) {
            continue;
        }
        b.size = b.requested_size = b_end - b.address;
        is_done = put_gap(s, to, at, b.address) && add_block(s, to, &b);
        at = b_end;
    }
    return is_done && put_gap(s, to, at, end);
}

static bool put_segments(builder *b, const gmd_snapshot_file_block *live, size_t count)
{
    snapshot_state *s = b->state;
    size_t next = 0;
    const gmd_interval *found = gmd_intervals_after(&b->segments, 0);
    while (found) {
        const gmd_journal_event *e = &b->journal->events[found->value];
        uint64_t address = found->address, end = found->end;
        bool is_mapped = action_of(e) == GMD_ACTION_SEGMENT_MAP;
        uint32_t stack = (uint32_t)found->value + 1;
        found = gmd_intervals_after(&b->segments, end);
        while (is_mapped && found && found->address == end) { /* pages that came one by one */
            const gmd_journal_event *more = &b->journal->events[found->value];
            if (action_of(more) != GMD_ACTION_SEGMENT_MAP || more->stream != e->stream ||
                more->device != e->device) {
                break;
            }
            end = found->end;
            found = gmd_intervals_after(&b->segments, end);
        }
        gmd_snapshot_file_segment segment = {.device = e->device,
                                             .address = address,
                                             .total_size = end - address,
                                             .stream = e->stream,
                                             .is_large = end - address > SMALL_SEGMENT,
                                             .is_expandable = is_mapped,
                                             .stack = stack};
        snapshot_state_segment *to = add_segment(s, &segment);
        if (!to || !fill(s, to, live, count, &next)) {
            return false;
        }
    }
    return true;
}

static bool make_from_events(builder *b)
{
    size_t count = 0;
    gmd_snapshot_file_block *live = list_live(b, &count);
    bool is_done = live != NULL;
    for (size_t i = 0; i < count && is_done; i++) {
        is_done = cover(b, &live[i]);
    }
    is_done = is_done && put_segments(b, live, count);
    free(live);
    return is_done;
}

/* --- a state as it was walked ------------------------------------------------------------- */

static uint32_t stack_at(builder *b, uint64_t address)
{
    uint32_t made;
    return take_live(b, address, &made) ? made / 2 + 1 : 0;
}

static snapshot_state_segment *add_walked(builder *b, const gmd_journal_block *w)
{
    const gmd_interval *from = gmd_intervals_after(&b->segments, w->segment_address);
    bool is_seen = from && from->address <= w->segment_address;
    gmd_snapshot_file_segment segment = {.device = w->device,
                                         .address = w->segment_address,
                                         .total_size = w->segment_size,
                                         .stream = w->stream,
                                         .pool_id = {w->pool_id[0], w->pool_id[1]},
                                         .is_large = w->is_large != 0,
                                         .is_expandable = w->is_expandable != 0,
                                         .stack = is_seen ? (uint32_t)from->value + 1 : 0};
    return add_segment(b->state, &segment);
}

static bool make_from_walk(builder *b)
{
    const gmd_journal *j = b->journal;
    snapshot_state_segment *to = NULL;
    uint64_t count = j->block_count < GMD_JOURNAL_BLOCK_MAX ? j->block_count : 0;
    for (uint64_t i = 0; i < count; i++) {
        const gmd_journal_block *w = &j->blocks[i];
        if (!to || to->segment.device != w->device || to->segment.address != w->segment_address) {
            to = add_walked(b, w);
        }
        gmd_snapshot_file_block block = {
            .address = w->address, .size = w->size, .requested_size = w->requested_size};
        if (w->state == GMD_BLOCK_ALLOCATED || w->state == GMD_BLOCK_PENDING_FREE) {
            block.state = w->state;
            block.stack = stack_at(b, w->address);
        }
        if (!to || !add_block(b->state, to, &block)) {
            return false;
        }
    }
    return true;
}

/* --- the whole ---------------------------------------------------------------------------- */

static int compare_segments(const void *a, const void *b)
{
    const gmd_snapshot_file_segment *x = &((const snapshot_state_segment *)a)->segment;
    const gmd_snapshot_file_segment *y = &((const snapshot_state_segment *)b)->segment;
    return x->device != y->device ? x->device - y->device
                                  : (x->address > y->address) - (x->address < y->address);
}

bool snapshot_state_make(snapshot_state *state, const gmd_journal *journal)
{
    *state = (snapshot_state){0};
    builder b = {.state = state,
                 .journal = journal,
                 .event_count = gmd_min(journal->count, GMD_JOURNAL_EVENT_MAX)};
    bool is_done =
        follow_events(&b) && (journal->is_walked ? make_from_walk(&b) : make_from_events(&b));
    gmd_address_table_free(&b.live);
    gmd_intervals_free(&b.segments);
    if (state->segment_count) {
        qsort(state->segments, state->segment_count, sizeof *state->segments, compare_segments);
    }
    return is_done;
}

void snapshot_state_release(snapshot_state *state)
{
    free(state->segments);
    free(state->blocks);
    *state = (snapshot_state){0};
}
