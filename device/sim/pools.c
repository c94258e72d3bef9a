/* Stream-ordered memory pools. A pool keeps what was freed, each piece with the place in its
 * stream's work at which it is free, and hands it out again where the new owner's work comes after
 * that place: by stream order, by events that the application queued, because the work is known to
 * be done, or behind a wait that the pool queues itself. Each of these but the first can be
 * switched off by the pool's attributes. Pieces are not split or merged; a synchronising call gives
 * free ones back to the device, down to the pool's release threshold. */
#include "pools.h"
#include "pages.h"

#include <stdlib.h>
#include <string.h>

typedef struct piece {
    uint64_t address, span; /* span 0: the slot is free */
    uint64_t size;          /* of the live owner */
    point freed_at;         /* its past is kept */
    uint32_t pool;
    bool is_live;
    uint32_t next; /* free slots, or cached pieces of the pool, by ascending span */
} piece;

typedef struct pool {
    cudaMemPool_t handle; /* NULL: the slot is free */
    int device;
    bool is_destroyed; /* what is live in it stays until it is freed */
    bool follows_events, is_opportunistic, adds_dependencies;
    uint64_t threshold, max_bytes;
    uint64_t reserved, reserved_high, used, used_high;
    uint32_t live_count;
    uint32_t cached; /* list of pieces */
} pool;

enum { POOL_MAX = 1024, PIECE_UNIT = 512 };

static struct {
    pool list[POOL_MAX]; /* [0] is not used; the first ones are the devices' default pools */
    uint32_t count;
    uint32_t current[GMD_SIM_DEVICE_MAX]; /* cudaDeviceSetMemPool */
    piece *pieces;                        /* [0] is not used */
    uint32_t piece_count, piece_capacity, free_piece;
    uint32_t cached_count; /* in all pools */
} pools;

static cudaMemPool_t pool_handle(uint32_t slot)
{
    return (cudaMemPool_t)(uintptr_t)handle_make(HANDLE_POOL, slot);
}

static void open_pool(uint32_t slot, int device, uint64_t max_bytes)
{
    pools.list[slot] = (pool){.handle = pool_handle(slot),
                              .device = device,
                              .follows_events = true,
                              .is_opportunistic = true,
                              .adds_dependencies = true,
                              .max_bytes = max_bytes};
}

static void drop_piece(uint32_t slot)
{
    point_store(&pools.pieces[slot].freed_at, (point){.on = NULL});
    pools.pieces[slot].span = 0;
    pools.pieces[slot].next = pools.free_piece;
    pools.free_piece = slot;
}

void pools_reset(void)
{
    for (uint32_t i = 1; i < pools.piece_count; i++) {
        point_store(&pools.pieces[i].freed_at, (point){.on = NULL});
    }
    pools.count = sim.config.device_count + 1;
    pools.piece_count = 1;
    pools.free_piece = pools.cached_count = 0;
    for (uint32_t d = 0; d < sim.config.device_count; d++) {
        open_pool(d + 1, (int)d, UINT64_MAX);
        pools.current[d] = d + 1;
    }
}

