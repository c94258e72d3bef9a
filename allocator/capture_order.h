/* capture_order.h - which blocks that were allocated and freed in a capture may be used again
 * within it (graph_capture_record_stream_reuse). A block from before may have work that no graph
 * knows.
 *
 * At its free a block gets marks: for each stream that uses it, and for its own, the nodes of the
 * graph that the stream's next work will follow. A request on the block's stream may have the block
 * as soon as all that is captured next on this stream follows every mark. What is captured says
 * this by itself: no event is recorded or asked, which a capture forbids. Marks are of one capture;
 * a block whose streams are not all captured has none and waits for the capture's end.
 *
 * The caller has exclusive access to the device, and has entered it (gmd_cuda_scope.h). */
#ifndef GMD_CAPTURE_ORDER_H
#define GMD_CAPTURE_ORDER_H

#include "block.h"
#include "gmd_cuda.h"
#include "gmd_intervals.h"

typedef struct capture_marks {
    struct capture_marks *next;
    block *of;
    unsigned long long capture; /* its id */
    size_t count;
    cudaGraphNode_t nodes[];
} capture_marks;

/* What is known of the stream that was asked about last. Zero-initialised is nothing. */
typedef struct capture_order {
    capture_marks *marks; /* of all blocks that have some */
    unsigned long long capture;
    cudaStream_t stream;
    gmd_intervals before;    /* nodes that all next work on the stream follows */
    cudaGraphNode_t *latest; /* of these, the ones that it follows at once */
    size_t latest_count, latest_capacity;
    cudaGraphNode_t *left; /* to be looked at */
    size_t left_count, left_capacity;
    cudaGraphEdgeData *edges;
    size_t edge_capacity;
} capture_order;

/* The block was allocated for the stream. */
void capture_order_begin(block *b, cudaStream_t own);

/* The block was freed. Without host memory, where a stream is not captured, or if it was not
 * allocated in this capture, it gets no marks. */
void capture_order_mark(capture_order *o, block *b, cudaStream_t own);

/* Its marks are forgotten, if it has some. */
void capture_order_forget(capture_order *o, const block *b);

/* The next block of this stream that may be used again; NULL: there is none. It loses its marks. */
block *capture_order_take(capture_order *o, cudaStream_t stream);

void capture_order_release(capture_order *o); /* frees all it has */

#endif
