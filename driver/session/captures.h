/* captures.h - which streams are captured, and the graphs that captures have made. */
#ifndef GMD_CAPTURES_H
#define GMD_CAPTURES_H

#include "gmd_oracle.h"
#include "gmd_runtime.h"
#include "gmd_streams.h"

typedef struct captured_graph {
    int device;
    uint32_t pool;
    cudaGraphExec_t exec; /* NULL: it is being captured, or that has failed */
    gmd_graph_access *accesses;
    size_t count, capacity;
    uint64_t duration_ns; /* of all its work, one after the other */
    bool is_launched;
} captured_graph;

#define ORDERED_ACCESSES 256 /* of a capture: of later ones the order is not followed */

typedef struct capture_set {
    bool is_under_way;      /* a stream is captured */
    captured_graph *graphs; /* the oldest first; the last one may be under way */
    size_t count, capacity;
    int device; /* of the latest capture, as all that follows */
    uint32_t stream;
    uint64_t joined; /* bit s: stream s, of the first 64; it waited for a captured one */
    cudaStream_t handles[GMD_TRACKED_STREAMS]; /* of these */
    uint64_t began;                            /* request index */
    bool is_spoilt;                            /* by the program, which waited for it */
    bool has_failed;                           /* CUDA has said so: there will be no graph */
    /* By stream: bit i says that what is captured there next runs after the i-th access. */
    uint64_t after[GMD_TRACKED_STREAMS][ORDERED_ACCESSES / 64];
} capture_set;

/* The bit of a stream in sets of streams; 0: its number is too high. */
static inline uint64_t stream_bit(uint32_t stream)
{
    return stream < GMD_TRACKED_STREAMS ? (uint64_t)1 << stream : 0;
}

static inline bool captures_include(const capture_set *c, int device, uint32_t stream)
{
    return c->is_under_way && c->device == device && (c->joined & stream_bit(stream));
}

/* Likewise, of the latest capture and by the stream's handle. */
bool captures_have_joined(const capture_set *captures, cudaStream_t stream);

/* A new graph, the latest; NULL: no host memory. */
captured_graph *captures_add(capture_set *captures);
/* The capture of that graph begins with this stream, during a request. */
void captures_begin(capture_set *captures, int device, uint32_t stream, cudaStream_t handle,
                    uint64_t request);
/* What is captured on `waiter` next runs after what is captured on `waited`. */
void captures_join(capture_set *captures, uint32_t waiter, uint32_t waited, cudaStream_t handle);
/* Work of the graph that is being captured. False: no host memory. */
bool captures_note(capture_set *captures, const gmd_graph_access *access, uint64_t duration_ns);
/* No stream is captured any more. */
void captures_end(capture_set *captures);

/* Captured work in that memory which need not run before what is captured next on the stream; NULL:
 * there is none. After a failure, too: work and waits are refused then, and none of it will run. */
const gmd_graph_access *captures_clash(const capture_set *captures, uint64_t address,
                                       uint64_t bytes, uint32_t stream);

/* The latest graph of the pool, where it can be launched; NULL: there is none. */
captured_graph *captures_latest(capture_set *captures, int device, uint32_t pool);
uint32_t captures_count(const capture_set *captures, int device, uint32_t pool);
/* Whether graphs work in the pool of that serial number; 0: the default one, where none does. */
bool captures_have_graphs(const capture_set *captures, int device, uint32_t pool_serial);
void captures_drop(capture_set *captures, size_t index); /* its `exec` is destroyed */
void captures_forget(capture_set *captures);             /* likewise of all of them */

/* For assertions: the sentence that does not hold; NULL: all does. */
const char *captures_violation(const capture_set *captures);

/* Whether a call was refused because the capture has failed before, which is noted; the error is
 * taken back. */
bool captures_refused(capture_set *captures, const gmd_runtime *runtime, cudaError_t result);

#endif
