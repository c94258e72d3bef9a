/* calls.h - the one place that every API call passes on its way in and out.
 *
 *     cudaError_t gmd_sim_cudaX(...)
 *     {
 *         sim_call call;
 *         if (call_enter(&call, CALL_cudaX)) {
 *             call.record.result = ...;
 *         }
 *         return call_leave(&call);
 *     }
 *
 * call_enter takes the runtime's lock, counts the call, and lets a planted fault answer it (then it
 * is false and the call must do nothing). call_leave gives the result its effect on the thread's
 * last error, releases the lock and tells the observer. What lies between the two runs alone.
 *
 * Which calls fail when. A call with a wrong argument changes nothing: a NULL out-pointer, a range
 * that is not within one live allocation, an address that is not the start of one, unknown flags
 * give InvalidValue; a stream or event that was never created, was destroyed, or is from before the
 * last reset gives InvalidResourceHandle; a device number out of range InvalidDevice. All of these
 * are reported to the observer as misuse. cudaMalloc beyond the memory left gives MemoryAllocation,
 * a query of unfinished work NotReady: errors, not misuse. Driver functions need cuInit
 * (NOT_INITIALIZED) and, where they touch memory, a current context (INVALID_CONTEXT).
 *
 * The last error is per thread: a failing runtime call sets it, a successful one leaves it,
 * cudaGetLastError returns and clears it. cudaErrorNotReady is an answer and leaves no error
 * behind, as seen with CUDA 13.0 on an H200. Driver functions do not touch it. An error planted as
 * a fault is not sticky, whatever its code: the device stays usable. */
#ifndef GMD_SIM_CALLS_H
#define GMD_SIM_CALLS_H

#include "gmd_sim.h"

typedef enum call_id {
#define CALL_ID(result, name, parameters, arguments) CALL_##name,
    GMD_SIM_CUDA_FUNCTIONS(CALL_ID) CALL_COUNT
#undef CALL_ID
} call_id;

struct stream;

enum { CONTEXT_STACK_MAX = 16, NO_CONTEXT = -1 };

/* What the CUDA runtime keeps for each thread. */
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

typedef struct sim_call {
    sim_thread *thread;
    call_id id;
    bool lacks_memory; /* the host has none for a stream that the call names */
    gmd_sim_call record;
} sim_call;

bool call_enter(sim_call *call, call_id id);
int call_leave(sim_call *call);

/* For a call that broke the API's rules: notes the static sentence and returns `result`. */
int call_misuse(sim_call *call, int result, const char *sentence);
/* Where a call can break several rules with one error: `rule` is its name for good. */
int call_misuse_of(sim_call *call, int result, const char *rule, const char *sentence);

/* A whole API function: `...` is what it answers, an expression that may use `call`. */
#define SIM_CALL(name, parameters, ...)                                                            \
    cudaError_t gmd_sim_##name parameters                                                          \
    {                                                                                              \
        sim_call call;                                                                             \
        if (call_enter(&call, CALL_##name)) {                                                      \
            call.record.result = (int)(__VA_ARGS__);                                               \
        }                                                                                          \
        return (cudaError_t)call_leave(&call);                                                     \
    }

/* Likewise a driver function that needs a current context. */
#define SIM_DRIVER_CALL(name, parameters, ...)                                                     \
    CUresult gmd_sim_##name parameters                                                             \
    {                                                                                              \
        sim_call call;                                                                             \
        if (call_enter(&call, CALL_##name)) {                                                      \
            call.record.result =                                                                   \
                call.thread->has_context ? (int)(__VA_ARGS__) : (int)CUDA_ERROR_INVALID_CONTEXT;   \
        }                                                                                          \
        return (CUresult)call_leave(&call);                                                        \
    }

/* Runs a host function: without the lock, and CUDA calls in it are refused. */
void sim_run_host(cudaHostFn_t function, cudaStreamCallback_t callback, cudaStream_t on,
                  void *data);
void sim_wait_for_host(void); /* until a host function that runs in another thread has ended */

/* Forgets counters, faults and misuse; makes every thread's state stale. */
void calls_reset(void);

/* The lock of the whole runtime, for the control functions. */
void sim_lock(void);
void sim_unlock(void);

/* The calling thread's state, brought up to date. Under the lock. */
sim_thread *sim_this_thread(void);

#endif
