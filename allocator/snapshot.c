#include "snapshot.h"

#include "device_state.h"
#include "gmd_hash.h"
#include "gmd_snapshot_file.h"

#include <stdlib.h>
#include <string.h>

typedef struct written_code {
    void *code;
    uint32_t number; /* to refer to its frame by */
} written_code;

typedef struct writer {
    gmd_snapshot_file file;
    stacks *stacks;
    uint32_t *frames; /* by stack: the number to refer to it by, and 1 more; 0: not written yet */
    written_code *codes; /* by hash; at most half full */
    size_t code_mask, code_count;
} writer;

/* Where a return address is, or would go. */
static written_code *find_code(written_code *codes, size_t mask, const void *code)
{
    size_t at = (gmd_hash_pointer(code) >> 32) & mask;
    while (codes[at].code && codes[at].code != code) {
        at = (at + 1) & mask;
    }
    return &codes[at];
}

typedef struct frame_list {
    writer *w;
    pickle_list list;
} frame_list;

static void put_named_frame(void *context, const stack_frame *frame)
{
    writer *w = context;
    gmd_snapshot_file_frame(&w->file, frame->name, frame->name_length, frame->file,
                            frame->file_length, frame->line);
}

static bool grow_codes(writer *w)
{
    size_t mask = w->codes ? w->code_mask * 2 + 1 : 1023;
    written_code *codes = calloc(mask + 1, sizeof *codes);
    if (!codes) {
        return false;
    }
    for (size_t i = 0; w->codes && i <= w->code_mask; i++) {
        if (w->codes[i].code) {
            *find_code(codes, mask, w->codes[i].code) = w->codes[i];
        }
    }
    free(w->codes);
    w->codes = codes;
    w->code_mask = mask;
    return true;
}

/* Each return address is named and written once. */
static void put_code(writer *w, void *code)
{
    bool has_room = w->code_count < w->code_mask / 2 || grow_codes(w);
    written_code *known = w->codes ? find_code(w->codes, w->code_mask, code) : NULL;
    if (known && known->code) {
        pickle_again(&w->file.out, known->number);
        return;
    }
    stacks_name_code(code, put_named_frame, w);
    if (known && has_room) {
        *known = (written_code){code, pickle_remember(&w->file.out)};
        w->code_count++;
    }
}

static void put_frame(void *context, const stack_frame *frame)
{
    frame_list *to = context;
    pickle_next(&to->w->file.out, &to->list);
    if (frame->code) {
        put_code(to->w, frame->code);
    } else {
        put_named_frame(to->w, frame);
    }
}

/* A stack's frames are found once, when it is written first. */
static void put_frames(void *context, gmd_snapshot_file *file, uint32_t stack)
{
    writer *w = context;
    if (w->frames[stack]) {
        pickle_again(&file->out, w->frames[stack] - 1);
        return;
    }
    frame_list to = {.w = w};
    pickle_begin_list(&file->out, &to.list);
    stacks_frames(w->stacks, stack, put_frame, &to);
    pickle_end_list(&file->out, &to.list);
    w->frames[stack] = pickle_remember(&file->out) + 1;
}

/* --- the whole ---------------------------------------------------------------------------- */

static void put_segment(gmd_snapshot_file *f, int device, const device_state *of,
                        const segment_state *s)
{
    gmd_snapshot_file_begin_segment(
        f, &(gmd_snapshot_file_segment){.device = device,
                                        .address = s->address,
                                        .total_size = s->total_size,
                                        .allocated_size = s->allocated_size,
                                        .active_size = s->active_size,
                                        .requested_size = s->requested_size,
                                        .stream = (uintptr_t)s->stream,
                                        .pool_id = {s->pool_id[0], s->pool_id[1]},
                                        .is_large = s->is_large,
                                        .is_expandable = s->is_expandable,
                                        .stack = s->stack});
    for (size_t i = 0; i < s->block_count; i++) {
        const block_state *b = &of->blocks[s->first_block + i];
        gmd_snapshot_file_block_of(
            f,
            &(gmd_snapshot_file_block){b->address, b->size, b->requested_size, b->state, b->stack});
    }
    gmd_snapshot_file_end_segment(f);
}

static void put_segments(gmd_snapshot_file *f, const device_state *states, int count)
{
    gmd_snapshot_file_begin_segments(f);
    for (int device = 0; device < count; device++) {
        for (size_t i = 0; i < states[device].segment_count; i++) {
            put_segment(f, device, &states[device], &states[device].segments[i]);
        }
    }
    gmd_snapshot_file_end_segments(f);
}