void pools_reset_device(int device)
{
    for (uint32_t i = 1; i < pools.piece_count; i++) {
        piece *it = &pools.pieces[i];
        if (it->span && pools.list[it->pool].device == device) {
            pools.cached_count -= !it->is_live;
            drop_piece(i);
        }
    }
    for (uint32_t i = 1; i < pools.count; i++) {
        if (pools.list[i].device != device) {
            continue;
        }
        if (i == (uint32_t)device + 1) {
            open_pool(i, device, UINT64_MAX);
        } else {
            pools.list[i].handle = NULL;
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

static pool *pool_of(sim_call *call, cudaMemPool_t handle)
{
    pool *p = pool_find(handle);
    if (!p) {
        call_misuse(call, 0, "the pool was never created, or is destroyed");
    }
    return p;
}

/* --- pieces ------------------------------------------------------------------------------ */

static uint32_t new_piece(void)
{
    uint32_t slot = pools.free_piece;
    if (slot) {
        pools.free_piece = pools.pieces[slot].next;
        pools.pieces[slot] = (piece){0};
        return slot;
    }
    if (pools.piece_count >= pools.piece_capacity) {
        uint32_t capacity = pools.piece_capacity ? pools.piece_capacity * 2 : 64;
        piece *moved = realloc(pools.pieces, capacity * sizeof *moved);
        if (!moved) {
            return 0;
        }
        pools.pieces = moved;
        pools.piece_capacity = capacity;
    }
    pools.pieces[pools.piece_count] = (piece){.span = 0};
    return pools.piece_count++;
}

static void cache(pool *p, uint32_t slot)
{
    uint32_t *link = &p->cached;
    while (*link && pools.pieces[*link].span < pools.pieces[slot].span) {
        link = &pools.pieces[*link].next;
    }
    pools.pieces[slot].next = *link;
    *link = slot;
    pools.cached_count++;
}

static void take_from_cache(uint32_t *link)
{
    *link = pools.pieces[*link].next;
    pools.cached_count--;
}

/* Work of `s` from now on may have the piece: its earlier owner's comes before. */
static bool may_follow(const pool *p, const piece *it, const stream *s, bool waits)
{
    if (it->freed_at.on == s || !it->freed_at.on) {
        return true;
    }
    return (p->follows_events && stream_is_after(s, it->freed_at)) ||
           (p->is_opportunistic && it->freed_at.on->head >= it->freed_at.ticket) ||
           (p->adds_dependencies && waits);
}

/* The smallest cached piece that serves, without a wait where there is one; 0: none. It is at most
 * `most` bytes: what remains of a larger one is lost until it is freed. */
static uint32_t *find_cached(pool *p, uint64_t size, uint64_t most, const stream *s)
{
    for (int waits = 0; waits < 2; waits++) {
        for (uint32_t *link = &p->cached; *link && pools.pieces[*link].span <= most;
             link = &pools.pieces[*link].next) {
            const piece *it = &pools.pieces[*link];
            if (it->span >= size && may_follow(p, it, s, waits)) {
                return link;
            }
        }
    }
    return NULL;
}

static void release_piece(pool *p, uint32_t *link)
{
    uint32_t slot = *link;
    piece *it = &pools.pieces[slot];
    take_from_cache(link);
    /* Small pieces share pages: the last of a page gives it back, whichever of them took it. */
    uint64_t before = sim.devices[p->device].physical_bytes;
    memory_release_at(it->address);
    uint64_t given = before - sim.devices[p->device].physical_bytes;
    p->reserved -= given < p->reserved ? given : p->reserved;
    drop_piece(slot);
}

/* Gives back what is free and done, largest last, until no more than `keep` bytes are reserved. */
static void trim(pool *p, uint64_t keep)
{
    for (uint32_t *link = &p->cached; *link && (p->reserved > keep || keep == 0);) {
        const piece *it = &pools.pieces[*link];
        if (!it->freed_at.on || it->freed_at.on->head >= it->freed_at.ticket) {
            release_piece(p, link);
        } else {
            link = &pools.pieces[*link].next;
        }
    }
}

/* A destroyed pool's place is free again once nothing of it is left. */
static void close_if_empty(pool *p)
{
    if (p->is_destroyed && p->live_count == 0 && p->cached == 0) {
        p->handle = NULL;
    }
}

void pools_synchronised(void)
{
    for (uint32_t i = 1; pools.cached_count && i < pools.count; i++) {
        pool *p = &pools.list[i];
        if (p->cached && (p->is_destroyed || p->reserved > p->threshold)) {
            trim(p, p->is_destroyed ? 0 : p->threshold);
            close_if_empty(p);
        }
    }
}

/* --- allocating and freeing -------------------------------------------------------------- */

static void count_use(pool *p, uint64_t size)
{
    p->live_count++;
    p->used += size;
    p->used_high = p->used > p->used_high ? p->used : p->used_high;
    p->reserved_high = p->reserved > p->reserved_high ? p->reserved : p->reserved_high;
}

static uint32_t take_cached(pool *p, uint64_t size, uint64_t most, stream *s)
{
    uint32_t *link = find_cached(p, size, most, s);
    if (!link) {
        return 0;
    }
    uint32_t slot = *link;
    if (!stream_follow(s, pools.pieces[slot].freed_at)) {
        return 0;
    }
    point_store(&pools.pieces[slot].freed_at, (point){.on = NULL});
    take_from_cache(link);
    return slot;
}

static uint32_t take_fresh(pool *p, uint64_t size)
{
    size = (size + PIECE_UNIT - 1) / PIECE_UNIT * PIECE_UNIT;
    if (size > p->max_bytes) {
        return 0;
    }
    if (p->reserved > p->max_bytes - size) {
        trim(p, 0);
    }
    if (p->reserved > p->max_bytes - size) {
        return 0;
    }
    uint32_t slot = new_piece();
    uint64_t before = sim.devices[p->device].physical_bytes, address;
    if (slot && !memory_allocate(p->device, size, slot, &address)) {
        trim(p, 0);
        before = sim.devices[p->device].physical_bytes;
        if (!memory_allocate(p->device, size, slot, &address)) {
            drop_piece(slot);
            return 0;
        }
    }
    if (!slot) {
        return 0;
    }
    pools.pieces[slot] =
        (piece){.address = address, .span = size, .pool = (uint32_t)(p - pools.list)};
    p->reserved += sim.devices[p->device].physical_bytes - before; /* small pieces share a page */
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
    uint32_t slot = take_cached(p, size, size + size / 8 + PIECE_UNIT - 1, s);
    slot = slot ? slot : take_fresh(p, size);
    slot = slot ? slot : take_cached(p, size, UINT64_MAX, s); /* rather waste than refuse */
    if (!slot) {
        return cudaErrorMemoryAllocation;
    }
    piece *it = &pools.pieces[slot];
    it->is_live = true;
    it->size = size;
    count_use(p, size);
    *out = (void *)(uintptr_t)it->address;
    call->record.address = it->address;
    call->record.size = size;
    call->record.device = p->device;
    return cudaSuccess;
}

static pool *current_pool(const sim_call *call)
{
    return &pools.list[pools.current[call->thread->device]];
}

cudaError_t gmd_sim_cudaMallocAsync(void **pointer, size_t size, cudaStream_t handle)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaMallocAsync)) {
        call.record.result = allocate(&call, current_pool(&call), pointer, size, handle);
    }
    return (cudaError_t)call_leave(&call);
}

