/* A pool keeps what was freed, each block with the place in its stream's work at which it is free,
 * and hands it out again where the new owner's work comes after that place: by stream order, by
 * events that the application queued, because the work is known to be done, or behind a wait that
 * the pool queues itself. Each of these but the first can be switched off by the pool's attributes
 * (pool_settings.c). A synchronising call gives chunks of which nothing is in use back to the
 * device, down to the pool's release threshold. */
#include "pools.h"

#include "happens_before.h"
#include "pool_memory.h"
#include "streams.h"

enum { POOL_MAX = 1024 };

static struct {
    pool list[POOL_MAX]; /* [0] is not used; the first ones are the devices' default pools */
    uint32_t count;
    uint32_t current[GMD_SIM_DEVICE_MAX]; /* cudaDeviceSetMemPool */
} pools;

static cudaMemPool_t pool_handle(uint32_t slot)
{
    return (cudaMemPool_t)(uintptr_t)handle_make(HANDLE_POOL, slot);
}

static void open_pool(uint32_t slot, int device, uint64_t max_bytes)
{
    pool *p = &pools.list[slot];
    shelf_list shelves = p->shelves; /* their memory is used again */
    shelves_clear(&shelves);
    *p = (pool){.handle = pool_handle(slot),
                .number = slot,
                .device = device,
                .follows_events = true,
                .is_opportunistic = true,
                .adds_dependencies = true,
                .max_bytes = max_bytes,
                .shelves = shelves};
}

void pools_reset(void)
{
    blocks_reset();
    pools.count = sim.config.device_count + 1;
    for (uint32_t d = 0; d < sim.config.device_count; d++) {
        open_pool(d + 1, (int)d, UINT64_MAX);
        pools.current[d] = d + 1;
    }
}

void pools_reset_device(int device)
{
    for (uint32_t i = 1; i < pools.count; i++) {
        pool *p = &pools.list[i];
        if (p->device != device || !p->handle) {
            continue;
        }
        pool_abandon(p);
        if (i == (uint32_t)device + 1) {
            open_pool(i, device, UINT64_MAX);
        } else {
            p->handle = NULL;
        }
    }
    pools.current[device] = (uint32_t)device + 1;
}

static pool *pool_find(cudaMemPool_t handle)
{
    uint64_t slot = handle_serial((uintptr_t)handle, HANDLE_POOL);
    pool *p = slot && slot < pools.count ? &pools.list[slot] : NULL;
    return p && p->handle == handle && !p->is_destroyed ? p : NULL;
}

pool *pool_of(sim_call *call, cudaMemPool_t handle)
{
    pool *p = pool_find(handle);
    if (!p) {
        call_misuse(call, 0, "the pool was never created, or is destroyed");
    }
    return p;
}

/* A destroyed pool's place is free again once nothing of it is left. */
static void close_if_empty(pool *p)
{
    if (p->is_destroyed && p->reserved == 0) {
        p->handle = NULL;
    }
}

uint64_t pools_hold(int device)
{
    uint64_t bytes = 0;
    for (uint32_t i = 1; i < pools.count; i++) {
        const pool *p = &pools.list[i];
        bytes += p->handle && p->device == device ? p->reserved : 0;
    }
    return bytes;
}

void pools_synchronised(void)
{
    for (uint32_t i = 1; i < pools.count; i++) {
        pool *p = &pools.list[i];
        if (p->handle && p->reserved) {
            pool_settle(p);
            pool_give_back(p, p->is_destroyed ? 0 : p->threshold);
            close_if_empty(p);
        }
    }
}

/* --- allocating and freeing -------------------------------------------------------------- */

/* Before it refuses, the pool waits for what was freed and gives back what nobody uses. */
static uint32_t take(sim_call *call, cudaMemPool_t from, cudaStream_t handle, uint64_t size)
{
    pool *p = pool_find(from);
    stream *s = stream_of(call, handle);
    uint32_t slot = pool_take(p, s, size);
    if (slot) {
        return slot;
    }
    pool_wait(p);
    p = pool_find(from); /* host functions ran meanwhile, beside other threads */
    s = stream_find(call->thread, handle);
    if (!p || !s) {
        return 0;
    }
    slot = pool_take(p, s, size);
    if (!slot) {
        pool_give_back(p, 0);
        slot = pool_take(p, s, size);
    }
    return slot;
}

