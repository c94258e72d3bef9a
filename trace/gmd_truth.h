/* gmd_truth.h - what the recorder of a history wrote beside it: NAME.json (settings, phases, final
 * statistics) and NAME.ops.jsonl.gz (each request with the answer and the statistics after it).
 *
 * Both readers add to the same gmd_truth, which starts as zeros; each may be read without the
 * other. On failure what was there stays, nothing of the new file is kept, and the message names
 * file, line and what was expected. Thread safety: none; share a gmd_truth read-only. */
#ifndef GMD_TRACE_TRUTH_H
#define GMD_TRACE_TRUTH_H

#include "gmd_error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One of memory_stats()'s figures: "active_bytes.all.peak", "num_ooms"... */
typedef struct gmd_truth_stat_entry {
    char *name;
    uint64_t value;
} gmd_truth_stat_entry;

/* What the recorder read at a named point, in bytes. */
typedef struct gmd_truth_phase {
    char *label;
    uint64_t allocated, max_allocated, reserved, max_reserved;
} gmd_truth_phase;

typedef enum gmd_truth_kind {
    GMD_TRUTH_ALLOC,
    GMD_TRUTH_FREE,
    GMD_TRUTH_OOM,
    GMD_TRUTH_EMPTY_CACHE, /* of its figures only the retries count */
} gmd_truth_kind;

/* One line of the operations file: a request or an empty_cache(), and the figures after it. */
typedef struct gmd_truth_op {
    uint8_t kind;     /* gmd_truth_kind */
    uint32_t stream;  /* ALLOC, OOM: index into stream_handles */
    uint32_t line;    /* of the file */
    uint64_t id;      /* the recorder's number of the block */
    uint64_t bytes;   /* ALLOC, OOM: asked for */
    uint64_t address; /* ALLOC; else 0 */
    uint64_t allocated, reserved, active, inactive_split; /* bytes */
    uint64_t segments, retries, ooms;                     /* counts */
} gmd_truth_op;

typedef struct gmd_truth {
    /* NAME.json */
    double cap_gib;     /* kwargs.cap_gib; 0: none */
    uint64_t cap_bytes; /* the same, rounded down to bytes */
    char *conf;         /* PYTORCH_CUDA_ALLOC_CONF; NULL: not in the file */
    gmd_truth_stat_entry *stats;
    size_t stat_count;
    gmd_truth_phase *phases;
    size_t phase_count;
    /* NAME.ops.jsonl.gz */
    uint64_t *stream_handles;
    size_t stream_count;
    uint64_t ops_cap_bytes; /* of reserved memory, by the memory fraction; 0: none */
    gmd_truth_op *ops;
    size_t op_count;
} gmd_truth;

gmd_status gmd_truth_read_json(const char *path, gmd_truth *truth, gmd_error *error);
gmd_status gmd_truth_read_ops(const char *path, gmd_truth *truth, gmd_error *error);

/* Both of them, where they lie beside a history that is called NAME.pickle or NAME.pickle.gz. Files
 * of those names need not be the recorder's. */
gmd_status gmd_truth_read_beside(const char *history_path, gmd_truth *truth, gmd_error *error);
void gmd_truth_free(gmd_truth *truth);

/* A figure of the final statistics by its name; false: not in the file. */
bool gmd_truth_stat(const gmd_truth *truth, const char *name, uint64_t *value);

#endif
