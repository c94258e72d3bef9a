#include "gmd_snapshot_file.h"

#include <stdio.h>
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
    NAME(LINE, "line")                                                                             \
    NAME(STAGE, "stage")

#define NAME_ID(id, text)   NAME_##id,
#define NAME_TEXT(id, text) text,

enum name { NAMES(NAME_ID) NAME_COUNT };

static const char *const name_texts[NAME_COUNT] = {NAMES(NAME_TEXT)};

static const enum name action_names[GMD_SNAPSHOT_ACTIONS] = {
    [GMD_SNAPSHOT_ALLOC] = NAME_ALLOC,
    [GMD_SNAPSHOT_FREE_REQUESTED] = NAME_FREE_REQUESTED,
    [GMD_SNAPSHOT_FREE_COMPLETED] = NAME_FREE_COMPLETED,
    [GMD_SNAPSHOT_SEGMENT_ALLOC] = NAME_SEGMENT_ALLOC,
    [GMD_SNAPSHOT_SEGMENT_FREE] = NAME_SEGMENT_FREE,
    [GMD_SNAPSHOT_SEGMENT_MAP] = NAME_SEGMENT_MAP,
    [GMD_SNAPSHOT_SEGMENT_UNMAP] = NAME_SEGMENT_UNMAP,
    [GMD_SNAPSHOT_OOM] = NAME_OOM,
    [GMD_SNAPSHOT_SNAPSHOT] = NAME_SNAPSHOT,
};

const char *gmd_snapshot_action_name(gmd_snapshot_action action)
{
    return name_texts[action_names[action]];
}

_Static_assert(NAME_COUNT <= GMD_SNAPSHOT_FILE_NAMES, "there is room for every name");

/* --- parts -------------------------------------------------------------------------------- */

static void put_plain(gmd_snapshot_file *f, const char *text)
{
    pickle_text(&f->out, text, strlen(text));
}

static void put_name(gmd_snapshot_file *f, enum name name)
{
    if (f->names[name]) {
        pickle_again(&f->out, f->names[name] - 1);
    } else {
        put_plain(f, name_texts[name]);
        f->names[name] = pickle_remember(&f->out) + 1;
    }
}

static void put_named_number(gmd_snapshot_file *f, enum name key, uint64_t value)
{
    put_name(f, key);
    pickle_natural(&f->out, value);
}

static void put_named_name(gmd_snapshot_file *f, enum name key, enum name value)
{
    put_name(f, key);
    put_name(f, value);
}

static void put_named_text(gmd_snapshot_file *f, enum name key, gmd_snapshot_file_text text,
                           enum name if_none)
{
    put_name(f, key);
    if (text.length) {
        pickle_text(&f->out, text.bytes, text.length);
    } else {
        put_name(f, if_none);
    }
}

void gmd_snapshot_file_frame(gmd_snapshot_file *f, const char *function, size_t function_length,
                             const char *file, size_t file_length, uint64_t line)
{
    pickle_begin_dict(&f->out);
    put_name(f, NAME_FUNCTION);
    pickle_text(&f->out, function, function_length);
    put_name(f, NAME_FILENAME);
    pickle_text(&f->out, file, file_length);
    put_named_number(f, NAME_LINE, line);
    pickle_end_dict(&f->out);
}

static void put_frames(gmd_snapshot_file *f, uint32_t stack)
{
    pickle_list none;
    put_name(f, NAME_FRAMES);
    if (stack) {
        f->put_frames(f->context, f, stack);
    } else {
        pickle_begin_list(&f->out, &none);
        pickle_end_list(&f->out, &none);
    }
}

/* --- segments ----------------------------------------------------------------------------- */

void gmd_snapshot_file_begin(gmd_snapshot_file *f, new_file *out, gmd_snapshot_file_frames *put,
                             void *context)
{
    *f = (gmd_snapshot_file){.put_frames = put, .context = context};
    pickle_begin(&f->out, out);
    pickle_begin_dict(&f->out);
}

void gmd_snapshot_file_begin_segments(gmd_snapshot_file *f)
{
    put_plain(f, "segments");
    pickle_begin_list(&f->out, &f->outer);
}

void gmd_snapshot_file_begin_segment(gmd_snapshot_file *f, const gmd_snapshot_file_segment *s)
{
    pickle_next(&f->out, &f->outer);
    pickle_begin_dict(&f->out);
    put_named_number(f, NAME_DEVICE, (uint64_t)s->device);
    put_named_number(f, NAME_ADDRESS, s->address);
    put_named_number(f, NAME_TOTAL_SIZE, s->total_size);
    put_named_number(f, NAME_ALLOCATED_SIZE, s->allocated_size);
    put_named_number(f, NAME_ACTIVE_SIZE, s->active_size);
    put_named_number(f, NAME_REQUESTED_SIZE, s->requested_size);
    put_named_number(f, NAME_STREAM, s->stream);
    put_named_name(f, NAME_SEGMENT_TYPE, s->is_large ? NAME_LARGE : NAME_SMALL);
    put_name(f, NAME_SEGMENT_POOL_ID);
    pickle_natural(&f->out, s->pool_id[0]);
    pickle_natural(&f->out, s->pool_id[1]);
    pickle_end_pair(&f->out);
    put_name(f, NAME_IS_EXPANDABLE);
    pickle_bool(&f->out, s->is_expandable);
    put_frames(f, s->stack);
    put_name(f, NAME_BLOCKS);
    pickle_begin_list(&f->out, &f->inner);
}