static int allocate(sim_call *call, pool *p, void **out, uint64_t size, cudaStream_t handle)
{
    stream *s = out ? stream_of(call, handle) : NULL;
    if (!s) {
        return out ? (int)cudaErrorInvalidResourceHandle
                   : call_misuse(call, cudaErrorInvalidValue, "no place for the new pointer");
    }
    if (s->capture) { /* graphs with memory of their own are not simulated */
        return cudaErrorNotSupported;
    }
    if (!p || size == 0) {
        *out = NULL;
        return p ? (int)cudaSuccess : (int)cudaErrorInvalidValue;
    }
    if (size > sim.config.capacity_bytes) { /* before it is rounded up */
        return cudaErrorMemoryAllocation;
    }
    if (!stream_order_default(s)) {
        return cudaErrorMemoryAllocation;
    }
    uint32_t slot = take(call, p->handle, handle, size);
    if (!slot) {
        return cudaErrorMemoryAllocation;
    }
    const block *b = block_at(slot);
    *out = (void *)(uintptr_t)b->address;
    call->record.address = b->address;
    call->record.size = size;
    call->record.device = p->device;
    return cudaSuccess;
}

int pool_allocate(sim_call *call, void **out, uint64_t size, cudaStream_t on)
{
    return allocate(call, &pools.list[pools.current[call->thread->device]], out, size, on);
}

int pool_allocate_from(sim_call *call, cudaMemPool_t from, void **out, uint64_t size,
                       cudaStream_t on)
{
    return allocate(call, pool_of(call, from), out, size, on);
}

bool pool_free(uint32_t slot, point freed_at)
{
    bool is_live = block_at(slot)->is_live;
    if (is_live) {
        pool_put(&pools.list[block_at(slot)->pool], slot, freed_at);
    }
    return is_live;
}

/* --- pools ------------------------------------------------------------------------------- */

int pool_create(sim_call *call, cudaMemPool_t *out, const struct cudaMemPoolProps *properties)
{
    if (!out || !properties || properties->allocType != cudaMemAllocationTypePinned ||
        properties->location.type != cudaMemLocationTypeDevice ||
        !device_exists(properties->location.id)) {
        return call_misuse(call, cudaErrorInvalidValue,
                           "no place for the pool, or properties other than pinned memory of a "
                           "device that exists");
    }
    if (properties->handleTypes & ~(unsigned)cudaMemHandleTypePosixFileDescriptor) {
        return cudaErrorNotSupported;
    }
    uint32_t slot = 1;
    while (slot < pools.count && pools.list[slot].handle) {
        slot++;
    }
    if (slot == POOL_MAX) {
        return cudaErrorMemoryAllocation;
    }
    pools.count = slot == pools.count ? slot + 1 : pools.count;
    open_pool(slot, properties->location.id,
              properties->maxSize ? properties->maxSize : UINT64_MAX);
    *out = pools.list[slot].handle;
    return cudaSuccess;
}

int pool_destroy(sim_call *call, cudaMemPool_t handle)
{
    pool *p = pool_of(call, handle);
    uint32_t slot = p ? (uint32_t)(p - pools.list) : 0;
    if (!p || slot <= sim.config.device_count) {
        return call_misuse(call, cudaErrorInvalidValue,
                           "the pool is none, or a device's default pool, which stays");
    }
    p->is_destroyed = true;
    for (uint32_t d = 0; d < sim.config.device_count; d++) {
        pools.current[d] = pools.current[d] == slot ? d + 1 : pools.current[d];
    }
    pool_give_back(p, 0);
    close_if_empty(p);
    return cudaSuccess;
}

int pool_trim(sim_call *call, cudaMemPool_t handle, uint64_t keep)
{
    pool *p = pool_of(call, handle);
    if (p) {
        pool_give_back(p, keep);
    }
    return p ? cudaSuccess : cudaErrorInvalidValue;
}

int pool_tell(sim_call *call, cudaMemPool_t *out, int device, bool is_default)
{
    if (!out) {
        return call_misuse(call, cudaErrorInvalidValue, "no place for the pool");
    }
    if (!device_exists(device)) {
        return call_misuse(call, cudaErrorInvalidDevice, "there is no device of this number");
    }
    *out = pool_handle(is_default ? (uint32_t)device + 1 : pools.current[device]);
    return cudaSuccess;
}

int pool_make_current(sim_call *call, int device, cudaMemPool_t handle)
{
    const pool *p = pool_of(call, handle);
    if (!p || p->device != device) {
        return call_misuse(call, cudaErrorInvalidValue, "the pool is not one of this device");
    }
    pools.current[device] = (uint32_t)(p - pools.list);
    return cudaSuccess;
}

cudaMemPool_t pool_of_block(uint32_t slot)
{
    return pools.list[block_at(slot)->pool].handle;
}

const char *pools_violation(void)
{
    const char *violation = NULL;
    for (uint32_t i = 1; i < pools.count && !violation; i++) {
        violation = pools.list[i].handle ? pool_violation(&pools.list[i]) : NULL;
    }
    for (uint32_t d = 0; d < sim.config.device_count && !violation; d++) {
        const pool *p = &pools.list[pools.current[d]];
        violation = p->handle && !p->is_destroyed && p->device == (int)d
                        ? NULL
                        : "a device's current pool is one of its own";
    }
    return violation;
}
