/* plugin.c - libgmd_allocator.so: the reference allocator behind the ABI of gmd_abi.h. One
 * allocator for the process, made by the first call that needs it. */
#define GMD_ABI_EXPORT __attribute__((visibility("default")))
#include "announcements.h"
#include "gmd_allocator.h"
#include "heap.h"
#include "nvtx_memory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
static bool was_made; /* or could not be: it is tried once */
static gmd_allocator *_Atomic instance;
static char conf[4096]; /* of gmd_configure */

/* A tool that is there is told of blocks where GMD_ANNOUNCE says so, which gmd_torch.py does. */
static void start_announcing(void)
{
    const char *tool = getenv(NVTX_TOOL_VARIABLE), *wish = getenv("GMD_ANNOUNCE");
    char reason[512];
    if (!tool || !*tool || !wish || strcmp(wish, "0") == 0 || announcements_are_on) {
        return;
    }
    if (announcements_start(tool, reason, sizeof reason)) {
        fprintf(stderr, "gmd_allocator: blocks are announced to %s\n", tool);
    } else {
        fprintf(stderr, "gmd_allocator: blocks are not announced: %s\n", reason);
    }
}

static void make_instance(void)
{
    int device_count = 0;
    gmd_error error;
    gmd_allocator *made = NULL;
    if (cudaGetDeviceCount(&device_count) != cudaSuccess || device_count < 1) {
        fprintf(stderr, "gmd_allocator: no CUDA device\n");
        return;
    }
    if (gmd_allocator_create(&made, device_count, conf, &error) != GMD_OK) {
        fprintf(stderr, "gmd_allocator: %s\n", error.text);
    }
    start_announcing();
    instance = made;
}

static gmd_allocator *get(void)
{
    gmd_allocator *made = atomic_load_explicit(&instance, memory_order_acquire);
    if (__builtin_expect(!made, 0)) {
        pthread_mutex_lock(&making);
        if (!was_made) {
            was_made = true;
            make_instance();
        }
        made = instance;
        pthread_mutex_unlock(&making);
    }
    return made;
}

static int take_settings(const char *text, char *message, size_t message_size)
{
    gmd_error error = {""};
    gmd_allocator *probe = NULL;
    text = text ? text : "";
    if (strlen(text) >= sizeof conf) {
        snprintf(message, message_size, "the settings are too long");
        return -1;
    }
    if (gmd_allocator_create(&probe, 1, text, &error) != GMD_OK) {
        snprintf(message, message_size, "%s", error.text);
        return -1;
    }
    gmd_allocator_destroy(probe);
    snprintf(conf, sizeof conf, "%s", text);
    return 0;
}

/* Settings in PYTORCH_CUDA_ALLOC_CONF syntax, before the first allocation. 0: accepted. */
int gmd_configure(const char *text, char *message, size_t message_size)
{
    if (instance) {
        snprintf(message, message_size, "the settings come too late: the allocator is in use");
        return -1;
    }
    return take_settings(text, message, message_size);
}

/* Settings as they are parsed cost more than all else that a restart does. */
int gmd_restart(const char *text, char *message, size_t message_size)
{
    bool is_new = strcmp(text ? text : "", conf) != 0;
    if (is_new && take_settings(text, message, message_size) != 0) {
        return -1;
    }
    heap_keep_spares();
    gmd_allocator_destroy(instance);
    instance = NULL;
    was_made = false;
    return 0;
}

void gmd_init(int device_count)
{
    (void)device_count; /* asked for again where it is needed */
    get();
}

unsigned gmd_promises(void)
{
    return GMD_PROMISE_MISUSE | GMD_PROMISE_DETERMINISM | GMD_PROMISE_PYTORCH |
           GMD_PROMISE_COALESCING | GMD_PROMISE_ALIGN_512;
}

/* Noted by refused requests only, which have the time. */
static _Thread_local const char *last_error;

static void note_refusal(gmd_allocator *a, int device)
{
    last_error = !a ? "the allocator could not be made; standard error says why"
                 : gmd_allocator_is_yielded(a, device)
                     ? "the device's memory is lent (gmd_yield_memory); gmd_restore_memory first"
                     : NULL;
}

