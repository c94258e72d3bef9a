#include "subject_open.h"

#include "gmd_subject.h"

#include <string.h>

/* --- the allocator that does nothing ----------------------------------------------------- */

static char nothing[16];

/* Not inlined, and called through pointers as those of a library are. */
static void *floor_malloc(size_t size, int device, cudaStream_t stream)
{
    (void)size;
    (void)device;
    (void)stream;
    return nothing;
}

static void floor_free(void *ptr, size_t size, int device, cudaStream_t stream)
{
    (void)ptr;
    (void)size;
    (void)device;
    (void)stream;
}

static void floor_record_stream(void *ptr, cudaStream_t stream)
{
    (void)ptr;
    (void)stream;
}

static void floor_empty_cache(void) {}

static void floor_set_memory_fraction(double fraction, int device)
{
    (void)fraction;
    (void)device;
}

/* --- an allocator on a device ------------------------------------------------------------ */

static gmd_status open_device(const bench_setup *setup, gmd_runtime *rt, bench_calls *calls,
                              gmd_error *error)
{
    gmd_status status = gmd_runtime_open(rt, setup->device, setup->lib_directory, error);
    if (status != GMD_OK) {
        return status;
    }
    if (rt->sim) {
        gmd_sim_config config;
        rt->sim->gmd_sim_default_config(&config);
        config.device_count = setup->device_count;
        config.capacity_bytes = setup->capacity_bytes;
        if (rt->sim->gmd_sim_reset(&config) != 0) {
            return gmd_fail(error, GMD_BAD_INPUT, "the simulated device refuses its configuration");
        }
    }
    rt->cudaDeviceSynchronize(); /* makes the context, outside of what is timed */
    size_t free_bytes = 0, total = 0;
    cudaError_t result = rt->cudaMemGetInfo(&free_bytes, &total);
    for (uint32_t i = 0; i < BENCH_THREAD_MAX && result == cudaSuccess; i++) {
        result = rt->cudaStreamCreateWithFlags(&calls->streams[i], cudaStreamNonBlocking);
    }
    calls->total_bytes = total;
    return result == cudaSuccess ? GMD_OK
                                 : gmd_fail(error, GMD_FAILED, "the device does not work: %s",
                                            gmd_runtime_error_text(rt, result));
}

static gmd_status configure(const bench_setup *setup, const gmd_subject *subject, gmd_error *error)
{
    char message[512] = "";
    if (!setup->has_conf || (!subject->configure && setup->conf_is_optional)) {
        return GMD_OK;
    }
    if (!subject->configure) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "settings '%.300s': the allocator %.300s exports no gmd_configure",
                        setup->conf, setup->spec);
    }
    if (subject->configure(setup->conf, message, sizeof message) != 0) {
        message[sizeof message - 1] = '\0';
        return gmd_fail(error, GMD_BAD_INPUT, "settings '%.300s' of %.300s: %s", setup->conf,
                        setup->spec, message);
    }
    return GMD_OK;
}

gmd_status bench_subject_open(const bench_setup *setup, bench_calls *calls, gmd_error *error)
{
    static gmd_runtime rt;
    *calls = (bench_calls){0};
    if (setup->is_floor) {
        *calls = (bench_calls){.malloc = floor_malloc,
                               .free = floor_free,
                               .record_stream = floor_record_stream,
                               .empty_cache = floor_empty_cache,
                               .set_memory_fraction = floor_set_memory_fraction};
        return GMD_OK;
    }
    gmd_subject subject;
    const gmd_subject_source source = {.spec = setup->spec,
                                       .lib_directory = setup->lib_directory,
                                       .torch_adapter =
                                           setup->torch_adapter[0] ? setup->torch_adapter : NULL,
                                       .conf = setup->has_conf ? setup->conf : NULL};
    gmd_status status = open_device(setup, &rt, calls, error);
    if (status == GMD_OK) {
        status = gmd_subject_open(&subject, &source, error);
    }
    if (status == GMD_OK) {
        status = configure(setup, &subject, error);
    }
    if (status != GMD_OK) {
        return status;
    }
    if (subject.init) {
        subject.init((int)setup->device_count);
    }
    calls->malloc = subject.malloc;
    calls->free = subject.free;
    calls->record_stream = subject.record_stream;
    calls->empty_cache = subject.empty_cache;
    calls->set_memory_fraction = subject.set_memory_fraction;
    calls->last_error = subject.last_error;
    calls->record_history = subject.record_history;
    return GMD_OK;
}
