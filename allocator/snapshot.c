#include "snapshot.h"

#include "device_state.h"
#include "pickle_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Texts that come again and again: written once, then referred to. */
#define NAMES(NAME)                                                                                \
    NAME(ACTION, "action")                                                                         \
    NAME(ADDR, "addr")                                                                             \
    NAME(DEVICE_FREE, "device_free")                                                               \
    NAME(SIZE, "size")                                                                             \
    NAME(STREAM, "stream")                                                                         \
    NAME(TIME_US, "time_us")                                                                       \
    NAME(COMPILE_CONTEXT, "compile_context")                                                       \
    NAME(NOT_COMPILED, "N/A")                                                                      \
    NAME(USER_METADATA, "user_metadata")                                                           \
    NAME(NO_METADATA, "")                                                                          \
    NAME(FRAMES, "frames")                                                                         \
    NAME(ALLOC, "alloc")                                                                           \
    NAME(FREE_REQUESTED, "free_requested")                                                         \
    NAME(FREE_COMPLETED, "free_completed")                                                         \
    NAME(SEGMENT_ALLOC, "segment_alloc")                                                           \
    NAME(SEGMENT_FREE, "segment_free")                                                             \
    NAME(SEGMENT_MAP, "segment_map")                                                               \
    NAME(SEGMENT_UNMAP, "segment_unmap")                                                           \
    NAME(OOM, "oom")                                                                               \
    NAME(SNAPSHOT, "snapshot")                                                                     \
    NAME(DEVICE, "device")                                                                         \
    NAME(ADDRESS, "address")                                                                       \
    NAME(TOTAL_SIZE, "total_size")                                                                 \
    NAME(ALLOCATED_SIZE, "allocated_size")                                                         \
    NAME(ACTIVE_SIZE, "active_size")                                                               \
    NAME(REQUESTED_SIZE, "requested_size")                                                         \
    NAME(SEGMENT_TYPE, "segment_type")                                                             \
    NAME(LARGE, "large")                                                                           \
    NAME(SMALL, "small")                                                                           \
    NAME(SEGMENT_POOL_ID, "segment_pool_id")                                                       \
    NAME(IS_EXPANDABLE, "is_expandable")                                                           \
    NAME(BLOCKS, "blocks")                                                                         \
    NAME(STATE, "state")                                                                           \
    NAME(INACTIVE, "inactive")                                                                     \
    NAME(ACTIVE_ALLOCATED, "active_allocated")                                                     \
    NAME(ACTIVE_PENDING_FREE, "active_pending_free")                                               \
    NAME(FUNCTION, "name")                                                                         \
    NAME(FILENAME, "filename")                                                                     \
    NAME(LINE, "line")

#define NAME_ID(id, text)   NAME_##id,
#define NAME_TEXT(id, text) text,

enum name { NAMES(NAME_ID) NAME_COUNT };

static const char *const name_texts[NAME_COUNT] = {NAMES(NAME_TEXT)};

typedef struct writer {
    pickle_writer out;
    stacks *stacks;
    uint32_t names[NAME_COUNT]; /* the number to refer to it by, and 1 more; 0: not written yet */
    uint32_t *frames;           /* likewise, by stack */
} writer;

/* --- parts -------------------------------------------------------------------------------- */

static void put_plain(writer *w, const char *text)
{
    pickle_text(&w->out, text, strlen(text));
}

static void put_name(writer *w, enum name name)
{
    if (w->names[name]) {
        pickle_again(&w->out, w->names[name] - 1);
    } else {
        put_plain(w, name_texts[name]);
        w->names[name] = pickle_remember(&w->out) + 1;
    }
}

static void put_named_number(writer *w, enum name key, uint64_t value)
{
    put_name(w, key);
    pickle_natural(&w->out, value);
}

static void put_named_name(writer *w, enum name key, enum name value)
{
    put_name(w, key);
    put_name(w, value);
}

typedef struct frame_list {
    writer *w;
    pickle_list list;
} frame_list;

