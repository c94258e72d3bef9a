#include "calls.h"

#include <stdio.h>

static _Thread_local char error_text[200];

void adapter_begin(void)
{
    error_text[0] = '\0';
}

bool adapter_served(cudaError_t result)
{
    if (result != cudaSuccess) {
        (void)cudaGetLastError();
    }
    return result == cudaSuccess;
}

bool adapter_succeeded(const char *function, cudaError_t result)
{
    bool served = adapter_served(result); /* reported here: CUDA's last error is cleared */
    if (!served && !error_text[0]) {
        snprintf(error_text, sizeof error_text, "%s: %s (%s)", function, cudaGetErrorName(result),
                 cudaGetErrorString(result));
    }
    return served;
}

void adapter_say(const char *text)
{
    if (!error_text[0]) {
        snprintf(error_text, sizeof error_text, "%s", text);
    }
}

const char *adapter_error(void)
{
    return error_text[0] ? error_text : NULL;
}

bool device_enter(int device, int *previous)
{
    return adapter_succeeded("cudaGetDevice", cudaGetDevice(previous)) &&
           (*previous == device || adapter_succeeded("cudaSetDevice", cudaSetDevice(device)));
}

/* Twice, for the caller's sake: nobody else puts the thread's device right. */
void device_leave(int device, int previous)
{
    if (device != previous && !adapter_succeeded("cudaSetDevice", cudaSetDevice(previous))) {
        adapter_succeeded("cudaSetDevice", cudaSetDevice(previous));
    }
}