int pool_allocate_from(sim_call *call, cudaMemPool_t from, void **out, uint64_t size,
                       cudaStream_t on)
{
    return allocate(call, pool_of(call, from), out, size, on);
}

SIM_CALL(cudaMallocFromPoolAsync,
         (void **pointer, size_t size, cudaMemPool_t from, cudaStream_t handle),
         pool_allocate_from(&call, from, pointer, size, handle))

bool pool_free(uint32_t slot, point freed_at)
{
    piece *it = &pools.pieces[slot];
    if (!it->is_live) {
        return false;
    }
    pool *p = &pools.list[it->pool];
    it->is_live = false;
    point_store(&it->freed_at, freed_at);
    p->live_count--;
    p->used -= it->size;
    cache(p, slot);
    return true;
}

static int free_async(sim_call *call, uint64_t address, cudaStream_t handle)
{
    stream *s = stream_of(call, handle);
    if (!s) {
        return cudaErrorInvalidResourceHandle;
    }
    if (s->capture) {
        return cudaErrorNotSupported;
    }
    const allocation *a = map_find(address);
    call->record.address = address;
    if (!a || a->address != address || a->reservation) {
        return call_misuse(call, cudaErrorInvalidValue,
                           "a free of what is not allocated (freed before, or never allocated)");
    }
    call->record.size = a->size;
    call->record.device = a->device;
    if (!a->pool_piece) { /* of cudaMalloc: it is gone once the stream has come here */
        stream_force(s, s->tail);
        host_learn(stream_point(s));
        memory_release_at(address);
        return cudaSuccess;
    }
    if (!stream_order_default(s)) {
        return cudaErrorMemoryAllocation;
    }
    return pool_free(a->pool_piece, stream_point(s))
               ? (int)cudaSuccess
               : call_misuse(call, cudaErrorInvalidValue, "the memory is freed already");
}