static void put_frame(void *context, const stack_frame *frame)
{
    frame_list *to = context;
    writer *w = to->w;
    pickle_next(&w->out, &to->list);
    pickle_begin_dict(&w->out);
    put_name(w, NAME_FUNCTION);
    pickle_text(&w->out, frame->name, frame->name_length);
    put_name(w, NAME_FILENAME);
    pickle_text(&w->out, frame->file, frame->file_length);
    put_named_number(w, NAME_LINE, frame->line);
    pickle_end_dict(&w->out);
}

/* A stack's frames are found once, when it is written first. */
static void put_frames(writer *w, uint32_t stack)
{
    put_name(w, NAME_FRAMES);
    if (stack && w->frames[stack]) {
        pickle_again(&w->out, w->frames[stack] - 1);
        return;
    }
    frame_list to = {.w = w};
    pickle_begin_list(&w->out, &to.list);
    if (stack) {
        stacks_frames(w->stacks, stack, put_frame, &to);
    }
    pickle_end_list(&w->out, &to.list);
    if (stack) {
        w->frames[stack] = pickle_remember(&w->out) + 1;
    }
}

/* --- segments ----------------------------------------------------------------------------- */

static void put_block(writer *w, const block_state *b)
{
    static const enum name states[] = {NAME_INACTIVE, NAME_ACTIVE_ALLOCATED,
                                       NAME_ACTIVE_PENDING_FREE};
    pickle_begin_dict(&w->out);
    put_named_number(w, NAME_ADDRESS, b->address);
    put_named_number(w, NAME_SIZE, b->size);
    put_named_number(w, NAME_REQUESTED_SIZE, b->requested_size);
    put_named_name(w, NAME_STATE, states[b->state]);
    put_frames(w, b->stack);
    pickle_end_dict(&w->out);
}

static void put_segment(writer *w, int device, const device_state *of, const segment_state *s)
{
    pickle_begin_dict(&w->out);
    put_named_number(w, NAME_DEVICE, (uint64_t)device);
    put_named_number(w, NAME_ADDRESS, s->address);
    put_named_number(w, NAME_TOTAL_SIZE, s->total_size);
    put_named_number(w, NAME_ALLOCATED_SIZE, s->allocated_size);
    put_named_number(w, NAME_ACTIVE_SIZE, s->active_size);
    put_named_number(w, NAME_REQUESTED_SIZE, s->requested_size);
    put_named_number(w, NAME_STREAM, (uintptr_t)s->stream);
    put_named_name(w, NAME_SEGMENT_TYPE, s->is_large ? NAME_LARGE : NAME_SMALL);
    put_name(w, NAME_SEGMENT_POOL_ID);
    pickle_natural(&w->out, s->pool_id[0]);
    pickle_natural(&w->out, s->pool_id[1]);
    pickle_end_pair(&w->out);
    put_name(w, NAME_IS_EXPANDABLE);
    pickle_bool(&w->out, s->is_expandable);
    put_frames(w, s->stack);
    put_name(w, NAME_BLOCKS);
    pickle_list list;
    pickle_begin_list(&w->out, &list);
    for (size_t i = 0; i < s->block_count; i++) {
        pickle_next(&w->out, &list);
        put_block(w, &of->blocks[s->first_block + i]);
    }
    pickle_end_list(&w->out, &list);
    pickle_end_dict(&w->out);
}

static void put_segments(writer *w, const device_state *states, int count)
{
    pickle_list list;
    pickle_begin_list(&w->out, &list);
    for (int device = 0; device < count; device++) {
        for (size_t i = 0; i < states[device].segment_count; i++) {
            pickle_next(&w->out, &list);
            put_segment(w, device, &states[device], &states[device].segments[i]);
        }
    }
    pickle_end_list(&w->out, &list);
}

/* --- events ------------------------------------------------------------------------------- */

