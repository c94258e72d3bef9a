/* capture.h - streams that capture: what is queued on them becomes a graph instead of being run. */
#ifndef GMD_SIM_CAPTURE_H
#define GMD_SIM_CAPTURE_H

#include "call_record.h"
#include "stream_table.h"

/* Checks that answer with the error of a call that a capture forbids, after stopping the capture
 * where that is what a real device does; 0: it may go on. */
bool capture_is_any(void);
bool capture_stop(int device); /* what captures on it becomes invalid; false: nothing does */
int capture_check_unsafe(sim_call *call); /* may synchronise, whatever it is given */
int capture_check_device(sim_call *call); /* cudaDeviceSynchronize */
int capture_check_event(sim_call *call, uint64_t capture_id); /* the host asks for an event */
int capture_check_stream(sim_call *call, stream *s);          /* the host asks for a stream */
int capture_check_work(sim_call *call, const stream *s);      /* work on a stream */
/* Stops the capture of `s`; returns `error` with the sentence noted. */
int capture_refuse(sim_call *call, stream *s, int error, const char *sentence);
uint64_t capture_id_of(const stream *s); /* 0: it does not capture */

bool capture_push(stream *s, const entry *e); /* false: the host has no memory */
/* `s` waits for an event recorded in a capture: joins it. */
int capture_wait(sim_call *call, stream *s, uint64_t capture_id, const uint32_t *after,
                 uint32_t count);
void capture_leave_stream(stream *s); /* it is destroyed next */
void captures_reset(void);

/* The calls, each of which is answered with its status. */
int capture_begin(sim_call *call, cudaStream_t handle, enum cudaStreamCaptureMode mode);
int capture_begin_to_graph(sim_call *call, cudaStream_t handle, cudaGraph_t graph_given,
                           const cudaGraphNode_t *nodes, size_t count,
                           enum cudaStreamCaptureMode mode);
int capture_end(sim_call *call, cudaStream_t handle, cudaGraph_t *out);
int capture_status(sim_call *call, cudaStream_t handle, enum cudaStreamCaptureStatus *status);

/* Where the answers of cudaStreamGetCaptureInfo go; NULL: not asked for. */
typedef struct capture_info {
    enum cudaStreamCaptureStatus *status;
    unsigned long long *id;
    cudaGraph_t *graph;
    const cudaGraphNode_t **nodes;
    const cudaGraphEdgeData **edges;
    size_t *count;
} capture_info;
int capture_get_info(sim_call *call, cudaStream_t handle, const capture_info *out);

int capture_update(sim_call *call, cudaStream_t handle, const cudaGraphNode_t *nodes, size_t count,
                   unsigned flags);

#endif
