/* snapshot_file.h - the file that torch.cuda._memory_viz and pytorch.org/memory_viz open, record by
 * record: segments with their blocks, the events of each device, the settings.
 *
 * Structure: that of torch 2.11's torch.cuda.memory._snapshot() and of the files of
 * _dump_snapshot(), key by key as recorded ones have it. It is written as it comes, in the order of
 * these functions; what is in it is the caller's. */
#ifndef GMD_ALLOCATOR_SNAPSHOT_FILE_H
#define GMD_ALLOCATOR_SNAPSHOT_FILE_H

#include "pickle_writer.h"
#include "settings.h"

#include <stddef.h>

typedef enum snapshot_action {
    SNAPSHOT_ALLOC,
    SNAPSHOT_FREE_REQUESTED,
    SNAPSHOT_FREE_COMPLETED,
    SNAPSHOT_SEGMENT_ALLOC,
    SNAPSHOT_SEGMENT_FREE,
    SNAPSHOT_SEGMENT_MAP,
    SNAPSHOT_SEGMENT_UNMAP,
    SNAPSHOT_OOM,
    SNAPSHOT_SNAPSHOT,
    SNAPSHOT_ACTIONS
} snapshot_action;

/* Whose stacks they are is the caller's to know; 0: no stack. */
typedef struct snapshot_file_segment {
    int device;
    uint64_t address, total_size, allocated_size, active_size, requested_size, stream;
    uint64_t pool_id[2];
    bool is_large, is_expandable;
    uint32_t stack;
} snapshot_file_segment;

typedef struct snapshot_file_block {
    uint64_t address, size, requested_size;
    int state; /* as in gmd_block_info */
    uint32_t stack;
} snapshot_file_block;

typedef struct snapshot_file_event {
    snapshot_action action;
    uint64_t address; /* OOM: the device's free bytes */
    uint64_t size, stream, time_us;
    uint32_t stack;
} snapshot_file_event;

#define SNAPSHOT_FILE_NAMES 40 /* at least as many as snapshot_file.c has */

typedef struct snapshot_file snapshot_file;

/* Writes the frames of a stack that is not 0, as one list: with snapshot_file_frame, or again by
 * the number that pickle_remember gave. */
typedef void snapshot_file_frames(void *context, snapshot_file *file, uint32_t stack);

struct snapshot_file {
    pickle_writer out;
    uint32_t names[SNAPSHOT_FILE_NAMES]; /* the number to refer to it by, and 1 more; 0: not
                                            written yet */
    pickle_list outer, inner;            /* segments and blocks, or devices and events */
    snapshot_file_frames *put_frames;
    void *context;
};

void snapshot_file_begin(snapshot_file *f, new_file *out, snapshot_file_frames *put_frames,
                         void *context);

void snapshot_file_begin_segments(snapshot_file *f);
void snapshot_file_begin_segment(snapshot_file *f, const snapshot_file_segment *s);
void snapshot_file_block_of(snapshot_file *f, const snapshot_file_block *b);
void snapshot_file_end_segment(snapshot_file *f);
void snapshot_file_end_segments(snapshot_file *f);

void snapshot_file_begin_traces(snapshot_file *f);
void snapshot_file_begin_device(snapshot_file *f); /* in order, each one */
void snapshot_file_event_of(snapshot_file *f, const snapshot_file_event *e);
void snapshot_file_end_device(snapshot_file *f);
void snapshot_file_end_traces(snapshot_file *f);

/* `conf` is what the settings were given as. Writes the rest, too. */
void snapshot_file_end(snapshot_file *f, const settings *s, const char *conf);

void snapshot_file_frame(snapshot_file *f, const char *function, size_t function_length,
                         const char *file, size_t file_length, uint64_t line);

#endif
