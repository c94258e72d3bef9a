/* cupti_calls.h agrees with the CUDA toolkit of this machine: numbers, places of parameters,
 * values.
 */
#include "gmd_test.h"

#include <cuda.h>
#include <cupti.h>

#include "cupti_calls.h"

#include <stdbool.h>
#include <string.h>

TEST(numbers_of_calls_agree)
{
#define SAME_NUMBER(name, number, action, is_per_thread, stream, a, b)                             \
    assert_int_equal(number, CUPTI_DRIVER_TRACE_CBID_##name);
    CUPTI_CALLS(SAME_NUMBER)
#undef SAME_NUMBER
}

typedef struct row {
    const char *name;
    const char *action;
    bool is_per_thread;
    size_t stream, a, b;
} row;

static const row rows[] = {
#define ROW(name, number, action, is_per_thread, stream, a, b)                                     \
    {#name, #action, is_per_thread, stream, a, b},
    CUPTI_CALLS(ROW)
#undef ROW
};

static const row *row_of(const char *name)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(rows[i].name, name) == 0) {
            return &rows[i];
        }
    }
    fail_msg("%s is not among CUPTI_CALLS", name);
    return NULL;
}

static size_t checked; /* rows */

static void same_places(const char *name, size_t stream, size_t a, size_t b)
{
    const row *r = row_of(name);
    if (r->stream != stream || r->a != a || r->b != b) {
        fail_msg("%s: stream, a, b lie at %zu, %zu, %zu and not at %zu, %zu, %zu", name, stream, a,
                 b, r->stream, r->a, r->b);
    }
    checked++;
}

/* The place of a parameter by its name. */
#define PLACE(call, name)        offsetof(call##_params, name)
#define SAME(call, stream, a, b) same_places(#call, stream(call), a(call), b(call));

#define NONE(call)          CUPTI_NOWHERE
#define H_STREAM(call)      PLACE(call, hStream)
#define STREAM(call)        PLACE(call, stream)
#define FUNCTION(call)      PLACE(call, f)
#define PARAMETERS(call)    PLACE(call, kernelParams)
#define CONFIG(call)        PLACE(call, config)
#define TO(call)            PLACE(call, dstDevice)
#define FROM(call)          PLACE(call, srcDevice)
#define UNIFIED_TO(call)    PLACE(call, dst)
#define UNIFIED_FROM(call)  PLACE(call, src)
#define DESCRIPTION(call)   PLACE(call, pCopy)
#define EVENT(call)         PLACE(call, hEvent)
#define VALUE(call)         PLACE(call, addr)
#define CONTEXT(call)       PLACE(call, ctx)
#define NEW_STREAM(call)    PLACE(call, phStream)
#define SMALL_FLAGS(call)   PLACE(call, flags)
#define CAPITAL_FLAGS(call) PLACE(call, Flags)
#define NEW_GRAPH(call)     PLACE(call, phGraph)
#define GRAPH(call)         PLACE(call, hGraph)
#define NEW_EXEC(call)      PLACE(call, phGraphExec)
#define EXEC(call)          PLACE(call, hGraphExec)