cudaError_t gmd_sim_cudaFreeAsync(void *pointer, cudaStream_t handle)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaFreeAsync) && pointer) {
        call.record.result = free_async(&call, (uintptr_t)pointer, handle);
    }
    return (cudaError_t)call_leave(&call);
}

CUresult gmd_sim_cuMemAllocAsync(CUdeviceptr *pointer, size_t size, CUstream handle)
{
    sim_call call;
    if (call_enter(&call, CALL_cuMemAllocAsync)) {
        void *out = NULL;
        if (!call.thread->has_context) {
            call.record.result = CUDA_ERROR_INVALID_CONTEXT;
        } else {
            call.record.result =
                allocate(&call, current_pool(&call), pointer ? &out : NULL, size, handle);
        }
        if (!call.record.result && pointer) {
            *pointer = (uintptr_t)out;
        }
    }
    return (CUresult)call_leave(&call);
}

CUresult gmd_sim_cuMemFreeAsync(CUdeviceptr pointer, CUstream handle)
{
    sim_call call;
    if (call_enter(&call, CALL_cuMemFreeAsync) && pointer) {
        call.record.result = call.thread->has_context ? free_async(&call, pointer, handle)
                                                      : (int)CUDA_ERROR_INVALID_CONTEXT;
    }
    return (CUresult)call_leave(&call);
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
    trim(p, 0);
    close_if_empty(p);
    return cudaSuccess;
}

int pool_trim(sim_call *call, cudaMemPool_t handle, uint64_t keep)
{
    pool *p = pool_of(call, handle);
    if (p) {
        trim(p, keep);
    }
    return p ? cudaSuccess : cudaErrorInvalidValue;
}

SIM_CALL(cudaMemPoolCreate, (cudaMemPool_t * out, const struct cudaMemPoolProps *properties),
         pool_create(&call, out, properties))
SIM_CALL(cudaMemPoolDestroy, (cudaMemPool_t handle), pool_destroy(&call, handle))
SIM_CALL(cudaMemPoolTrimTo, (cudaMemPool_t handle, size_t keep), pool_trim(&call, handle, keep))

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

SIM_CALL(cudaDeviceGetDefaultMemPool, (cudaMemPool_t * out, int device),
         pool_tell(&call, out, device, true))
SIM_CALL(cudaDeviceGetMemPool, (cudaMemPool_t * out, int device),
         pool_tell(&call, out, device, false))
SIM_CALL(cudaDeviceSetMemPool, (int device, cudaMemPool_t handle),
         pool_make_current(&call, device, handle))

cudaMemPool_t pool_of_piece(uint32_t slot)
{
    return pools.list[pools.pieces[slot].pool].handle;
}

/* --- attributes -------------------------------------------------------------------------- */

static bool *switch_of(pool *p, enum cudaMemPoolAttr attribute)
{
    switch (attribute) {
    case cudaMemPoolReuseFollowEventDependencies:
        return &p->follows_events;
    case cudaMemPoolReuseAllowOpportunistic:
        return &p->is_opportunistic;
    case cudaMemPoolReuseAllowInternalDependencies:
        return &p->adds_dependencies;
    default:
        return NULL;
    }
}

static uint64_t *figure_of(pool *p, enum cudaMemPoolAttr attribute)
{
    switch (attribute) {
    case cudaMemPoolAttrReleaseThreshold:
        return &p->threshold;
    case cudaMemPoolAttrReservedMemCurrent:
        return &p->reserved;
    case cudaMemPoolAttrReservedMemHigh:
        return &p->reserved_high;
    case cudaMemPoolAttrUsedMemCurrent:
        return &p->used;
    case cudaMemPoolAttrUsedMemHigh:
        return &p->used_high;
    default:
        return NULL;
    }
}

