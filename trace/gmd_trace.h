/* gmd_trace.h - a request sequence: what a program asks of its allocator, in order.
 *
 * One model serves every source (a .gmd text file, a recorded history, a scenario, the fuzzer) and
 * every use (running, minimising, writing it down again). It is plain data: an array of requests
 * and the names that they refer to by index. The text form is described in docs/trace-format.md.
 *
 * Ownership: a gmd_trace owns all its arrays; gmd_trace_free releases them and accepts an
 * initialised-to-zero trace. Thread safety: none; share a trace read-only. */
#ifndef GMD_TRACE_H
#define GMD_TRACE_H

#include "gmd_error.h"
#include "gmd_schedule.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef enum gmd_op {
    GMD_OP_ALLOC,       /* block, bytes, stream, device */
    GMD_OP_FREE,        /* block */
    GMD_OP_USE,         /* block, stream, duration_ns: work on `stream` that reads and writes it */
    GMD_OP_RECORD,      /* block, stream: record_stream */
    GMD_OP_WAIT,        /* stream waits for all that is queued on other_stream now */
    GMD_OP_SYNC,        /* the host waits for `stream`, or for the device: GMD_ALL_STREAMS */
    GMD_OP_ADVANCE,     /* duration_ns: the simulated clock moves */
    GMD_OP_EMPTY_CACHE, /* gmd_empty_cache() */
    GMD_OP_FRACTION,    /* fraction, device: gmd_set_memory_fraction() */
    GMD_OP_FAULT,       /* function (name index), count, error: the count-th call from here fails;
                           with every_later, so do all after it */
    GMD_OP_DEVICE,      /* device: it becomes the thread's current one */
    GMD_OP_DESTROY,     /* stream, device: the stream is destroyed; a later use makes a new one */
    GMD_OP_BUDGET,      /* bytes, device: physical memory beyond that is refused */
    GMD_OP_BEGIN_POOL,  /* pool, device, stream: its requests, or with GMD_ALL_STREAMS all of the
                           device, go to the pool */
    GMD_OP_END_POOL,    /* pool, device: to the default one again */
    GMD_OP_BEGIN_CAPTURE, /* pool, stream, device: work on the stream becomes a graph, and its
                             requests go to the pool */
    GMD_OP_END_CAPTURE,   /* pool, device: the graph is made, and the pool is closed */
    GMD_OP_LAUNCH,        /* pool, stream, device: the pool's latest graph runs on the stream */
    GMD_OP_RELEASE_POOL,  /* pool, device: one begin's hold is taken back */
    GMD_OP_COUNT
} gmd_op;

/* What the author of a trace demands of an allocation (`expect alloc`, `expect oom`). */
typedef enum gmd_expect { GMD_EXPECT_ANY, GMD_EXPECT_ALLOC, GMD_EXPECT_OOM } gmd_expect;

#define GMD_ALL_STREAMS   UINT32_MAX
#define GMD_NO_BUDGET     UINT64_MAX
#define GMD_MAX_DEVICES   16
#define GMD_MAX_STREAMS   4096
#define GMD_MAX_THREADS   64
#define GMD_MAX_POOLS     64
#define GMD_MAX_TRACE_LEN ((size_t)1 << 28)

typedef struct gmd_request {
    uint8_t op; /* gmd_op */
    union {
        uint8_t expect;      /* gmd_expect, ALLOC only */
        uint8_t every_later; /* FAULT only: 0 or 1 */
    };
    uint8_t device;  /* ALLOC, FRACTION, DEVICE, BUDGET, pools, SYNC of the device; for the others
                        the  block's or stream's */
    uint8_t thread;  /* index into gmd_trace.threads; 0 is the main thread */
    uint32_t block;  /* index into gmd_trace.blocks */
    uint32_t stream; /* index into gmd_trace.streams; 0 is the legacy default stream */
    union {
        uint32_t other_stream; /* WAIT */
        uint32_t function;     /* FAULT: index into gmd_trace.functions */
        uint32_t pool;         /* BEGIN_POOL to RELEASE_POOL: index into gmd_trace.pools */
    };
    union {
        uint64_t bytes;       /* ALLOC, BUDGET */
        uint64_t duration_ns; /* USE, ADVANCE */
        double fraction;      /* FRACTION, 0..1 */
        struct {
            uint32_t count; /* FAULT: 1 is the next call */
            uint32_t error; /* FAULT: a cudaError_t or CUresult */
        };
    };
    uint32_t line; /* of the source text; 0 where there is none */
} gmd_request;

/* A list of names; an unnamed entry (NULL) is written as a letter and its index. */
typedef struct gmd_names {
    char **items;
    uint32_t count, capacity;
} gmd_names;

typedef struct gmd_trace {
    gmd_request *requests;
    size_t count, capacity;
    gmd_names blocks, streams, threads, functions, pools;
    uint64_t *stream_handles; /* streams.count entries: as recorded, ascending order is kept by the
                                 driver; NULL when the source had none */
    uint32_t device_count;    /* 0: not stated */
    uint64_t capacity_bytes;  /* of each simulated device; 0: not stated */
    char *conf;               /* PYTORCH_CUDA_ALLOC_CONF syntax; NULL: not stated */
    gmd_schedule schedule;    /* of the simulated device's work */
    gmd_schedule interleave;  /* of the host's threads */
} gmd_trace;

void gmd_trace_init(gmd_trace *trace); /* empty, with stream s0 and the main thread */
void gmd_trace_free(gmd_trace *trace);

/* Appends a request; amortised O(1). Fails only for want of memory or over GMD_MAX_TRACE_LEN. */
gmd_status gmd_trace_append(gmd_trace *trace, const gmd_request *request, gmd_error *error);

/* Whether its `stream` is one of the trace's: not so where it means all of the device. */
bool gmd_request_names_stream(const gmd_request *request);

/* Adds an entry (name may be NULL) and gives its index. */
gmd_status gmd_names_add(gmd_names *names, const char *name, uint32_t *index, gmd_error *error);

/* The text format. `file` is used in messages only. Blocks must be allocated before they are freed
 * or used, and an id may be used again after its free; likewise pools. On failure `trace` is left
 * empty and the error names file, line and what was expected. */
gmd_status gmd_trace_parse(gmd_trace *trace, const char *text, size_t length, const char *file,
                           gmd_error *error);
gmd_status gmd_trace_write(const gmd_trace *trace, FILE *out, gmd_error *error);

/* Writes request `index` as its line of text, without the newline, truncated to fit; for messages.
 */
const char *gmd_request_text(const gmd_trace *trace, const gmd_request *request, char *text,
                             size_t size);

#endif