/* Returns each error once: a request that succeeds does not touch it. */
const char *gmd_last_error(void)
{
    const char *text = last_error;
    last_error = NULL;
    return text;
}

void *gmd_malloc(size_t size, int device, cudaStream_t stream)
{
    gmd_allocator *a = get();
    void *memory = a ? gmd_allocator_malloc(a, size, device, stream) : NULL;
    if (!memory) {
        note_refusal(a, device);
    } else if (__builtin_expect(announcements_are_on, 0)) {
        announce_block((uintptr_t)memory, size, device, stream);
    }
    return memory;
}

void gmd_free(void *ptr, size_t size, int device, cudaStream_t stream)
{
    (void)size;
    gmd_allocator *a = get();
    if (__builtin_expect(announcements_are_on, 0)) {
        announce_block_end((uintptr_t)ptr, device);
    }
    if (a && !gmd_allocator_free(a, ptr, device, stream)) {
        fprintf(stderr, "gmd_allocator: free of %p, which is not a live block, was refused\n", ptr);
    }
}

void gmd_record_stream(void *ptr, cudaStream_t stream)
{
    if (get() && !gmd_allocator_record_stream(instance, ptr, stream)) {
        fprintf(stderr, "gmd_allocator: record_stream of %p, which is not a live block\n", ptr);
    }
}

void gmd_forget_stream(int device, cudaStream_t stream)
{
    if (get()) {
        gmd_allocator_forget_stream(instance, device, stream);
    }
}