void gmd_snapshot_file_block_of(gmd_snapshot_file *f, const gmd_snapshot_file_block *b)
{
    static const enum name states[] = {NAME_INACTIVE, NAME_ACTIVE_ALLOCATED,
                                       NAME_ACTIVE_PENDING_FREE};
    pickle_next(&f->out, &f->inner);
    pickle_begin_dict(&f->out);
    put_named_number(f, NAME_ADDRESS, b->address);
    put_named_number(f, NAME_SIZE, b->size);
    put_named_number(f, NAME_REQUESTED_SIZE, b->requested_size);
    put_named_name(f, NAME_STATE, states[b->state]);
    put_frames(f, b->stack);
    pickle_end_dict(&f->out);
}

void gmd_snapshot_file_end_segment(gmd_snapshot_file *f)
{
    pickle_end_list(&f->out, &f->inner);
    pickle_end_dict(&f->out);
}

void gmd_snapshot_file_end_segments(gmd_snapshot_file *f)
{
    pickle_end_list(&f->out, &f->outer);
}

/* --- events ------------------------------------------------------------------------------- */

void gmd_snapshot_file_begin_traces(gmd_snapshot_file *f)
{
    put_plain(f, "device_traces");
    pickle_begin_list(&f->out, &f->outer);
}

void gmd_snapshot_file_begin_device(gmd_snapshot_file *f)
{
    pickle_next(&f->out, &f->outer);
    pickle_begin_list(&f->out, &f->inner);
}

void gmd_snapshot_file_event_of(gmd_snapshot_file *f, const gmd_snapshot_file_event *e)
{
    pickle_next(&f->out, &f->inner);
    pickle_begin_dict(&f->out);
    put_named_name(f, NAME_ACTION, action_names[e->action]);
    put_named_number(f, e->action == GMD_SNAPSHOT_OOM ? NAME_DEVICE_FREE : NAME_ADDR, e->address);
    put_named_number(f, NAME_SIZE, e->size);
    put_named_number(f, NAME_STREAM, e->stream);
    put_named_number(f, NAME_TIME_US, e->time_us);
    put_named_text(f, NAME_COMPILE_CONTEXT, e->compile_context, NAME_NOT_COMPILED);
    put_named_text(f, NAME_USER_METADATA, e->metadata, NAME_NO_METADATA);
    if (e->stack) {
        put_frames(f, e->stack);
    }
    pickle_end_dict(&f->out);
}

void gmd_snapshot_file_end_device(gmd_snapshot_file *f)
{
    pickle_end_list(&f->out, &f->inner);
}

void gmd_snapshot_file_end_traces(gmd_snapshot_file *f)
{
    pickle_end_list(&f->out, &f->outer);
}

/* --- settings ----------------------------------------------------------------------------- */

static void put_flag(gmd_snapshot_file *f, const char *key, bool value)
{
    put_plain(f, key);
    pickle_bool(&f->out, value);
}

static void put_divisions(gmd_snapshot_file *f, const settings *s)
{
    put_plain(f, "roundup_power2_divisions");
    pickle_begin_dict(&f->out);
    for (int i = 0; i < ROUNDUP_INTERVALS; i++) {
        char mib[16];
        snprintf(mib, sizeof mib, "%u", 1u << i);
        put_plain(f, mib);
        pickle_natural(&f->out, s->roundup_divisions[i]);
    }
    pickle_end_dict(&f->out);
}

/* Those of host memory, and of locks that this allocator has not, are at their defaults. */
static void put_settings(gmd_snapshot_file *f, const settings *s, const char *conf)
{
    pickle_begin_dict(&f->out);
    put_plain(f, "PYTORCH_CUDA_ALLOC_CONF");
    put_plain(f, conf);
    put_plain(f, "max_split_size");
    pickle_integer(&f->out, s->max_split_bytes > INT64_MAX ? -1 : (int64_t)s->max_split_bytes);
    put_plain(f, "garbage_collection_threshold");
    pickle_real(&f->out, s->gc_threshold);
    put_flag(f, "expandable_segments", s->expandable_segments);
    put_plain(f, "pinned_num_register_threads");
    pickle_natural(&f->out, 1);
    put_flag(f, "release_lock_on_cudamalloc", false);
    put_flag(f, "pinned_use_cuda_host_register", false);
    put_flag(f, "graph_capture_record_stream_reuse", s->reuses_in_captures);
    put_divisions(f, s);
    pickle_end_dict(&f->out);
}

void gmd_snapshot_file_settings(gmd_snapshot_file *f, const settings *s, const char *conf)
{
    put_plain(f, "allocator_settings");
    put_settings(f, s, conf);
}

/* --- annotations -------------------------------------------------------------------------- */

void gmd_snapshot_file_begin_annotations(gmd_snapshot_file *f)
{
    put_plain(f, "external_annotations");
    pickle_begin_list(&f->out, &f->outer);
}

void gmd_snapshot_file_annotation_of(gmd_snapshot_file *f, const gmd_snapshot_file_annotation *a)
{
    pickle_next(&f->out, &f->outer);
    pickle_begin_dict(&f->out);
    put_named_text(f, NAME_STAGE, a->stage, NAME_NO_METADATA);
    put_named_text(f, NAME_FUNCTION, a->name, NAME_NO_METADATA);
    put_named_number(f, NAME_DEVICE, (uint64_t)a->device);
    put_named_number(f, NAME_TIME_US, a->time_us);
    pickle_end_dict(&f->out);
}

void gmd_snapshot_file_end_annotations(gmd_snapshot_file *f)
{
    pickle_end_list(&f->out, &f->outer);
}

/* --- the end ------------------------------------------------------------------------------ */

void gmd_snapshot_file_end(gmd_snapshot_file *f)
{
    pickle_end_dict(&f->out);
    pickle_end(&f->out);
}