/* A call and its variant for the thread's default stream. */
#define SAME_TWO(call, suffix, stream, a, b)                                                       \
    SAME(call, stream, a, b)                                                                       \
    SAME(call##suffix, stream, a, b)

static void check_work(void)
{
    SAME_TWO(cuLaunchKernel, _ptsz, H_STREAM, FUNCTION, PARAMETERS)
    SAME_TWO(cuLaunchKernelEx, _ptsz, CONFIG, FUNCTION, PARAMETERS)
    SAME_TWO(cuLaunchCooperativeKernel, _ptsz, H_STREAM, FUNCTION, PARAMETERS)
    SAME_TWO(cuMemcpyHtoD_v2, _ptds, NONE, TO, NONE)
    SAME_TWO(cuMemcpyDtoH_v2, _ptds, NONE, FROM, NONE)
    SAME_TWO(cuMemcpyDtoD_v2, _ptds, NONE, TO, FROM)
    SAME_TWO(cuMemcpy, _ptds, NONE, UNIFIED_TO, UNIFIED_FROM)
    SAME_TWO(cuMemcpyPeer, _ptds, NONE, TO, FROM)
    SAME_TWO(cuMemcpy2D_v2, _ptds, NONE, DESCRIPTION, NONE)
    SAME_TWO(cuMemcpy2DUnaligned_v2, _ptds, NONE, DESCRIPTION, NONE)
    SAME_TWO(cuMemcpyHtoDAsync_v2, _ptsz, H_STREAM, TO, NONE)
    SAME_TWO(cuMemcpyDtoHAsync_v2, _ptsz, H_STREAM, FROM, NONE)
    SAME_TWO(cuMemcpyDtoDAsync_v2, _ptsz, H_STREAM, TO, FROM)
    SAME_TWO(cuMemcpyAsync, _ptsz, H_STREAM, UNIFIED_TO, UNIFIED_FROM)
    SAME_TWO(cuMemcpyPeerAsync, _ptsz, H_STREAM, TO, FROM)
    SAME_TWO(cuMemcpy2DAsync_v2, _ptsz, H_STREAM, DESCRIPTION, NONE)
    SAME_TWO(cuMemsetD8_v2, _ptds, NONE, TO, NONE)
    SAME_TWO(cuMemsetD16_v2, _ptds, NONE, TO, NONE)
    SAME_TWO(cuMemsetD32_v2, _ptds, NONE, TO, NONE)
    SAME_TWO(cuMemsetD8Async, _ptsz, H_STREAM, TO, NONE)
    SAME_TWO(cuMemsetD16Async, _ptsz, H_STREAM, TO, NONE)
    SAME_TWO(cuMemsetD32Async, _ptsz, H_STREAM, TO, NONE)
    SAME_TWO(cuMemsetD2D8Async, _ptsz, H_STREAM, TO, NONE)
    SAME_TWO(cuMemsetD2D16Async, _ptsz, H_STREAM, TO, NONE)
    SAME_TWO(cuMemsetD2D32Async, _ptsz, H_STREAM, TO, NONE)
    SAME(cuGraphLaunch, H_STREAM, GRAPH, NONE)
    SAME(cuGraphLaunch_ptsz, H_STREAM, EXEC, NONE)
}

static void check_order(void){
    SAME(cuStreamDestroy_v2, H_STREAM, NONE, NONE) SAME(cuEventDestroy_v2, NONE, EVENT, NONE)
        SAME(cuGraphDestroy, NONE, GRAPH, NONE) SAME(cuGraphExecDestroy, NONE, EXEC, NONE)
            SAME_TWO(cuEventRecord, _ptsz, H_STREAM, EVENT,
                     NONE) SAME_TWO(cuEventRecordWithFlags, _ptsz, H_STREAM, EVENT, NONE)
                SAME_TWO(cuStreamWriteValue32_v2, _ptsz, STREAM, VALUE,
                         NONE) SAME_TWO(cuStreamWriteValue64_v2, _ptsz, STREAM, VALUE, NONE)
                    SAME_TWO(cuStreamWaitEvent, _ptsz, H_STREAM, EVENT,
                             NONE) SAME_TWO(cuStreamWaitValue32_v2, _ptsz, STREAM, VALUE, NONE)
                        SAME_TWO(cuStreamWaitValue64_v2, _ptsz, STREAM,
                                 VALUE, NONE) SAME(cuEventSynchronize, NONE, EVENT,
                                                   NONE) SAME(cuEventQuery, NONE, EVENT, NONE)
                            SAME_TWO(cuStreamSynchronize, _ptsz, H_STREAM, NONE,
                                     NONE) SAME_TWO(cuStreamQuery, _ptsz, H_STREAM, NONE, NONE)
                                SAME(cuCtxSynchronize_v2, NONE, CONTEXT,
                                     NONE) SAME(cuStreamCreate, NONE, NEW_STREAM, CAPITAL_FLAGS)
                                    SAME(cuStreamCreateWithPriority, NONE, NEW_STREAM,
                                         SMALL_FLAGS) SAME(cuGreenCtxStreamCreate, NONE, NEW_STREAM,
                                                           SMALL_FLAGS)
                                        SAME_TWO(cuStreamBeginCapture, _ptsz, H_STREAM, NONE,
                                                 NONE) SAME_TWO(cuStreamBeginCapture_v2,
                                                                _ptsz, H_STREAM, NONE, NONE)
                                            SAME_TWO(cuStreamBeginCaptureToGraph, _ptsz, H_STREAM,
                                                     NONE, NONE) SAME_TWO(cuStreamEndCapture, _ptsz,
                                                                          H_STREAM, NEW_GRAPH, NONE)
                                                SAME(cuGraphInstantiate, NONE, NEW_EXEC, GRAPH)
                                                    SAME(cuGraphInstantiate_v2, NONE, NEW_EXEC,
                                                         GRAPH) SAME(cuGraphInstantiateWithFlags,
                                                                     NONE, NEW_EXEC, GRAPH)
                                                        SAME_TWO(cuGraphInstantiateWithParams,
                                                                 _ptsz, NONE, NEW_EXEC, GRAPH)
                                                            SAME(cuGraphExecUpdate, NONE, EXEC,
                                                                 GRAPH) SAME(cuGraphExecUpdate_v2,
                                                                             NONE, EXEC, GRAPH)}

TEST(places_of_parameters_agree)
{
    checked = 0;
    check_work();
    check_order();
    size_t without_parameters =
        4; /* cuModuleUnload, cuLibraryUnload, cuCtxSynchronize, cuMemFree */
    assert_int_equal(checked + without_parameters, sizeof rows / sizeof rows[0]);
    assert_int_equal(offsetof(cuLaunchKernel_params, extra),
                     offsetof(cuLaunchKernel_params, kernelParams) + sizeof(void *));
    assert_int_equal(offsetof(cuLaunchKernelEx_params, extra),
                     offsetof(cuLaunchKernelEx_params, kernelParams) + sizeof(void *));
}

TEST(variants_for_the_default_stream_of_a_thread_are_marked_as_such)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bool has_suffix = strstr(rows[i].name, "_ptsz") || strstr(rows[i].name, "_ptds");
        bool has_stream = strcmp(rows[i].action, "INSTANTIATE") != 0;
        assert_int_equal(rows[i].is_per_thread, has_suffix && has_stream);
    }
}

