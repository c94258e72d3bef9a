/* thread.h - what the CUDA runtime keeps for each thread. */
#ifndef GMD_SIM_THREAD_H
#define GMD_SIM_THREAD_H

#include "gmd_sim.h"

struct stream;

enum { CONTEXT_STACK_MAX = 16, NO_CONTEXT = -1 };

typedef struct sim_thread {
    uint64_t epoch;   /* of the reset that it belongs to; stale state is dropped at the next call */
    int device;       /* whose context is current, or what cudaGetDevice says without one */
    bool has_context; /* the device's context is current */
    int chosen;       /* by cudaSetDevice */
    bool is_detached; /* the driver has left no context current: the runtime then uses device 0 */
    cudaError_t last_error;
    enum cudaStreamCaptureMode capture_mode;
    int8_t pushed[CONTEXT_STACK_MAX]; /* below the current context: devices, or NO_CONTEXT */
    uint8_t pushed_count;
    struct stream *default_stream[GMD_SIM_DEVICE_MAX]; /* cudaStreamPerThread, made when used */
} sim_thread;

/* The calling thread's state, brought up to date. */
sim_thread *sim_this_thread(void);

#endif
