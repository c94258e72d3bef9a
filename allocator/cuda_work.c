#include "cuda_work.h"

#include "gmd_cuda_scope.h"

#include <pthread.h>
#include <string.h>

static struct {
    __typeof__(&cuCtxGetCurrent) cuCtxGetCurrent;
    __typeof__(&cuCtxRecordEvent) cuCtxRecordEvent;
} driver;

static void find_driver(void)
{
    void *current = cuda_driver_function("cuCtxGetCurrent", 12000);
    void *record = cuda_driver_function("cuCtxRecordEvent", 12050);
    memcpy(&driver.cuCtxGetCurrent, &current, sizeof current);
    memcpy(&driver.cuCtxRecordEvent, &record, sizeof record);
}

/* An event of the whole context is complete when all is that was queued on any of its streams. */
static cuda_work ask(cudaEvent_t event)
{
    CUcontext context = NULL;
    if (driver.cuCtxGetCurrent(&context) != CUDA_SUCCESS) {
        return CUDA_WORK_UNKNOWN;
    }
    CUresult recorded = driver.cuCtxRecordEvent(context, event);
    if (recorded == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) {
        return CUDA_WORK_CAPTURED;
    }
    cudaError_t answer = recorded == CUDA_SUCCESS ? cudaEventQuery(event) : cudaErrorUnknown;
    if (cuda_succeeded(answer)) {
        return CUDA_WORK_NONE;
    }
    return answer == cudaErrorNotReady ? CUDA_WORK_PENDING : CUDA_WORK_UNKNOWN;
}

cuda_work cuda_work_now(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_driver);
    cudaEvent_t event = NULL;
    if (!driver.cuCtxGetCurrent || !driver.cuCtxRecordEvent ||
        !cuda_succeeded(cudaEventCreateWithFlags(&event, cudaEventDisableTiming))) {
        return CUDA_WORK_UNKNOWN;
    }
    cuda_work now = ask(event);
    cuda_succeeded(cudaEventDestroy(event));
    return now;
}
