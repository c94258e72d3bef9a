/* plugin.c - libgmd_allocator.so: the reference allocator behind the ABI of gmd_abi.h. One
 * allocator for the process, made by the first call that needs it. */
#include "gmd_allocator.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define GMD_EXPORT __attribute__((visibility("default")))

/* Declared here because the ABI is found by name: there is no header for callers to include. */
GMD_EXPORT int gmd_configure(const char *conf, char *message, size_t message_size);
GMD_EXPORT void gmd_init(int device_count);
GMD_EXPORT void *gmd_malloc(size_t size, int device, cudaStream_t stream);
GMD_EXPORT void gmd_free(void *ptr, size_t size, int device, cudaStream_t stream);
GMD_EXPORT void gmd_empty_cache(void);
GMD_EXPORT void gmd_set_memory_fraction(double fraction, int device);
GMD_EXPORT uint64_t gmd_device_request(size_t size);
GMD_EXPORT void gmd_reset_peak_stats(int device);
GMD_EXPORT int gmd_order_segments(int device, const uint64_t *given, size_t count);
GMD_EXPORT int gmd_get_stats(int device, gmd_stats *out);
GMD_EXPORT int gmd_memory_stats(int device, gmd_stat_fn *emit, void *context);
GMD_EXPORT int gmd_walk(int device, gmd_walk_fn *visit, void *context);

static pthread_once_t once = PTHREAD_ONCE_INIT;
static gmd_allocator *instance;

static void make_instance(void)
{
    int device_count = 0;
    gmd_error error;
    if (cudaGetDeviceCount(&device_count) != cudaSuccess || device_count < 1) {
        fprintf(stderr, "gmd_allocator: no CUDA device\n");
        return;
    }
    if (gmd_allocator_create(&instance, device_count, NULL, &error) != GMD_OK) {
        fprintf(stderr, "gmd_allocator: %s\n", error.text);
    }
}

static gmd_allocator *get(void)
{
    pthread_once(&once, make_instance);
    return instance;
}

/* Settings in PYTORCH_CUDA_ALLOC_CONF syntax, before the first allocation. 0: accepted. */
int gmd_configure(const char *conf, char *message, size_t message_size)
{
    gmd_error error = {""};
    gmd_allocator *probe = NULL;
    if (gmd_allocator_create(&probe, 1, conf, &error) != GMD_OK) {
        snprintf(message, message_size, "%s", error.text);
        return -1;
    }
    gmd_allocator_destroy(probe);
    return 0;
}

void gmd_init(int device_count)
{
    (void)device_count; /* asked for again where it is needed */
    get();
}

void *gmd_malloc(size_t size, int device, cudaStream_t stream)
{
    gmd_allocator *a = get();
    return a ? gmd_allocator_malloc(a, size, device, stream) : NULL;
}

void gmd_free(void *ptr, size_t size, int device, cudaStream_t stream)
{
    (void)size;
    (void)device;
    (void)stream;
    if (get() && !gmd_allocator_free(instance, ptr)) {
        fprintf(stderr, "gmd_allocator: free of %p, which is not a live block, was refused\n", ptr);
    }
}

void gmd_empty_cache(void)
{
    if (get()) {
        gmd_allocator_empty_cache(instance);
    }
}

void gmd_set_memory_fraction(double fraction, int device)
{
    if (get() && !gmd_allocator_set_memory_fraction(instance, fraction, device)) {
        fprintf(stderr, "gmd_allocator: memory fraction %g of device %d was refused\n", fraction,
                device);
    }
}

uint64_t gmd_device_request(size_t size)
{
    return gmd_allocator_device_request(size);
}

void gmd_reset_peak_stats(int device)
{
    if (get()) {
        gmd_allocator_reset_peak_stats(instance, device);
    }
}

int gmd_order_segments(int device, const uint64_t *given, size_t count)
{
    return get() && gmd_allocator_order_segments(instance, device, given, count) ? 0 : -1;
}

int gmd_get_stats(int device, gmd_stats *out)
{
    return get() && gmd_allocator_get_stats(instance, device, out) ? 0 : -1;
}

int gmd_memory_stats(int device, gmd_stat_fn *emit, void *context)
{
    return get() && gmd_allocator_memory_stats(instance, device, emit, context) ? 0 : -1;
}

int gmd_walk(int device, gmd_walk_fn *visit, void *context)
{
    return get() && gmd_allocator_walk(instance, device, visit, context) ? 0 : -1;
}