int pool_get_attribute(sim_call *call, cudaMemPool_t handle, enum cudaMemPoolAttr attribute,
                       void *value)
{
    pool *p = value ? pool_of(call, handle) : NULL;
    const bool *is_on = p ? switch_of(p, attribute) : NULL;
    const uint64_t *figure = p ? figure_of(p, attribute) : NULL;
    if (is_on) {
        *(int *)value = *is_on;
    } else if (figure) {
        *(uint64_t *)value = *figure;
    } else {
        return call_misuse(call, cudaErrorInvalidValue,
                           "no such pool or attribute, or no place for its value");
    }
    return cudaSuccess;
}

/* The two peaks can be reset, to 0 only, and then start from the current value. */
int pool_set_attribute(sim_call *call, cudaMemPool_t handle, enum cudaMemPoolAttr attribute,
                       const void *value)
{
    pool *p = value ? pool_of(call, handle) : NULL;
    bool *is_on = p ? switch_of(p, attribute) : NULL;
    if (is_on) {
        *is_on = *(const int *)value != 0;
        return cudaSuccess;
    }
    bool is_peak =
        attribute == cudaMemPoolAttrReservedMemHigh || attribute == cudaMemPoolAttrUsedMemHigh;
    if (p && attribute == cudaMemPoolAttrReleaseThreshold) {
        p->threshold = *(const uint64_t *)value;
    } else if (p && is_peak && *(const uint64_t *)value == 0) {
        *figure_of(p, attribute) = attribute == cudaMemPoolAttrUsedMemHigh ? p->used : p->reserved;
    } else {
        return call_misuse(call, cudaErrorInvalidValue,
                           "no such pool, or an attribute that cannot be set to this");
    }
    return cudaSuccess;
}

SIM_CALL(cudaMemPoolGetAttribute,
         (cudaMemPool_t handle, enum cudaMemPoolAttr attribute, void *value),
         pool_get_attribute(&call, handle, attribute, value))
SIM_CALL(cudaMemPoolSetAttribute,
         (cudaMemPool_t handle, enum cudaMemPoolAttr attribute, void *value),
         pool_set_attribute(&call, handle, attribute, value))

/* Without links between devices a pool's memory is its own device's, which keeps its access. */
static int give_access(sim_call *call, const pool *p, const struct cudaMemAccessDesc *access)
{
    bool is_own =
        access->location.type == cudaMemLocationTypeDevice && access->location.id == p->device;
    if (is_own && access->flags == cudaMemAccessFlagsProtReadWrite) {
        return cudaSuccess;
    }
    bool is_none = is_own && access->flags == cudaMemAccessFlagsProtNone;
    return call_misuse(call, is_none || !is_own ? cudaErrorInvalidDevice : cudaErrorNotSupported,
                       "a pool's memory is its own device's, to read and write");
}

int pool_set_access(sim_call *call, cudaMemPool_t handle, const struct cudaMemAccessDesc *access,
                    size_t count)
{
    const pool *p = pool_of(call, handle);
    if (!p || (!access && count)) {
        return call_misuse(call, cudaErrorInvalidValue, "no such pool, or no access is given");
    }
    int result = cudaSuccess;
    for (size_t i = 0; !result && i < count; i++) {
        result = give_access(call, p, &access[i]);
    }
    return result;
}

int pool_get_access(sim_call *call, cudaMemPool_t handle, enum cudaMemAccessFlags *flags,
                    const struct cudaMemLocation *location)
{
    const pool *p = pool_of(call, handle);
    if (!p || !flags || !location || location->type != cudaMemLocationTypeDevice ||
        !device_exists(location->id)) {
        return call_misuse(call, cudaErrorInvalidValue,
                           "no such pool, or the question is incomplete");
    }
    *flags =
        location->id == p->device ? cudaMemAccessFlagsProtReadWrite : cudaMemAccessFlagsProtNone;
    return cudaSuccess;
}

SIM_CALL(cudaMemPoolSetAccess,
         (cudaMemPool_t handle, const struct cudaMemAccessDesc *access, size_t count),
         pool_set_access(&call, handle, access, count))
SIM_CALL(cudaMemPoolGetAccess,
         (enum cudaMemAccessFlags * flags, cudaMemPool_t handle, struct cudaMemLocation *location),
         pool_get_access(&call, handle, flags, location))
