#define _GNU_SOURCE
#include "announcements.h"

#include "nvtx_memory.h"

#include "gmd_cuda_scope.h"
#include "gmd_grow.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct announced_segment {
    uint64_t address, size;
    void *heap;
    bool is_whole; /* one region: all of it may be used */
} announced_segment;

typedef struct ended_block {
    uint64_t address;
    int device;
} ended_block;

bool announcements_are_on;

static struct {
    pthread_mutex_t lock;
    nvtx_heap_register *heap_register;
    nvtx_heap_unregister *heap_unregister;
    nvtx_heap_reset *heap_reset;
    nvtx_regions_register *regions_register;
    nvtx_regions_unregister *regions_unregister;
    void *library, *domain;
    announced_segment *segments;
    size_t segment_count, segment_capacity;
    ended_block *ended; /* while captures were under way */
    size_t ended_count, ended_capacity;
    int captures;
} to = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* --- starting ----------------------------------------------------------------------------- */

static nvtx_function *domain_create_slot;

/* The one function of NVTX itself that is needed; a tool may ask for tables that are not there. */
static int function_table(int module, nvtx_function ****table, unsigned *size)
{
    static nvtx_function **slots[NVTX_CORE2_SLOTS];
    static nvtx_function *unused[NVTX_CORE2_SLOTS];
    if (module != NVTX_CORE2_MODULE) {
        return 0;
    }
    for (size_t i = 0; i < NVTX_CORE2_SLOTS; i++) {
        slots[i] = &unused[i];
    }
    slots[NVTX_CORE2_DOMAIN_CREATE] = &domain_create_slot;
    *table = slots;
    *size = NVTX_CORE2_SLOTS;
    return 1;
}

static const void *export_table(uint32_t number)
{
    static const nvtx_callbacks callbacks = {sizeof callbacks, function_table};
    return number == NVTX_EXPORT_CALLBACKS ? &callbacks : NULL;
}

/* NULL, which is a domain as well, where the tool makes none. */
static void *make_domain(void)
{
    nvtx_start_core *start;
    nvtx_domain_create *create;
    *(void **)&start = dlsym(to.library, NVTX_START_CORE);
    domain_create_slot = NULL;
    if (!start || !start(export_table) || !domain_create_slot) {
        return NULL;
    }
    memcpy(&create, &domain_create_slot, sizeof create);
    return create("gmd");
}

static bool take_slot(const intptr_t *slots, size_t which, void *function)
{
    memcpy(function, &slots[which], sizeof slots[which]);
    return slots[which] != 0 && slots[which] != -1;
}

static bool take_functions(void)
{
    static intptr_t slots[NVTX_MEMORY_SLOTS]; /* the tool may keep their address */
    nvtx_segment segment = {.number = 1, .slot_count = NVTX_MEMORY_SLOTS, .slots = slots};
    nvtx_module module = {.version = NVTX_VERSION_GIVEN,
                          .struct_bytes = sizeof module,
                          .module = NVTX_MEMORY_MODULE,
                          .compatible = NVTX_MEMORY_COMPATIBLE,
                          .segment_count = 1,
                          .segments = &segment};
    nvtx_start_extended *start;
    memset(slots, 0, sizeof slots);
    *(void **)&start = dlsym(to.library, NVTX_START_EXTENDED);
    return start && start(&module) && take_slot(slots, NVTX_HEAP_REGISTER, &to.heap_register) &&
           take_slot(slots, NVTX_HEAP_UNREGISTER, &to.heap_unregister) &&
           take_slot(slots, NVTX_HEAP_RESET, &to.heap_reset) &&
           take_slot(slots, NVTX_REGIONS_REGISTER, &to.regions_register) &&
           take_slot(slots, NVTX_REGIONS_UNREGISTER, &to.regions_unregister);
}

bool announcements_start(const char *library, char *reason, size_t reason_size)
{
    to.library = dlopen(library, RTLD_LAZY);
    if (!to.library) {
        snprintf(reason, reason_size, "%s", dlerror());
        return false;
    }
    to.domain = make_domain();
    announcements_are_on = take_functions();
    if (!announcements_are_on) {
        snprintf(reason, reason_size, "%s does not want to know of memory", library);
    }
    return announcements_are_on;
}

void announcements_stop(void)
{
    announcements_are_on = false;
    free(to.segments);
    free(to.ended);
    to.segments = NULL;
    to.ended = NULL;
    to.segment_count = to.segment_capacity = to.ended_count = to.ended_capacity = 0;
    to.captures = 0;
}

/* --- segments: under the lock ------------------------------------------------------------- */

static announced_segment *find_segment(uint64_t address)
{
    for (size_t i = 0; i < to.segment_count; i++) {
        if (address - to.segments[i].address < to.segments[i].size) {
            return &to.segments[i];
        }
    }
    return NULL;
}

