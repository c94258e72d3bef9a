/* plugin.c - libgmd_sanitizer.so: one guard for the process, made by the first request. */
#include "checks.h"
#include "guard.h"
#include "reads.h"
#include "unmapping.h"

#include "gmd_sanitizer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
static sanitizer_options options;
static bool is_started;
static gmd_stack_source *stack_source;
static void *stack_context;
static int pools; /* that requests go to */
static guard *_Atomic instance;

static _Thread_local gmd_error last_error;

static guard_allocator reference = {.malloc = gmd_malloc,
                                    .free = gmd_free,
                                    .record_stream = gmd_record_stream,
                                    .empty_cache = gmd_empty_cache,
                                    .keep_stack = gmd_keep_stack,
                                    .stack_text = gmd_stack_text};

int gmd_sanitizer_start(const char *text, char *message, size_t message_size)
{
    gmd_error error = {""};
    pthread_mutex_lock(&making);
    gmd_status status = sanitizer_options_parse(&options, text, &error);
    is_started = is_started || status == GMD_OK;
    pthread_mutex_unlock(&making);
    if (status != GMD_OK) {
        snprintf(message, message_size, "%s", error.text);
    }
    return status == GMD_OK ? 0 : -1;
}

void gmd_sanitizer_set_stack_source(gmd_stack_source *source, void *context)
{
    pthread_mutex_lock(&making);
    stack_source = source;
    stack_context = context;
    pthread_mutex_unlock(&making);
}

void gmd_sanitizer_set_stacks(uint32_t (*keep)(void),
                              size_t (*text)(uint32_t stack, char *text, size_t size))
{
    pthread_mutex_lock(&making);
    reference.keep_stack = keep;
    reference.stack_text = text;
    pthread_mutex_unlock(&making);
}

static guard *make_guard(gmd_error *error)
{
    int device_count = 0;
    sweeps *s = NULL;
    guard *made = NULL;
    if (!is_started) {
        gmd_fail(error, GMD_FAILED, "sanitizer: gmd_sanitizer_start comes first");
    } else if (cudaGetDeviceCount(&device_count) != cudaSuccess || device_count < 1) {
        (void)cudaGetLastError();
        gmd_fail(error, GMD_FAILED, "sanitizer: no CUDA device");
    } else if (sweeps_open(&s, device_count, error) == GMD_OK &&
               guard_create(&made, &options, &reference, s, device_count, error) != GMD_OK) {
        sweeps_close(s);
    }
    if (made) {
        guard_pools_changed(made, pools);
    }
    if (made && stack_source) {
        gmd_set_stack_source(stack_source, stack_context);
    }
    return made;
}

/* NULL: it cannot be made, and `error` says why. */
static guard *get(gmd_error *error)
{
    guard *made = atomic_load_explicit(&instance, memory_order_acquire);
    if (!made) {
        pthread_mutex_lock(&making);
        made = atomic_load(&instance);
        if (!made) {
            made = make_guard(error);
            atomic_store(&instance, made);
        }
        pthread_mutex_unlock(&making);
    }
    return made;
}

void *gmd_sanitizer_malloc(size_t size, int device, cudaStream_t stream)
{
    guard *g = get(&last_error);
    return g ? guard_malloc(g, size, device, stream, &last_error) : NULL;
}

void gmd_sanitizer_free(void *ptr, size_t size, int device, cudaStream_t stream)
{
    guard *g = instance;
    (void)size;
    (void)device;
    (void)stream;
    if (g && ptr) {
        guard_free(g, ptr);
    }
}

void gmd_sanitizer_record_stream(void *ptr, cudaStream_t stream)
{
    guard *g = instance;
    if (g) {
        guard_record_stream(g, ptr, stream);
    }
}

void gmd_sanitizer_empty_cache(void)
{
    guard *g = instance;
    if (g) {
        guard_release_all(g);
    } else {
        gmd_empty_cache();
    }
}

uint64_t gmd_sanitizer_block_size(int device, const void *ptr)
{
    guard *g = instance;
    (void)device;
    return g ? guard_block_size(g, ptr) : 0;
}

void gmd_sanitizer_pools(int change)
{
    pthread_mutex_lock(&making);
    pools += change;
    guard *g = instance;
    if (g) {
        guard_pools_changed(g, change);
    }
    pthread_mutex_unlock(&making);
}

uint64_t gmd_sanitizer_mapped_bytes(int device, uint64_t *peak, int resets_peak)
{
    guard *g = instance;
    *peak = 0;
    return g && device >= 0 && device < g->device_count
               ? guard_mapped_bytes(g, device, peak, resets_peak != 0)
               : 0;
}

int gmd_sanitizer_waits_for_launches(void)
{
    return is_started && options.waits_for_launches;
}

int gmd_sanitizer_wants_reads(void)
{
    return is_started && options.watches_reads;
}

void gmd_sanitizer_watch_use(const void *ptr, size_t size, cudaStream_t stream, int is_read,
                             int seeks_fresh)
{
    guard *g = instance;
    if (g && is_read) {
        guard_watch_read(g, ptr, size, stream, seeks_fresh != 0);
    }
    if (g) {
        guard_watch_use(g, ptr, stream);
    }
}

const char *gmd_sanitizer_error(void)
{
    static _Thread_local gmd_error told;
    if (!*last_error.text) {
        return NULL;
    }
    told = last_error;
    *last_error.text = '\0';
    return told.text;
}

uint64_t gmd_sanitizer_check(void)
{
    guard *g = instance;
    return g ? guard_check(g) : 0;
}

uint64_t gmd_sanitizer_finish(void)
{
    guard *g = instance;
    return g ? guard_finish(g) : 0;
}
