/* In place of libcuda: two devices of which the first is current, kernels with parameters. */
#include "fakes.h"

#include <stddef.h>

int cuCtxGetDevice(int *device);
int cuStreamGetFlags(void *stream, unsigned *flags);
int cuFuncGetParamInfo(const fake_kernel *f, size_t index, size_t *offset, size_t *bytes);
int cuKernelGetParamInfo(const fake_kernel *f, size_t index, size_t *offset, size_t *bytes);

int cuCtxGetDevice(int *device)
{
    *device = 0;
    return 0;
}

int cuStreamGetFlags(void *stream, unsigned *flags)
{
    *flags = (uint64_t)(uintptr_t)stream == FAKE_BLOCKING_STREAM ? 0 : 1;
    return 0;
}

static int info(const fake_kernel *f, size_t index, size_t *offset, size_t *bytes)
{
    if (index >= f->count) {
        return 1;
    }
    *offset = 0;
    for (size_t i = 0; i < index; i++) {
        *offset += ((size_t)f->sizes[i] + 7) / 8 * 8;
    }
    *bytes = f->sizes[index];
    return 0;
}

int cuFuncGetParamInfo(const fake_kernel *f, size_t index, size_t *offset, size_t *bytes)
{
    return f->is_library_kernel ? 400 : info(f, index, offset, bytes);
}

int cuKernelGetParamInfo(const fake_kernel *f, size_t index, size_t *offset, size_t *bytes)
{
    return f->is_library_kernel ? info(f, index, offset, bytes) : 400;
}