TEST(what_calls_point_to_agrees)
{
    assert_int_equal(CUPTI_CONFIG_STREAM_AT, offsetof(CUlaunchConfig, hStream));
    assert_int_equal(CUPTI_RECTANGLE_TYPE_AT, offsetof(CUDA_MEMCPY2D, srcMemoryType));
    assert_int_equal(CUPTI_RECTANGLE_FROM_AT, offsetof(CUDA_MEMCPY2D, srcDevice));
    assert_int_equal(CUPTI_RECTANGLE_TO_TYPE_AT, offsetof(CUDA_MEMCPY2D, dstMemoryType));
    assert_int_equal(CUPTI_RECTANGLE_TO_AT, offsetof(CUDA_MEMCPY2D, dstDevice));
    assert_int_equal(offsetof(cupti_call, site), offsetof(CUpti_CallbackData, callbackSite));
    assert_int_equal(offsetof(cupti_call, function), offsetof(CUpti_CallbackData, functionName));
    assert_int_equal(offsetof(cupti_call, parameters),
                     offsetof(CUpti_CallbackData, functionParams));
    assert_int_equal(offsetof(cupti_call, result),
                     offsetof(CUpti_CallbackData, functionReturnValue));
    assert_int_equal(offsetof(cupti_call, symbol), offsetof(CUpti_CallbackData, symbolName));
    assert_int_equal(offsetof(cupti_call, context), offsetof(CUpti_CallbackData, context));
}

TEST(values_agree)
{
    assert_int_equal(CUPTI_OK, CUPTI_SUCCESS);
    assert_int_equal(CUPTI_TAKEN, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
    assert_int_equal(CUPTI_DRIVER_CALLS, CUPTI_CB_DOMAIN_DRIVER_API);
    assert_int_equal(CUPTI_ENTER, CUPTI_API_ENTER);
    assert_int_equal(CUDA_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(CUDA_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
    assert_int_equal(CUDA_MEMORY_DEVICE, CU_MEMORYTYPE_DEVICE);
    assert_int_equal(CUDA_MEMORY_UNIFIED, CU_MEMORYTYPE_UNIFIED);
    assert_int_equal(CUDA_PARAMETERS_END, CU_LAUNCH_PARAM_END_AS_INT);
    assert_int_equal(CUDA_PARAMETERS_AT, CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT);
    assert_int_equal(CUDA_PARAMETERS_BYTES, CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT);
    assert_true(CUPTI_DRIVER_TRACE_CBID_SIZE <= 1024);
}
