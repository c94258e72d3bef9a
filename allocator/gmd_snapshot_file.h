/* gmd_snapshot_file.h - the file that torch.cuda._memory_viz and pytorch.org/memory_viz open,
 * record by record: segments with their blocks, the events of each device, the settings, what the
 * program noted.
 *
 * Structure: that of torch 2.11's torch.cuda.memory._snapshot() and of the files of
 * _dump_snapshot(), key by key as recorded ones have it. It is written as it comes, in the order of
 * these functions; what is in it is the caller's. */
#ifndef GMD_ALLOCATOR_SNAPSHOT_FILE_H
#define GMD_ALLOCATOR_SNAPSHOT_FILE_H

#include "pickle_writer.h"
#include "settings.h"

#include <stddef.h>

typedef enum gmd_snapshot_action {
    GMD_SNAPSHOT_ALLOC,
    GMD_SNAPSHOT_FREE_REQUESTED,
    GMD_SNAPSHOT_FREE_COMPLETED,
    GMD_SNAPSHOT_SEGMENT_ALLOC,
    GMD_SNAPSHOT_SEGMENT_FREE,
    GMD_SNAPSHOT_SEGMENT_MAP,
    GMD_SNAPSHOT_SEGMENT_UNMAP,
    GMD_SNAPSHOT_OOM,
    GMD_SNAPSHOT_SNAPSHOT,
    GMD_SNAPSHOT_ACTIONS
} gmd_snapshot_action;

/* As the file has it: "free_requested". */
const char *gmd_snapshot_action_name(gmd_snapshot_action action);

/* Whose stacks they are is the caller's to know; 0: no stack. */
typedef struct gmd_snapshot_file_segment {
    int device;
    uint64_t address, total_size, allocated_size, active_size, requested_size, stream;
    uint64_t pool_id[2];
    bool is_large, is_expandable;
    uint32_t stack;
} gmd_snapshot_file_segment;

typedef struct gmd_snapshot_file_block {
    uint64_t address, size, requested_size;
    int state; /* as in gmd_block_info */
    uint32_t stack;
} gmd_snapshot_file_block;

typedef struct gmd_snapshot_file_text { /* length 0: there is none */
    const char *bytes;
    size_t length;
} gmd_snapshot_file_text;

typedef struct gmd_snapshot_file_event {
    gmd_snapshot_action action;
    uint64_t address; /* OOM: the device's free bytes */
    uint64_t size, stream, time_us;
    uint32_t stack;
    gmd_snapshot_file_text metadata, compile_context;
} gmd_snapshot_file_event;

/* What the program did meanwhile, as record_function() names it. */
typedef struct gmd_snapshot_file_annotation {
    gmd_snapshot_file_text stage, name; /* stage: "START", "END" */
    int device;
    uint64_t time_us;
} gmd_snapshot_file_annotation;

#define GMD_SNAPSHOT_FILE_NAMES 42 /* at least as many as snapshot_file.c has */

typedef struct gmd_snapshot_file gmd_snapshot_file;

/* Writes the frames of a stack that is not 0, as one list: with gmd_snapshot_file_frame, or again
 * by the number that pickle_remember gave. */
typedef void gmd_snapshot_file_frames(void *context, gmd_snapshot_file *file, uint32_t stack);

struct gmd_snapshot_file {
    pickle_writer out;
    uint32_t names[GMD_SNAPSHOT_FILE_NAMES]; /* the number to refer to it by, and 1 more; 0: not
                                            written yet */
    pickle_list outer, inner;                /* segments and blocks, or devices and events */
    gmd_snapshot_file_frames *put_frames;
    void *context;
};

void gmd_snapshot_file_begin(gmd_snapshot_file *f, new_file *out,
                             gmd_snapshot_file_frames *put_frames, void *context);

void gmd_snapshot_file_begin_segments(gmd_snapshot_file *f);
void gmd_snapshot_file_begin_segment(gmd_snapshot_file *f, const gmd_snapshot_file_segment *s);
void gmd_snapshot_file_block_of(gmd_snapshot_file *f, const gmd_snapshot_file_block *b);
void gmd_snapshot_file_end_segment(gmd_snapshot_file *f);
void gmd_snapshot_file_end_segments(gmd_snapshot_file *f);

void gmd_snapshot_file_begin_traces(gmd_snapshot_file *f);
void gmd_snapshot_file_begin_device(gmd_snapshot_file *f); /* in order, each one */
void gmd_snapshot_file_event_of(gmd_snapshot_file *f, const gmd_snapshot_file_event *e);
void gmd_snapshot_file_end_device(gmd_snapshot_file *f);
void gmd_snapshot_file_end_traces(gmd_snapshot_file *f);

/* `conf` is what the settings were given as. */
void gmd_snapshot_file_settings(gmd_snapshot_file *f, const settings *s, const char *conf);

void gmd_snapshot_file_begin_annotations(gmd_snapshot_file *f);
void gmd_snapshot_file_annotation_of(gmd_snapshot_file *f, const gmd_snapshot_file_annotation *a);
void gmd_snapshot_file_end_annotations(gmd_snapshot_file *f);

void gmd_snapshot_file_end(gmd_snapshot_file *f);

void gmd_snapshot_file_frame(gmd_snapshot_file *f, const char *function, size_t function_length,
                             const char *file, size_t file_length, uint64_t line);

#endif
