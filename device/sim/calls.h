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

#include "call_record.h"
#include "gmd_sim_front.h"

bool call_enter(sim_call *call, call_id id);
int call_leave(sim_call *call);

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

#endif