void announce_segment(uint64_t address, uint64_t size)
{
    if (!announcements_are_on) {
        return;
    }
    const nvtx_range range = {size, (const void *)(uintptr_t)address};
    const nvtx_heap heap = {.compatible = NVTX_MEMORY_COMPATIBLE,
                            .struct_bytes = sizeof heap,
                            .usage = NVTX_SUB_ALLOCATOR,
                            .type = NVTX_VIRTUAL_ADDRESS,
                            .description_bytes = sizeof range,
                            .description = &range};
    pthread_mutex_lock(&to.lock);
    if (GMD_GROW(&to.segments, &to.segment_capacity, to.segment_count + 1)) {
        void *handle = to.heap_register(to.domain, &heap);
        to.segments[to.segment_count++] = (announced_segment){address, size, handle, false};
    }
    pthread_mutex_unlock(&to.lock);
}

void announce_segment_end(uint64_t address)
{
    if (!announcements_are_on) {
        return;
    }
    pthread_mutex_lock(&to.lock);
    announced_segment *s = find_segment(address);
    if (s) {
        to.heap_unregister(to.domain, s->heap);
        *s = to.segments[--to.segment_count];
    }
    pthread_mutex_unlock(&to.lock);
}

/* --- blocks ------------------------------------------------------------------------------- */

/* Under the lock. */
static void end_region(uint64_t address)
{
    const void *region = (const void *)(uintptr_t)address;
    const nvtx_former_regions regions = {.compatible = NVTX_MEMORY_COMPATIBLE,
                                         .struct_bytes = sizeof regions,
                                         .named_by = NVTX_BY_POINTER,
                                         .count = 1,
                                         .element_bytes = sizeof region,
                                         .elements = &region};
    const announced_segment *s = find_segment(address);
    if (s && !s->is_whole) {
        to.regions_unregister(to.domain, &regions);
    }
}

/* Likewise. A block that comes back before its end was announced ends now. */
static void end_earlier(uint64_t address, uint64_t size)
{
    size_t kept = 0;
    for (size_t i = 0; i < to.ended_count; i++) {
        if (to.ended[i].address - address < size) {
            end_region(to.ended[i].address);
        } else {
            to.ended[kept++] = to.ended[i];
        }
    }
    to.ended_count = kept;
}

static void begin_region(const announced_segment *s, uint64_t address, uint64_t size)
{
    const nvtx_range range = {size, (const void *)(uintptr_t)address};
    void *handle = NULL;
    const nvtx_regions regions = {.compatible = NVTX_MEMORY_COMPATIBLE,
                                  .struct_bytes = sizeof regions,
                                  .type = NVTX_VIRTUAL_ADDRESS,
                                  .heap = s->heap,
                                  .count = 1,
                                  .element_bytes = sizeof range,
                                  .elements = &range,
                                  .handles = &handle};
    to.regions_register(to.domain, &regions);
}

/* From now on it is memory like any other. A heap that is taken back would be no memory at all. */
static void open_segment(announced_segment *s)
{
    to.heap_reset(to.domain, s->heap);
    begin_region(s, s->address, s->size);
    s->is_whole = true;
}

void announce_block(uint64_t address, uint64_t size, int device, cudaStream_t stream)
{
    cuda_scope scope;
    if (!announcements_are_on) {
        return;
    }
    bool is_captured = true;
    if (cuda_scope_enter(&scope, device)) {
        is_captured = cuda_is_capturing(stream);
        cuda_scope_leave(&scope);
    }
    pthread_mutex_lock(&to.lock);
    end_earlier(address, size ? size : 1);
    announced_segment *s = find_segment(address);
    if (s && !s->is_whole && is_captured) {
        open_segment(s);
    } else if (s && !s->is_whole && size) {
        begin_region(s, address, size);
    }
    pthread_mutex_unlock(&to.lock);
}

static void wait_for_device(int device)
{
    cuda_scope scope;
    if (cuda_scope_enter(&scope, device)) {
        cuda_succeeded(cudaDeviceSynchronize());
        cuda_scope_leave(&scope);
    }
}

/* Under the lock. Those that ended during captures, which are over. */
static void end_all_earlier(int device)
{
    size_t kept = 0;
    for (size_t i = 0; i < to.ended_count; i++) {
        if (to.ended[i].device == device) {
            end_region(to.ended[i].address);
        } else {
            to.ended[kept++] = to.ended[i];
        }
    }
    to.ended_count = kept;
}

void announce_block_end(uint64_t address, int device)
{
    if (!announcements_are_on) {
        return;
    }
    pthread_mutex_lock(&to.lock);
    if (to.captures == 0) {
        wait_for_device(device);
        end_all_earlier(device);
        end_region(address);
    } else if (GMD_GROW(&to.ended, &to.ended_capacity, to.ended_count + 1)) {
        to.ended[to.ended_count++] = (ended_block){address, device};
    }
    pthread_mutex_unlock(&to.lock);
}

void announce_captures(int change)
{
    pthread_mutex_lock(&to.lock);
    to.captures += change;
    pthread_mutex_unlock(&to.lock);
}