uint64_t gmd_block_size(int device, const void *ptr)
{
    return get() ? gmd_allocator_block_size(instance, device, ptr) : 0;
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
    return get() ? gmd_allocator_device_request(instance, size) : 0;
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

uint64_t gmd_place_of(int device, uint64_t address)
{
    return get() ? gmd_allocator_place_of(instance, device, address) : 0;
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

/* --- private pools ----------------------------------------------------------------------- */

int gmd_begin_pool(int device, const uint64_t id[2], gmd_stream_filter *accepts, void *context)
{
    if (!get() || !gmd_allocator_begin_pool(instance, device, id, accepts, context)) {
        return -1;
    }
    announce_captures(1);
    return 0;
}

int gmd_end_pool(int device, const uint64_t id[2], void **context)
{
    if (!get() || !gmd_allocator_end_pool(instance, device, id, context)) {
        return -1;
    }
    announce_captures(-1);
    return 0;
}

int gmd_release_pool(int device, const uint64_t id[2])
{
    return get() && gmd_allocator_release_pool(instance, device, id) ? 0 : -1;
}

int gmd_empty_pool(int device, const uint64_t id[2])
{
    return get() && gmd_allocator_empty_pool(instance, device, id) ? 0 : -1;
}

int gmd_set_pool_memory(int device, const uint64_t id[2], const gmd_pool_memory *memory)
{
    return get() && gmd_allocator_set_pool_memory(instance, device, id, memory) ? 0 : -1;
}

int gmd_set_pool_option(int device, const uint64_t id[2], const char *name, int is_on)
{
    return get() && gmd_allocator_set_pool_option(instance, device, id, name, is_on) ? 0 : -1;
}

/* --- checkpoints, history, lending
 * -------------------------------------------------------------------- */

static int report(gmd_status status, const gmd_error *error, char *message, size_t message_size)
{
    if (status != GMD_OK && message && message_size) {
        snprintf(message, message_size, "%s", error->text);
    }
    return status == GMD_OK ? 0 : -1;
}

static int report_no_device(char *message, size_t message_size)
{
    snprintf(message, message_size, "there is no CUDA device");
    return -1;
}

int gmd_change_settings(const char *text, char *message, size_t message_size)
{
    gmd_error error = {""};
    if (!get()) {
        return report_no_device(message, message_size);
    }
    return report(gmd_allocator_change_settings(instance, text, &error), &error, message,
                  message_size);
}

int gmd_checkpoint_pool(int device, const uint64_t id[2], gmd_checkpoint **made, char *message,
                        size_t message_size)
{
    gmd_error error = {""};
    if (!get()) {
        return report_no_device(message, message_size);
    }
    return report(gmd_allocator_checkpoint_pool(instance, device, id, made, &error), &error,
                  message, message_size);
}

int gmd_restore_pool(int device, const gmd_checkpoint *checkpoint, gmd_restored_fn *tell,
                     void *context, char *message, size_t message_size)
{
    gmd_error error = {""};
    if (!get()) {
        return report_no_device(message, message_size);
    }
    return report(gmd_allocator_restore_pool(instance, device, checkpoint, tell, context, &error),
                  &error, message, message_size);
}

void gmd_drop_checkpoint(gmd_checkpoint *checkpoint)
{
    gmd_allocator_drop_checkpoint(checkpoint);
}

int gmd_record_history(uint64_t max_entries, int stacks, char *message, size_t message_size)
{
    gmd_error error = {""};
    if (!get()) {
        return report_no_device(message, message_size);
    }
    gmd_status status =
        gmd_allocator_record_history(instance, max_entries, (gmd_stacks)stacks, &error);
    return report(status, &error, message, message_size);
}

int gmd_change_stacks(int stacks, char *message, size_t message_size)
{
    gmd_error error = {""};
    if (!get()) {
        return report_no_device(message, message_size);
    }
    return report(gmd_allocator_change_stacks(instance, (gmd_stacks)stacks, &error), &error,
                  message, message_size);
}

int gmd_skip_events(const char *names, char *message, size_t message_size)
{
    gmd_error error = {""};
    if (!get()) {
        return report_no_device(message, message_size);
    }
    return report(gmd_allocator_skip_events(instance, names, &error), &error, message,
                  message_size);
}

void gmd_set_metadata(const char *text)
{
    if (get()) {
        gmd_allocator_set_metadata(instance, text);
    }
}

void gmd_set_stack_source(gmd_stack_source *source, void *context)
{
    if (get()) {
        gmd_allocator_set_stack_source(instance, source, context);
    }
}

uint32_t gmd_keep_stack(void)
{
    return get() ? gmd_allocator_keep_stack(instance) : 0;
}

size_t gmd_stack_text(uint32_t stack, char *text, size_t size)
{
    return get() ? gmd_allocator_stack_text(instance, stack, text, size) : 0;
}

int gmd_dump_snapshot(const char *path, char *message, size_t message_size)
{
    gmd_error error = {""};
    if (!get()) {
        return report_no_device(message, message_size);
    }
    gmd_status status = gmd_allocator_dump_snapshot(instance, path, &error);
    return report(status, &error, message, message_size);
}

int gmd_yield_memory(int device, char *message, size_t message_size)
{
    gmd_error error = {"there is no allocator: no CUDA device"};
    gmd_status status = get() ? gmd_allocator_yield_memory(instance, device, &error) : GMD_FAILED;
    return report(status, &error, message, message_size);
}

int gmd_restore_memory(int device, char *message, size_t message_size)
{
    gmd_error error = {"there is no allocator: no CUDA device"};
    gmd_status status = get() ? gmd_allocator_restore_memory(instance, device, &error) : GMD_FAILED;
    return report(status, &error, message, message_size);
}

/* --- quirks ------------------------------------------------------------------------------ */

static gmd_quirk quirk_named(const char *name)
{
    gmd_quirk which = 0;
    while (which < GMD_QUIRK_COUNT && strcmp(gmd_quirk_name(which), name) != 0) {
        which++;
    }
    return which;
}

int gmd_set_quirk(const char *name, int is_on)
{
    gmd_quirk which = quirk_named(name);
    if (which == GMD_QUIRK_COUNT || !get()) {
        return -1;
    }
    gmd_allocator_set_quirk(instance, which, is_on);
    return 0;
}

int64_t gmd_quirk_count(const char *name)
{
    gmd_quirk which = quirk_named(name);
    return which == GMD_QUIRK_COUNT || !get() ? -1
                                              : (int64_t)gmd_allocator_quirk_count(instance, which);
}
