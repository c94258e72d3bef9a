/* conformance_devices - two devices: which is current where no context is, on the simulated or a
 * real machine: conformance_devices.expected. Exit status as conformance.c's; 77 also where the
 * machine has only one device. */
#include "conformance_api.h"
#include "conformance_device.h"

#include <dlfcn.h>
#include <string.h>

conformance_api api;
gmd_runtime rt;

int show(const char *what, int result)
{
    printf("%-76s %s\n", what, rt.cudaGetErrorName((cudaError_t)result));
    return result;
}

void tell(const char *what, int is_so)
{
    printf("%-76s %s\n", what, is_so ? "yes" : "no");
}

static void show_current(const CUcontext *contexts)
{
    int device = 99;
    CUcontext seen = NULL;
    SHOW(cudaGetDevice(&device));
    api.cuCtxGetCurrent(&seen);
    printf("    device %d, context %s\n", device,
           !seen                 ? "none"
           : seen == contexts[0] ? "of device 0"
           : seen == contexts[1] ? "of device 1"
                                 : "another");
}

static void show_allocation(void)
{
    struct cudaPointerAttributes attributes;
    void *pointer = NULL;
    memset(&attributes, 0, sizeof attributes);
    SHOW(cudaMalloc(&pointer, MIB));
    api.cudaPointerGetAttributes(&attributes, pointer);
    printf("    memory of device %d\n", attributes.device);
    api.cudaFree(pointer);
}

/* Which of the calls before decides. */
static void who_decides(const CUcontext *contexts)
{
    SHOW(cudaSetDevice(0));
    SHOW(cuCtxSetCurrent(contexts[1]));
    show_allocation();
    SHOW(cuCtxSetCurrent(NULL));
    show_current(contexts);
    SHOW(cudaDeviceSynchronize());
    show_current(contexts);
    SHOW(cudaSetDevice(1));
    SHOW(cuCtxSetCurrent(NULL));
    SHOW(cudaStreamSynchronize(NULL));
    show_current(contexts);
    SHOW(cudaSetDevice(1));
    SHOW(cudaDeviceReset());
    int device = 99;
    SHOW(cudaGetDevice(&device));
    tell("device 1", device == 1);
    show_allocation();
    SHOW(cudaGetDevice(&device));
    tell("device 1", device == 1);
}

static void contexts_of_two(void)
{
    CUcontext contexts[2] = {NULL, NULL}, popped = NULL;
    for (int device = 0; device < 2; device++) {
        api.cudaSetDevice(device);
        api.cudaFree(NULL);
        api.cuCtxGetCurrent(&contexts[device]);
    }
    SHOW(cudaSetDevice(1));
    show_current(contexts);
    SHOW(cuCtxSetCurrent(NULL));
    show_current(contexts);
    show_allocation();
    show_current(contexts);
    SHOW(cuCtxSetCurrent(contexts[1]));
    show_current(contexts);
    show_allocation();
    SHOW(cuCtxSetCurrent(contexts[0]));
    show_current(contexts);
    SHOW(cuCtxPushCurrent_v2(contexts[1]));
    show_current(contexts);
    show_allocation();
    SHOW(cuCtxPopCurrent_v2(&popped));
    tell("the one that was pushed", popped == contexts[1]);
    show_current(contexts);
    SHOW(cuCtxPopCurrent_v2(&popped));
    show_current(contexts);
    show_allocation();
    show_current(contexts);
    SHOW(cudaSetDevice(1));
    SHOW(cuCtxSetCurrent(NULL));
    SHOW(cuCtxPushCurrent_v2(contexts[0]));
    show_current(contexts);
    SHOW(cuCtxPopCurrent_v2(&popped));
    show_current(contexts);
    show_allocation();
    show_current(contexts);
    who_decides(contexts);
}

static bool load_api(void)
{
    void *cudart = dlopen(rt.path, RTLD_NOW | RTLD_GLOBAL);
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
#define LOAD(name)        (*(void **)&api.name = dlsym(cudart, #name))
#define LOAD_DRIVER(name) (*(void **)&api.name = dlsym(driver, #name))
    return cudart && driver && LOAD(cudaSetDevice) && LOAD(cudaGetDevice) && LOAD(cudaMalloc) &&
           LOAD(cudaDeviceSynchronize) && LOAD(cudaStreamSynchronize) && LOAD(cudaDeviceReset) &&
           LOAD(cudaFree) && LOAD(cudaPointerGetAttributes) && LOAD_DRIVER(cuCtxGetCurrent) &&
           LOAD_DRIVER(cuCtxSetCurrent) && LOAD_DRIVER(cuCtxPushCurrent_v2) &&
           LOAD_DRIVER(cuCtxPopCurrent_v2);
}

int main(int argc, char **argv)
{
    int status = open_device(&rt, argc, argv);
    if (status) {
        return status;
    }
    if (rt.sim) {
        gmd_sim_config config;
        rt.sim->gmd_sim_default_config(&config);
        config.device_count = 2;
        rt.sim->gmd_sim_reset(&config);
    }
    int count = 0;
    rt.cudaGetDeviceCount(&count);
    if (count < 2) {
        fprintf(stderr, "this needs two devices\n");
        return 77;
    }
    if (!load_api()) {
        return 3;
    }
    contexts_of_two();
    return 0;
}