static void put_event(writer *w, const device_state *of, const history_event *event)
{
    static const enum name actions[] = {
        [HISTORY_ALLOC] = NAME_ALLOC,
        [HISTORY_FREE_REQUESTED] = NAME_FREE_REQUESTED,
        [HISTORY_FREE_COMPLETED] = NAME_FREE_COMPLETED,
        [HISTORY_SEGMENT_ALLOC] = NAME_SEGMENT_ALLOC,
        [HISTORY_SEGMENT_FREE] = NAME_SEGMENT_FREE,
        [HISTORY_SEGMENT_MAP] = NAME_SEGMENT_MAP,
        [HISTORY_SEGMENT_UNMAP] = NAME_SEGMENT_UNMAP,
        [HISTORY_OOM] = NAME_OOM,
        [HISTORY_SNAPSHOT] = NAME_SNAPSHOT,
    };
    const history_entry *e = &event->entry;
    pickle_begin_dict(&w->out);
    put_named_name(w, NAME_ACTION, actions[e->kind]);
    put_named_number(w, e->kind == HISTORY_OOM ? NAME_DEVICE_FREE : NAME_ADDR, e->address);
    put_named_number(w, NAME_SIZE, e->size);
    put_named_number(w, NAME_STREAM, (uintptr_t)event->stream);
    put_named_number(w, NAME_TIME_US, ticks_to_us(e->ticks, &of->start, &of->end));
    put_named_name(w, NAME_COMPILE_CONTEXT, NAME_NOT_COMPILED);
    put_named_name(w, NAME_USER_METADATA, NAME_NO_METADATA);
    if (e->stack) {
        put_frames(w, e->stack);
    }
    pickle_end_dict(&w->out);
}

static void put_device_traces(writer *w, const device_state *states, int count)
{
    pickle_list devices;
    pickle_begin_list(&w->out, &devices);
    for (int device = 0; device < count; device++) {
        pickle_next(&w->out, &devices);
        pickle_list events;
        pickle_begin_list(&w->out, &events);
        for (size_t i = 0; i < states[device].event_count; i++) {
            pickle_next(&w->out, &events);
            put_event(w, &states[device], &states[device].events[i]);
        }
        pickle_end_list(&w->out, &events);
    }
    pickle_end_list(&w->out, &devices);
}

/* --- settings ----------------------------------------------------------------------------- */

static void put_flag(writer *w, const char *key, bool value)
{
    put_plain(w, key);
    pickle_bool(&w->out, value);
}

static void put_divisions(writer *w, const settings *s)
{
    put_plain(w, "roundup_power2_divisions");
    pickle_begin_dict(&w->out);
    for (int i = 0; i < ROUNDUP_INTERVALS; i++) {
        char mib[16];
        snprintf(mib, sizeof mib, "%u", 1u << i);
        put_plain(w, mib);
        pickle_natural(&w->out, s->roundup_divisions[i]);
    }
    pickle_end_dict(&w->out);
}

/* Those of host memory, and of locks that this allocator has not, are at their defaults. */
static void put_settings(writer *w, const settings *s, const char *conf)
{
    pickle_begin_dict(&w->out);
    put_plain(w, "PYTORCH_CUDA_ALLOC_CONF");
    put_plain(w, conf);
    put_plain(w, "max_split_size");
    pickle_integer(&w->out, s->max_split_bytes > INT64_MAX ? -1 : (int64_t)s->max_split_bytes);
    put_plain(w, "garbage_collection_threshold");
    pickle_real(&w->out, s->gc_threshold);
    put_flag(w, "expandable_segments", s->expandable_segments);
    put_plain(w, "pinned_num_register_threads");
    pickle_natural(&w->out, 1);
    put_flag(w, "release_lock_on_cudamalloc", false);
    put_flag(w, "pinned_use_cuda_host_register", false);
    put_flag(w, "graph_capture_record_stream_reuse", false);
    put_divisions(w, s);
    pickle_end_dict(&w->out);
}

/* --- the whole ---------------------------------------------------------------------------- */

static void put_snapshot(writer *w, new_file *out, const snapshot_source *from,
                         const device_state *states)
{
    pickle_begin(&w->out, out);
    pickle_begin_dict(&w->out);
    put_plain(w, "segments");
    put_segments(w, states, from->device_count);
    put_plain(w, "device_traces");
    put_device_traces(w, states, from->device_count);
    put_plain(w, "allocator_settings");
    put_settings(w, from->settings, from->conf);
    put_plain(w, "external_annotations");
    pickle_list none;
    pickle_begin_list(&w->out, &none);
    pickle_end_list(&w->out, &none);
    pickle_end_dict(&w->out);
    pickle_end(&w->out);
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
