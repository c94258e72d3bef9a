/* gmd_runtime.h - loads the CUDA runtime, simulated or real, and calls it through a table.
 *
 * The program gmd links no libcudart; opening the runtime loads one for the whole process, under
 * the names that allocators ask for, so that a plugin loaded afterwards uses the same device. One
 * process can open one kind of device only. */
#ifndef GMD_RUNTIME_H
#define GMD_RUNTIME_H

#include "gmd_cuda.h"
#include "gmd_error.h"
#include "gmd_sim.h"

typedef enum gmd_device_kind { GMD_DEVICE_SIM, GMD_DEVICE_CUDA } gmd_device_kind;

/* The control API of gmd_sim.h as pointers: `rt.sim->gmd_sim_reset(&config)`. */
#define GMD_SIM_FUNCTIONS(X)                                                                       \
    X(gmd_sim_default_config)                                                                      \
    X(gmd_sim_reset)                                                                               \
    X(gmd_sim_observe)                                                                             \
    X(gmd_sim_harness)                                                                             \
    X(gmd_sim_thread)                                                                              \
    X(gmd_sim_set_yield)                                                                           \
    X(gmd_sim_device)                                                                              \
    X(gmd_sim_find)                                                                                \
    X(gmd_sim_is_backed)                                                                           \
    X(gmd_sim_each_allocation)                                                                     \
    X(gmd_sim_call_count)                                                                          \
    X(gmd_sim_misuse_count)                                                                        \
    X(gmd_sim_forced_waits)                                                                        \
    X(gmd_sim_recorded_left)                                                                       \
    X(gmd_sim_peek)                                                                                \
    X(gmd_sim_poke)                                                                                \
    X(gmd_sim_mark)                                                                                \
    X(gmd_sim_launch_marking)                                                                      \
    X(gmd_sim_find_mark)                                                                           \
    X(gmd_sim_is_complete)                                                                         \
    X(gmd_sim_launch)                                                                              \
    X(gmd_sim_restart_schedule)                                                                    \
    X(gmd_sim_now)                                                                                 \
    X(gmd_sim_advance)                                                                             \
    X(gmd_sim_pending)                                                                             \
    X(gmd_sim_point_of)                                                                            \
    X(gmd_sim_is_ordered)                                                                          \
    X(gmd_sim_is_known)                                                                            \
    X(gmd_sim_event_complete)                                                                      \
    X(gmd_sim_fault)                                                                               \
    X(gmd_sim_budget)                                                                              \
    X(gmd_sim_occupy)                                                                              \
    X(gmd_sim_vacate)                                                                              \
    X(gmd_sim_clear_faults)

#define GMD_RUNTIME_SIM_FIELD(name) __typeof__(&name) name;
typedef struct gmd_sim_api {
    GMD_SIM_FUNCTIONS(GMD_RUNTIME_SIM_FIELD)
} gmd_sim_api;
#undef GMD_RUNTIME_SIM_FIELD

/* Stream captures and graphs. A real runtime may be too old for some: cudaStreamBeginCapture is
 * NULL then, and nothing is captured. */
#define GMD_GRAPH_FUNCTIONS(X)                                                                     \
    X(cudaStreamBeginCapture)                                                                      \
    X(cudaStreamEndCapture)                                                                        \
    X(cudaGraphInstantiateWithFlags)                                                               \
    X(cudaGraphDestroy)                                                                            \
    X(cudaGraphLaunch)                                                                             \
    X(cudaGraphExecDestroy)                                                                        \
    X(cudaThreadExchangeStreamCaptureMode)

#define GMD_RUNTIME_GRAPH_FIELD(name)                          __typeof__(&name) name;
#define GMD_RUNTIME_FIELD(result, name, parameters, arguments) __typeof__(&name) name;
typedef struct gmd_runtime {
    gmd_device_kind kind;
    char path[4096]; /* the libcudart in use */
    GMD_CUDART_FUNCTIONS(GMD_RUNTIME_FIELD)
    GMD_CUDART_TEXT_FUNCTIONS(GMD_RUNTIME_FIELD)
    GMD_GRAPH_FUNCTIONS(GMD_RUNTIME_GRAPH_FIELD)
    const gmd_sim_api *sim; /* NULL on a real device; valid for the life of the process */
} gmd_runtime;
#undef GMD_RUNTIME_FIELD
#undef GMD_RUNTIME_GRAPH_FIELD

/* Loads the runtime for the rest of the process (there is no close: CUDA cannot be unloaded) and
 * fills in `rt`. `lib_directory` is the folder of gmd's own libraries, which has sim/ in it; it is
 * not used for GMD_DEVICE_CUDA. A real runtime is the file $GMD_CUDART where that is set; else it
 * is looked for by the loader's own path, in $CUDA_HOME, $CUDA_PATH, /usr/local/cuda*, and in
 * pip-installed nvidia packages. GMD_BAD_INPUT: no usable library or no device, with everything
 * that was tried and why each failed. Not thread safe: call it before other threads use the device.
 */
gmd_status gmd_runtime_open(gmd_runtime *rt, gmd_device_kind kind, const char *lib_directory,
                            gmd_error *error);

/* "cudaErrorMemoryAllocation (out of memory)" in a buffer of the calling thread, valid until the
 * thread's next call. */
const char *gmd_runtime_error_text(const gmd_runtime *rt, cudaError_t error);

#endif
