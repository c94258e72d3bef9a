/* What holds for every function of the runtime and the driver, whatever it does. */
#include "device_test.h"

#include <string.h>

typedef struct named_call {
    const char *name;
    void (*function)(void);
} named_call;

#define NAMED(result, name, parameters, arguments) {#name, (void (*)(void))(name)},
static const named_call runtime_calls[] = {GMD_CUDART_FUNCTIONS(NAMED)
                                               GMD_CUDART_FURTHER_FUNCTIONS(NAMED)};
static const named_call driver_calls[] = {GMD_CUDA_DRIVER_FUNCTIONS(NAMED)};
enum {
    RUNTIME_CALLS = sizeof runtime_calls / sizeof *runtime_calls,
    DRIVER_CALLS = sizeof driver_calls / sizeof *driver_calls
};

/* Makes a call whose arguments are all 0 or NULL. More are given than any has: on the machines that
 * gmd runs on the callee does not touch those. */
static int call_with_nothing(const named_call *c)
{
    typedef int any_call(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
                         uintptr_t, uintptr_t, uintptr_t, uintptr_t);
    return ((any_call *)c->function)(0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
}

/* A device that the runtime has used, so that a context is current. */
static void begin_with_context(void)
{
    gmd_sim_config config = device_config();
    device_reset(&config);
    assert_success(cudaFree(NULL));
}

/* One that only the driver has been asked for. */
static void begin_without_context(void)
{
    gmd_sim_config config = device_config();
    device_reset(&config);
    assert_int_equal(cuInit(0), CUDA_SUCCESS);
}

static const named_call *nth_call(size_t n)
{
    return n < RUNTIME_CALLS ? &runtime_calls[n] : &driver_calls[n - RUNTIME_CALLS];
}

static bool is_one_of(const char *name, const char *const prefixes[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0) {
            return true;
        }
    }
    return false;
}

#define IS_ONE_OF(name, list) is_one_of(name, list, sizeof(list) / sizeof *(list))

/* --- claims ------------------------------------------------------------------------------ */

/* The first of the program: nothing has been called before. */
TEST(before_cuInit_the_driver_knows_no_context)
{
    CUcontext context = NULL;
    CUdevice device;
    assert_int_equal(cuCtxGetCurrent(&context), CUDA_ERROR_NOT_INITIALIZED);
    assert_int_equal(cuCtxSetCurrent(NULL), CUDA_ERROR_NOT_INITIALIZED);
    assert_int_equal(cuCtxPushCurrent_v2(NULL), CUDA_ERROR_NOT_INITIALIZED);
    assert_int_equal(cuCtxPopCurrent_v2(&context), CUDA_ERROR_NOT_INITIALIZED);
    assert_int_equal(cuCtxGetDevice(&device), CUDA_ERROR_NOT_INITIALIZED);
    assert_int_equal(cuCtxSynchronize(), CUDA_ERROR_NOT_INITIALIZED);
    assert_int_equal(cuDevicePrimaryCtxRetain(&context, 0), CUDA_ERROR_NOT_INITIALIZED);
}

TEST(a_planted_fault_answers_before_a_call_looks_at_its_arguments)
{
    for (size_t i = 0; i < RUNTIME_CALLS + DRIVER_CALLS; i++) {
        const named_call *c = nth_call(i);
        begin_with_context();
        uint64_t before = gmd_sim_call_count(c->name);
        assert_int_equal(gmd_sim_fault(c->name, 1, false, cudaErrorUnknown), 0);
        int result = call_with_nothing(c);
        if (result != cudaErrorUnknown || gmd_sim_call_count(c->name) != before + 1) {
            fail_msg("%s: answered %d, counted %d times", c->name, result,
                     (int)(gmd_sim_call_count(c->name) - before));
        }
    }
}

TEST(null_arguments_crash_no_call_and_leave_nothing_behind)
{
    for (size_t i = 0; i < RUNTIME_CALLS + DRIVER_CALLS; i++) {
        begin_with_context();
        gmd_sim_device_state before = device_state(0);
        call_with_nothing(nth_call(i));
        gmd_sim_device_state after = device_state(0);
        if (memcmp(&before, &after, sizeof before) != 0) {
            fail_msg("%s has changed the device", nth_call(i)->name);
        }
        assert_success(cudaFree(device_malloc(MIB)));
    }
}

TEST(without_a_context_the_driver_works_with_no_memory_stream_or_event)
{
    static const char *const need_one[] = {
        "cuStream",     "cuEvent",         "cuGraph",          "cuLaunch",
        "cuMemcpy",     "cuMemset",        "cuMemHost",        "cuMemFreeHost",
        "cuMemAlloc_",  "cuMemAllocHost",  "cuMemAllocAsync",  "cuMemAllocFromPool",
        "cuMemGetInfo", "cuMemGetAddress", "cuCtxSynchronize", "cuCtxPopCurrent",
        "cuCtxRecord",  "cuCtxEnablePeer", "cuCtxDisablePeer", "cuIpcGetMem",
        "cuIpcOpenMem", "cuIpcCloseMem",
    };
    int asked = 0;
    for (size_t i = 0; i < DRIVER_CALLS; i++) {
        begin_without_context();
        if (IS_ONE_OF(driver_calls[i].name, need_one)) {
            asked++;
            int result = call_with_nothing(&driver_calls[i]);
            if (result != CUDA_ERROR_INVALID_CONTEXT) {
                fail_msg("%s: answered %d", driver_calls[i].name, result);
            }
        }
    }
    assert_true(asked > 50);
    begin_without_context();
    assert_int_equal(cuMemFree_v2(512), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(cuMemFreeAsync(512, NULL), CUDA_ERROR_INVALID_CONTEXT);
}

TEST(no_driver_call_makes_a_context_current_by_itself)
{
    for (size_t i = 0; i < DRIVER_CALLS; i++) {
        begin_without_context();
        call_with_nothing(&driver_calls[i]);
        CUcontext current = (CUcontext)&current;
        assert_int_equal(cuCtxGetCurrent(&current), CUDA_SUCCESS);
        if (current) {
            fail_msg("%s has made a context current", driver_calls[i].name);
        }
    }
}

TEST(what_the_device_has_not_is_said_to_be_unsupported)
{
    static const char *const absent[] = {
        "cuMemExportToShareable",
        "cuMemImportFromShareable",
        "cuMulticast",
        "cuMemAllocManaged",
        "cuMemAdvise",
        "cuMemPrefetch",
        "cuIpcGetEvent",
        "cuIpcOpenEvent",
        "cuMemPoolExport",
        "cuMemPoolImport",
        "cudaMallocManaged",
        "cudaMemAdvise",
        "cudaMemPrefetch",
        "cudaIpcGetEvent",
        "cudaIpcOpenEvent",
        "cudaMemPoolExport",
        "cudaMemPoolImport",
    };
    for (size_t i = 0; i < RUNTIME_CALLS + DRIVER_CALLS; i++) {
        begin_with_context();
        bool is_absent = call_with_nothing(nth_call(i)) == cudaErrorNotSupported;
        if (is_absent != IS_ONE_OF(nth_call(i)->name, absent)) {
            fail_msg("%s is%s supported", nth_call(i)->name, is_absent ? " not" : "");
        }
    }
}
