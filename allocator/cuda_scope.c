#include "gmd_cuda_scope.h"

bool cuda_succeeded(cudaError_t result)
{
    if (result != cudaSuccess) {
        (void)cudaGetLastError();
    }
    return result == cudaSuccess;
}

bool cuda_scope_enter(cuda_scope *scope, int device)
{
    *scope =
        (cuda_scope){.device = device, .previous = device, .mode = cudaStreamCaptureModeRelaxed};
    if (!cuda_succeeded(cudaGetDevice(&scope->previous)) ||
        (scope->previous != device && !cuda_succeeded(cudaSetDevice(device)))) {
        return false;
    }
    scope->has_mode = cuda_succeeded(cudaThreadExchangeStreamCaptureMode(&scope->mode));
    return true;
}

void cuda_scope_leave(const cuda_scope *scope)
{
    enum cudaStreamCaptureMode mode = scope->mode;
    if (scope->has_mode) {
        cuda_succeeded(cudaThreadExchangeStreamCaptureMode(&mode));
    }
    if (scope->previous != scope->device) {
        cuda_succeeded(cudaSetDevice(scope->previous));
    }
}

bool cuda_is_capturing(cudaStream_t stream)
{
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    return !cuda_succeeded(cudaStreamIsCapturing(stream, &status)) ||
           status != cudaStreamCaptureStatusNone;
}

void *cuda_driver_function(const char *name, unsigned version)
{
    void *function = NULL;
    enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    bool is_asked =
        cuda_succeeded(cudaGetDriverEntryPointByVersion(name, &function, version, 0, &found));
    return is_asked && found == cudaDriverEntryPointSuccess ? function : NULL;
}