static const gmd_snapshot_action actions[] = {
    [HISTORY_ALLOC] = GMD_SNAPSHOT_ALLOC,
    [HISTORY_FREE_REQUESTED] = GMD_SNAPSHOT_FREE_REQUESTED,
    [HISTORY_FREE_COMPLETED] = GMD_SNAPSHOT_FREE_COMPLETED,
    [HISTORY_SEGMENT_ALLOC] = GMD_SNAPSHOT_SEGMENT_ALLOC,
    [HISTORY_SEGMENT_FREE] = GMD_SNAPSHOT_SEGMENT_FREE,
    [HISTORY_SEGMENT_MAP] = GMD_SNAPSHOT_SEGMENT_MAP,
    [HISTORY_SEGMENT_UNMAP] = GMD_SNAPSHOT_SEGMENT_UNMAP,
    [HISTORY_OOM] = GMD_SNAPSHOT_OOM,
    [HISTORY_SNAPSHOT] = GMD_SNAPSHOT_SNAPSHOT,
};

bool snapshot_event_named(const char *name, size_t length, history_kind *kind)
{
    for (int i = 0; i < HISTORY_KINDS; i++) {
        const char *known = gmd_snapshot_action_name(actions[i]);
        if (strlen(known) == length && memcmp(known, name, length) == 0) {
            *kind = (history_kind)i;
            return true;
        }
    }
    return false;
}

static void put_event(gmd_snapshot_file *f, const device_state *of, const history_event *event)
{
    const history_entry *e = &event->entry;
    const writer *w = f->context;
    gmd_snapshot_file_text metadata = {0};
    metadata.bytes = stacks_note_text(w->stacks, e->note, &metadata.length);
    gmd_snapshot_file_event_of(
        f, &(gmd_snapshot_file_event){.action = actions[e->kind],
                                      .address = e->address,
                                      .size = e->size,
                                      .stream = (uintptr_t)event->stream,
                                      .time_us = ticks_to_us(e->ticks, &of->start, &of->end),
                                      .stack = e->stack,
                                      .metadata = metadata});
}

static void put_traces(gmd_snapshot_file *f, const device_state *states, int count)
{
    gmd_snapshot_file_begin_traces(f);
    for (int device = 0; device < count; device++) {
        gmd_snapshot_file_begin_device(f);
        for (size_t i = 0; i < states[device].event_count; i++) {
            put_event(f, &states[device], &states[device].events[i]);
        }
        gmd_snapshot_file_end_device(f);
    }
    gmd_snapshot_file_end_traces(f);
}

static void put_snapshot(writer *w, new_file *out, const snapshot_source *from,
                         const device_state *states)
{
    gmd_snapshot_file_begin(&w->file, out, put_frames, w);
    put_segments(&w->file, states, from->device_count);
    put_traces(&w->file, states, from->device_count);
    gmd_snapshot_file_settings(&w->file, from->settings, from->conf);
    gmd_snapshot_file_begin_annotations(&w->file);
    gmd_snapshot_file_end_annotations(&w->file);
    gmd_snapshot_file_end(&w->file);
}

static gmd_status write_states(const snapshot_source *from, const device_state *states,
                               const char *path, gmd_error *error)
{
    writer w = {.stacks = from->stacks};
    new_file *out = malloc(sizeof *out);
    w.frames = calloc((size_t)stacks_count(from->stacks) + 1, sizeof *w.frames);
    gmd_status status = out && w.frames
                            ? new_file_open(out, path, error)
                            : gmd_fail(error, GMD_NO_MEMORY, "%s: no host memory for it", path);
    if (status == GMD_OK) {
        put_snapshot(&w, out, from, states);
        status = new_file_finish(out, error);
    }
    free(w.codes);
    free(w.frames);
    free(out);
    return status;
}

gmd_status snapshot_write(const snapshot_source *from, const char *path, gmd_error *error)
{
    device_state *states = calloc((size_t)from->device_count, sizeof *states);
    bool has_all = states;
    for (int i = 0; has_all && i < from->device_count; i++) {
        has_all = device_state_copy(&states[i], &from->devices[i]);
    }
    gmd_status status =
        has_all ? write_states(from, states, path, error)
                : gmd_fail(error, GMD_NO_MEMORY, "%s: no host memory for a snapshot", path);
    for (int i = 0; states && i < from->device_count; i++) {
        device_state_release(&states[i]);
    }
    free(states);
    return status;
}
