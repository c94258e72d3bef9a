/* gmd_snapshot.h - a PyTorch memory snapshot (torch.cuda.memory._snapshot() and the files written
 * by _dump_snapshot), read from a pickle of torch 2.1 to 2.13 without executing anything in it.
 *
 * Format: https://pytorch.org/docs/stable/torch_cuda_memory.html and the docstring of
 * torch.cuda.memory._snapshot. All sizes are bytes.
 *
 * Time is linear in the file's size, whatever is in it; memory is two to three times the size of
 * what a pickler writes, and at most 32 times that of any other file (docs/results/limits.md). */
#ifndef GMD_SNAPSHOT_H
#define GMD_SNAPSHOT_H

#include "gmd_error.h"
#include "gmd_origins.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum gmd_action {
    GMD_ACTION_ALLOC,
    GMD_ACTION_FREE_REQUESTED,
    GMD_ACTION_FREE_COMPLETED,
    GMD_ACTION_SEGMENT_ALLOC,
    GMD_ACTION_SEGMENT_FREE,
    GMD_ACTION_SEGMENT_MAP,
    GMD_ACTION_SEGMENT_UNMAP,
    GMD_ACTION_SNAPSHOT,
    GMD_ACTION_OOM,
    GMD_ACTION_OTHER, /* an action that this version of gmd does not know; kept, not interpreted */
} gmd_action;

typedef struct gmd_snapshot_event {
    uint8_t action; /* gmd_action */
    uint8_t device;
    uint32_t origin;  /* of gmd_snapshot.origins: the stack that made the call, a free's too */
    uint64_t address; /* OOM: the device's free bytes (key "device_free"), as recorded */
    uint64_t size;
    uint64_t stream; /* the recorded handle */
    uint64_t time_us;
} gmd_snapshot_event;

typedef enum gmd_block_state {
    GMD_BLOCK_INACTIVE,
    GMD_BLOCK_ALLOCATED,    /* "active_allocated" */
    GMD_BLOCK_PENDING_FREE, /* "active_pending_free" and the older "active_awaiting_free" */
} gmd_block_state;

typedef struct gmd_snapshot_block {
    uint64_t address, size, requested_size;
    uint32_t origin; /* of the allocation; 0 where it is inactive or the file has none */
    uint8_t state;   /* gmd_block_state */
} gmd_snapshot_block;

typedef struct gmd_snapshot_segment {
    uint64_t address, total_size, allocated_size, active_size, requested_size, stream;
    uint64_t pool_id[2];             /* (0, 0): the default pool */
    size_t first_block, block_count; /* into gmd_snapshot.blocks */
    uint32_t origin;                 /* of the allocation that it was made for */
    uint8_t device;
    bool is_large, is_expandable;
} gmd_snapshot_segment;

typedef enum gmd_annotation_stage {
    GMD_ANNOTATION_START,
    GMD_ANNOTATION_END,
    GMD_ANNOTATION_OTHER, /* one that this version of gmd does not know */
} gmd_annotation_stage;

/* What the program did, as record_function() names it: "Optimizer.step#AdamW.step". */
typedef struct gmd_annotation {
    uint64_t time_us;
    uint32_t name; /* a text of gmd_snapshot.origins */
    uint8_t stage; /* gmd_annotation_stage */
    uint8_t device;
} gmd_annotation;

enum { GMD_ROUNDUP_INTERVALS = 16 }; /* from 1 MiB on, each twice the one before */

/* The settings in force, as the snapshot has them beside the string; 0: off, or not in the file. */
typedef struct gmd_snapshot_settings {
    uint64_t max_split_bytes;
    double gc_threshold;
    uint64_t roundup_divisions[GMD_ROUNDUP_INTERVALS];
    bool is_expandable;
} gmd_snapshot_settings;

/* Who wrote the recording. Only PyTorch tells of reserved memory; the others' blocks have the size
 * that was asked for. */
typedef enum gmd_recorder {
    GMD_RECORDER_PYTORCH,
    GMD_RECORDER_RMM,   /* a log of allocations and frees, without frames */
    GMD_RECORDER_PPROF, /* a heap profile: blocks with their stacks, without events */
} gmd_recorder;

typedef struct gmd_snapshot {
    gmd_snapshot_event *events; /* of all devices, merged by time; order within a device is kept */
    size_t event_count;
    gmd_snapshot_segment *segments; /* in the file's order */
    size_t segment_count;
    gmd_snapshot_block *blocks;
    size_t block_count;
    gmd_annotation *annotations; /* in the file's order */
    size_t annotation_count;
    gmd_origins origins;
    uint32_t device_count; /* number of device traces */
    char *conf;            /* allocator_settings: PYTORCH_CUDA_ALLOC_CONF; NULL: not in the file */
    const char *setting; /* the first allocator setting that is not PyTorch's default; NULL: none */
    gmd_snapshot_settings settings;
    uint8_t recorder; /* gmd_recorder */
    bool has_events;  /* false: recording was off (no "device_traces", or all empty) */
    bool is_run; /* of an allocator under test: it may have handed out an address twice. No file
                    says so: whoever made the snapshot does. */
} gmd_snapshot;

/* "pytorch", "rmm", "pprof" */
const char *gmd_recorder_name(unsigned recorder);

/* Reads FILE, a snapshot or another recorder's file (gmd_memory_file.h; any name, gzip is
 * recognised by its magic); gmd_file_read_any_size says how large it may be. A segments-only
 * snapshot (a bare list, as old versions wrote) is accepted. On failure `snapshot` is left empty
 * and the error names the file, the byte (in the uncompressed data) and what was expected. */
gmd_status gmd_snapshot_read(gmd_snapshot *snapshot, const char *path, gmd_error *error);

/* The same from memory (uncompressed pickle); `name` is used in messages. */
gmd_status gmd_snapshot_parse(gmd_snapshot *snapshot, const uint8_t *data, size_t size,
                              const char *name, gmd_error *error);
void gmd_snapshot_free(gmd_snapshot *snapshot);

#endif
