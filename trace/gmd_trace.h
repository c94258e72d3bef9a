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

#include "gmd_conditions.h"
#include "gmd_error.h"
#include "gmd_request_table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* What the author of a trace demands of an allocation (`expect alloc`, `expect oom`). */
typedef enum gmd_expect { GMD_EXPECT_ANY, GMD_EXPECT_ALLOC, GMD_EXPECT_OOM } gmd_expect;

/* What a private pool is made with, as bits (docs/trace-format.md). */
typedef enum gmd_pool_option {
    GMD_POOL_NO_SPLIT = 1,   /* its blocks are handed out whole */
    GMD_POOL_USE_ON_OOM = 2, /* its free blocks serve the default pool rather than a refusal */
    GMD_POOL_OWN_MEMORY = 4, /* its segments are not cudaMalloc's but its program's */
    GMD_POOL_OPTION_SETS = 8 /* sets are below */
} gmd_pool_option;

#define GMD_POOL_OPTION_COUNT 3

/* "no_split" and its like, of bit i. */
extern const char *const gmd_pool_option_words[GMD_POOL_OPTION_COUNT];

#define GMD_ALL_STREAMS   UINT32_MAX
#define GMD_NO_BUDGET     UINT64_MAX
#define GMD_MAX_DEVICES   16
#define GMD_MAX_STREAMS   4096
#define GMD_MAX_THREADS   64
#define GMD_MAX_POOLS     64
#define GMD_MAX_TRACE_LEN ((size_t)1 << 28)

/* Which of the fields count is said by the row of its op (gmd_request_table.h). */
typedef struct gmd_request {
    uint8_t op; /* gmd_op */
    union {
        uint8_t expect;       /* gmd_expect */
        uint8_t every_later;  /* 0 or 1 */
        uint8_t pool_options; /* a set of gmd_pool_option, of a begin that makes the pool */
    };
    uint8_t device;  /* 0 where there is no such field; where there is a block, its own */
    uint8_t thread;  /* index into gmd_trace.threads; 0 is the main thread */
    uint32_t block;  /* index into gmd_trace.blocks */
    uint32_t stream; /* index into gmd_trace.streams; 0 is the legacy default stream */
    union {
        uint32_t other_stream;
        uint32_t function; /* index into gmd_trace.functions */
        uint32_t pool;     /* index into gmd_trace.pools */
    };
    union {
        uint64_t bytes;
        uint64_t duration_ns;
        double fraction; /* 0..1 */
        struct {
            uint32_t count; /* 1 is the next call */
            uint32_t error; /* a cudaError_t or CUresult */
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
    uint64_t *stream_handles;  /* streams.count entries: as recorded, ascending order is kept by the
                                  driver; NULL when the source had none */
    gmd_conditions conditions; /* what the header states */
} gmd_trace;

void gmd_trace_init(gmd_trace *trace); /* empty, with stream s0 and the main thread */
void gmd_trace_free(gmd_trace *trace);

/* Appends a request; amortised O(1). Fails only for want of memory or over GMD_MAX_TRACE_LEN. */
gmd_status gmd_trace_append(gmd_trace *trace, const gmd_request *request, gmd_error *error);

/* Whether its `stream` is one of the trace's: not so where it means all of the device. */
static inline bool gmd_request_names_stream(const gmd_request *request)
{
    return gmd_op_has_any(request->op, GMD_STREAM_FIELDS) &&
           (request->stream != GMD_ALL_STREAMS ||
            !gmd_op_has(request->op, GMD_FIELD_STREAM_OR_ALL));
}

/* The places of the streams that it names, in the order of its line; how many. */
static inline size_t gmd_request_streams(gmd_request *request, uint32_t *streams[2])
{
    size_t count = 0;
    if (gmd_request_names_stream(request)) {
        streams[count++] = &request->stream;
    }
    if (gmd_op_has(request->op, GMD_FIELD_OTHER_STREAM)) {
        streams[count++] = &request->other_stream;
    }
    return count;
}

/* Adds an entry (name may be NULL) and gives its index. */
gmd_status gmd_names_add(gmd_names *names, const char *name, uint32_t *index, gmd_error *error);

/* The text format. `file` is used in messages only. Blocks must be allocated before they are freed
 * or used, and an id may be used again after its free; likewise pools. On failure `trace` is left
 * empty and the error names file, line and what was expected. */
gmd_status gmd_trace_parse(gmd_trace *trace, const char *text, size_t length, const char *file,
                           gmd_error *error);
/* The same of a file ("-": standard input), packed or not. */
gmd_status gmd_trace_read(gmd_trace *trace, const char *path, gmd_error *error);
gmd_status gmd_trace_write(const gmd_trace *trace, FILE *out, gmd_error *error);

/* Writes request `index` as its line of text, without the newline, truncated to fit; for messages.
 */
const char *gmd_request_text(const gmd_trace *trace, const gmd_request *request, char *text,
                             size_t size);

#endif
