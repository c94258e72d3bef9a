#include "gmd_allocator.h"

#include "block.h"
#include "block_map.h"
#include "free_set.h"
#include "gmd_size.h"
#include "places.h"
#include "statistics.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* The sizes of PyTorch's algorithm, in bytes. */
#define BLOCK_BYTES         ((uint64_t)512) /* every block is a multiple of this */
#define SMALL_REQUEST_BYTES (1 * GMD_MIB)   /* up to here: small pool */
#define SMALL_SEGMENT_BYTES (2 * GMD_MIB)
#define LARGE_REQUEST_BYTES (10 * GMD_MIB) /* below: segments of LARGE_SEGMENT_BYTES */
#define LARGE_SEGMENT_BYTES (20 * GMD_MIB)
#define SEGMENT_ROUND_BYTES (2 * GMD_MIB) /* from LARGE_REQUEST_BYTES on: rounded up to this */

#define SET_CACHE_SIZE 64 /* direct-mapped: stream -> free set */

typedef struct device_allocator {
    pthread_mutex_t lock;
    int device;
    block_pool spares;
    block_map allocated;        /* every allocated block, by address */
    free_set *sets[POOL_KINDS]; /* ascending by stream handle: the order of giving back */
    free_set *set_cache[POOL_KINDS][SET_CACHE_SIZE];
    uint64_t limit_bytes; /* of reserved memory; UINT64_MAX: none */
    places places;        /* blocks' addresses are places, see places.h */
    statistics stats;
} device_allocator;

struct gmd_allocator {
    int device_count;
    device_allocator devices[];
};

/* --- sizes ------------------------------------------------------------------------------- */

/* Saturates below SIZE_MAX, where no device can serve it: the request then fails like any that is
 * too large (a wrap to zero here would hand out a block that is too short, pytorch#182446). */
static uint64_t round_up(uint64_t size, uint64_t multiple)
{
    uint64_t padded;
    if (__builtin_add_overflow(size, multiple - 1, &padded)) {
        padded = UINT64_MAX;
    }
    return padded / multiple * multiple;
}

static uint64_t block_size_for(uint64_t size)
{
    return size < BLOCK_BYTES ? BLOCK_BYTES : round_up(size, BLOCK_BYTES);
}

static uint64_t segment_size_for(uint64_t block_size)
{
    if (block_size <= SMALL_REQUEST_BYTES) {
        return SMALL_SEGMENT_BYTES;
    }
    if (block_size < LARGE_REQUEST_BYTES) {
        return LARGE_SEGMENT_BYTES;
    }
    return round_up(block_size, SEGMENT_ROUND_BYTES);
}

uint64_t gmd_allocator_device_request(size_t size)
{
    return segment_size_for(block_size_for(size));
}

static pool_kind kind_of(const free_set *set)
{
    return set->is_small ? POOL_SMALL : POOL_LARGE;
}

/* A large block keeps a remainder of up to 1 MiB: splitting it off would only litter the pool. */
static bool is_worth_splitting(const free_set *set, uint64_t remaining)
{
    return set->is_small ? remaining >= BLOCK_BYTES : remaining > SMALL_REQUEST_BYTES;
}

/* --- free sets --------------------------------------------------------------------------- */

static free_set *find_or_add_set(device_allocator *d, pool_kind kind, cudaStream_t stream)
{
    free_set **link = &d->sets[kind];
    while (*link && (uintptr_t)(*link)->stream < (uintptr_t)stream) {
        link = &(*link)->next;
    }
    if (*link && (*link)->stream == stream) {
        return *link;
    }
    free_set *set = calloc(1, sizeof *set);
    if (set) {
        set->stream = stream;
        set->is_small = kind == POOL_SMALL;
        set->next = *link;
        *link = set;
    }
    return set;
}

static free_set *set_for(device_allocator *d, pool_kind kind, cudaStream_t stream)
{
    uint64_t hash = (uint64_t)(uintptr_t)stream * 0x9e3779b97f4a7c15u;
    free_set **cached = &d->set_cache[kind][hash >> 58];
    if (!*cached || (*cached)->stream != stream) {
        free_set *set = find_or_add_set(d, kind, stream);
        if (!set) {
            return NULL;
        }
        *cached = set;
    }
    return *cached;
}

/* --- segments: the only places that call the device -------------------------------------- */

/* Makes `device` current and gives the device to go back to (the same, where it was current
 * already). False: the runtime refuses; nothing is changed and no error is left behind. */
static bool enter_device(int device, int *previous)
{
    *previous = device;
    bool is_entered = cudaGetDevice(previous) == cudaSuccess &&
                      (*previous == device || cudaSetDevice(device) == cudaSuccess);
    if (!is_entered) {
        cudaGetLastError();
    }
    return is_entered;
}

static void leave_device(int device, int previous)
{
    if (previous != device && cudaSetDevice(previous) != cudaSuccess) {
        cudaGetLastError();
    }
}

static void *device_malloc(int device, uint64_t size)
{
    void *memory = NULL;
    int previous;
    if (!enter_device(device, &previous)) {
        return NULL;
    }
    cudaError_t result = cudaMalloc(&memory, size);
    if (result != cudaSuccess) {
        memory = NULL;
        cudaGetLastError(); /* the failure is dealt with here: leave none behind for the caller */
    }
    leave_device(device, previous);
    return memory;
}

static bool device_free(int device, uint64_t address)
{
    int previous;
    if (!enter_device(device, &previous)) {
        return false;
    }
    cudaError_t result = cudaFree((void *)(uintptr_t)address);
    if (result != cudaSuccess) {
        cudaGetLastError();
    }
    leave_device(device, previous);
    return result == cudaSuccess;
}

static bool device_total(int device, size_t *total_bytes)
{
    size_t free_bytes = 0;
    int previous;
    if (!enter_device(device, &previous)) {
        return false;
    }
    cudaError_t result = cudaMemGetInfo(&free_bytes, total_bytes);
    if (result != cudaSuccess) {
        cudaGetLastError();
    }
    leave_device(device, previous);
    return result == cudaSuccess;
}

/* A new segment as one block that is in no free set; NULL: the limit or the device refuses. */
static block *add_segment(device_allocator *d, free_set *set, uint64_t size)
{
    uint64_t reserved = statistics_current(&d->stats, FIGURE_RESERVED_BYTES);
    if (size > d->limit_bytes || reserved > d->limit_bytes - size) {
        return NULL;
    }
    block *b = places_reserve(&d->places) ? block_pool_take(&d->spares) : NULL;
    if (!b) {
        return NULL;
    }
    void *memory = device_malloc(d->device, size);
    if (!memory) {
        block_pool_give(&d->spares, b);
        return NULL;
    }
    b->address = places_add(&d->places, (uint64_t)(uintptr_t)memory, size);
    b->size = size;
    b->set_and_state = (uint64_t)(uintptr_t)set;
    statistics_raise(&d->stats, kind_of(set), FIGURE_SEGMENT, 1);
    statistics_raise(&d->stats, kind_of(set), FIGURE_RESERVED_BYTES, size);
    d->stats.num_device_alloc++;
    return b;
}

/* Gives a whole free segment back. If the device refuses to take it, it stays in the cache. */
static void release_segment(device_allocator *d, free_set *set, block *b)
{
    if (!device_free(d->device, places_address(&d->places, b->address))) {
        return;
    }
    statistics_lower(&d->stats, kind_of(set), FIGURE_SEGMENT, 1);
    statistics_lower(&d->stats, kind_of(set), FIGURE_RESERVED_BYTES, b->size);
    d->stats.num_device_free++;
    places_remove(&d->places, b->address);
    free_set_remove(set, b);
    block_pool_give(&d->spares, b);
}

static void release_free_segments(device_allocator *d, pool_kind kind)
{
    for (free_set *set = d->sets[kind]; set; set = set->next) {
        uint64_t size = 0, address = 0;
        for (block *b; (b = free_set_lower_bound(set, size, address)) != NULL;) {
            size = b->size;
            address = b->address + 1;
            if (!block_is_split(b)) {
                release_segment(d, set, b);
            }
        }
    }
}

static void release_cached_segments(device_allocator *d)
{
    d->stats.num_sync_all_streams++;
    release_free_segments(d, POOL_LARGE);
    release_free_segments(d, POOL_SMALL);
}

/* --- blocks ------------------------------------------------------------------------------ */

/* Cuts `size` bytes off the front of a block that is in no set; the rest goes back to the set. The
 * rest keeps the block's identity (and its last requested size), as PyTorch's snapshots show. */
static block *split_front(free_set *set, block *rest, block *front, uint64_t size)
{
    front->address = rest->address;
    front->size = size;
    front->previous = rest->previous;
    front->next = rest;
    if (front->previous) {
        front->previous->next = front;
    }
    rest->previous = front;
    rest->address += size;
    rest->size -= size;
    free_set_insert(set, rest);
    return front;
}

static void count_split(device_allocator *d, pool_kind kind, bool was_split, uint64_t taken,
                        uint64_t remaining)
{
    if (was_split) {
        statistics_lower(&d->stats, kind, FIGURE_INACTIVE_SPLIT_BYTES, taken);
    } else {
        statistics_raise(&d->stats, kind, FIGURE_INACTIVE_SPLIT_BYTES, remaining);
        statistics_raise(&d->stats, kind, FIGURE_INACTIVE_SPLIT, 1);
    }
}

static void count_whole(device_allocator *d, pool_kind kind, bool was_split, uint64_t taken)
{
    if (was_split) {
        statistics_lower(&d->stats, kind, FIGURE_INACTIVE_SPLIT_BYTES, taken);
        statistics_lower(&d->stats, kind, FIGURE_INACTIVE_SPLIT, 1);
    }
}

/* Hands out `size` bytes of `b`, which is in no set. `spare` is a block for the split, used or
 * given back: taken beforehand, so that nothing can fail any more. */
static block *occupy(device_allocator *d, free_set *set, block *b, block *spare, uint64_t size,
                     uint64_t requested)
{
    pool_kind kind = kind_of(set);
    bool was_split = block_is_split(b);
    uint64_t remaining = b->size - size;
    if (is_worth_splitting(set, remaining)) {
        b = split_front(set, b, spare, size);
        count_split(d, kind, was_split, size, remaining);
    } else {
        block_pool_give(&d->spares, spare);
        count_whole(d, kind, was_split, b->size);
    }
    b->requested_size = requested;
    b->set_and_state = (uint64_t)(uintptr_t)set | BLOCK_ALLOCATED;
    block_map_insert(&d->allocated, b);
    statistics_raise(&d->stats, kind, FIGURE_ALLOCATION, 1);
    statistics_raise(&d->stats, kind, FIGURE_ALLOCATED_BYTES, b->size);
    statistics_raise(&d->stats, kind, FIGURE_ACTIVE, 1);
    statistics_raise(&d->stats, kind, FIGURE_ACTIVE_BYTES, b->size);
    statistics_raise(&d->stats, kind, FIGURE_REQUESTED_BYTES, requested);
    return b;
}

/* The retry ladder: a cached block, a new segment, a new segment after the cache was given back. */
static block *find_block(device_allocator *d, free_set *set, uint64_t size)
{
    block *b = free_set_lower_bound(set, size, 0);
    if (b) {
        free_set_remove(set, b);
        return b;
    }
    uint64_t segment_size = segment_size_for(size);
    b = add_segment(d, set, segment_size);
    if (!b) {
        release_cached_segments(d);
        d->stats.num_alloc_retries++;
        b = add_segment(d, set, segment_size);
    }
    return b;
}

static block *allocate(device_allocator *d, uint64_t requested, cudaStream_t stream)
{
    uint64_t size = block_size_for(requested);
    free_set *set = set_for(d, size <= SMALL_REQUEST_BYTES ? POOL_SMALL : POOL_LARGE, stream);
    block *spare = block_pool_take(&d->spares);
    if (!set || !spare || !block_map_reserve(&d->allocated)) {
        if (spare) {
            block_pool_give(&d->spares, spare);
        }
        return NULL; /* no host memory */
    }
    block *b = find_block(d, set, size);
    if (!b) {
        block_pool_give(&d->spares, spare);
        d->stats.num_ooms++;
        return NULL;
    }
    return occupy(d, set, b, spare, size, requested);
}

/* Bytes that `b` gained from a free neighbour, which ceases to exist; 0: not free. */
static uint64_t merge(device_allocator *d, free_set *set, block *b, block *neighbour)
{
    if (!neighbour || block_is_allocated(neighbour)) {
        return 0;
    }
    uint64_t gained = neighbour->size;
    free_set_remove(set, neighbour);
    if (neighbour == b->previous) {
        b->address = neighbour->address;
        b->previous = neighbour->previous;
        if (b->previous) {
            b->previous->next = b;
        }
    } else {
        b->next = neighbour->next;
        if (b->next) {
            b->next->previous = b;
        }
    }
    b->size += gained;
    block_pool_give(&d->spares, neighbour);
    return gained;
}

/* What merging and freeing did to the free blocks that are parts of segments. */
static void count_free_parts(device_allocator *d, pool_kind kind, int64_t blocks, int64_t bytes)
{
    if (blocks > 0) {
        statistics_raise(&d->stats, kind, FIGURE_INACTIVE_SPLIT, (uint64_t)blocks);
    } else if (blocks < 0) {
        statistics_lower(&d->stats, kind, FIGURE_INACTIVE_SPLIT, (uint64_t)-blocks);
    }
    if (bytes > 0) {
        statistics_raise(&d->stats, kind, FIGURE_INACTIVE_SPLIT_BYTES, (uint64_t)bytes);
    } else if (bytes < 0) {
        statistics_lower(&d->stats, kind, FIGURE_INACTIVE_SPLIT_BYTES, (uint64_t)-bytes);
    }
}

static void release(device_allocator *d, block *b)
{
    free_set *set = block_set(b);
    pool_kind kind = kind_of(set);
    uint64_t size = b->size;
    statistics_lower(&d->stats, kind, FIGURE_ALLOCATION, 1);
    statistics_lower(&d->stats, kind, FIGURE_ALLOCATED_BYTES, size);
    statistics_lower(&d->stats, kind, FIGURE_ACTIVE, 1);
    statistics_lower(&d->stats, kind, FIGURE_ACTIVE_BYTES, size);
    statistics_lower(&d->stats, kind, FIGURE_REQUESTED_BYTES, b->requested_size);
    uint64_t below = merge(d, set, b, b->previous);
    uint64_t above = merge(d, set, b, b->next);
    b->set_and_state = (uint64_t)(uintptr_t)set;
    free_set_insert(set, b);
    int64_t blocks = -(int64_t)(below != 0) - (int64_t)(above != 0);
    int64_t bytes = -(int64_t)(below + above);
    if (block_is_split(b)) {
        blocks += 1;
        bytes += (int64_t)b->size;
    }
    count_free_parts(d, kind, blocks, bytes);
}

/* --- the interface ----------------------------------------------------------------------- */

static device_allocator *device_at(gmd_allocator *allocator, int device)
{
    return device >= 0 && device < allocator->device_count ? &allocator->devices[device] : NULL;
}

/* Only defaults so far; the first token is named, so that nobody believes it took effect. */
static gmd_status check_conf(const char *conf, gmd_error *error)
{
    if (!conf || !*conf) {
        return GMD_OK;
    }
    int token = (int)strcspn(conf, ",");
    return gmd_fail(error, GMD_BAD_INPUT,
                    "allocator settings: '%.*s' is not supported by this version of the reference "
                    "allocator, which has the default settings only",
                    token > 120 ? 120 : token, conf);
}

gmd_status gmd_allocator_create(gmd_allocator **allocator, int device_count, const char *conf,
                                gmd_error *error)
{
    if (device_count < 1 || device_count > 1024) {
        return gmd_fail(error, GMD_BAD_INPUT, "reference allocator: %d devices", device_count);
    }
    gmd_status status = check_conf(conf, error);
    if (status != GMD_OK) {
        return status;
    }
    gmd_allocator *a = calloc(1, sizeof *a + (size_t)device_count * sizeof(device_allocator));
    if (!a) {
        return gmd_fail(error, GMD_NO_MEMORY, "reference allocator: no host memory");
    }
    a->device_count = device_count;
    for (int i = 0; i < device_count; i++) {
        a->devices[i].device = i;
        a->devices[i].limit_bytes = UINT64_MAX;
        pthread_mutex_init(&a->devices[i].lock, NULL);
    }
    *allocator = a;
    return GMD_OK;
}

static void free_all_blocks(device_allocator *d)
{
    for (uint64_t i = 0; d->allocated.slots && i <= d->allocated.mask;) {
        uint64_t address = d->allocated.slots[i].address;
        if (address) { /* taking it may move another entry into this slot: look again */
            release(d, block_map_take(&d->allocated, address));
        } else {
            i++;
        }
    }
}

static void destroy_device(device_allocator *d)
{
    free_all_blocks(d);
    release_cached_segments(d);
    for (int kind = 0; kind < POOL_KINDS; kind++) {
        for (free_set *set = d->sets[kind], *next; set; set = next) {
            next = set->next;
            free(set);
        }
    }
    places_release(&d->places);
    block_map_release(&d->allocated);
    block_pool_release(&d->spares);
    pthread_mutex_destroy(&d->lock);
}

void gmd_allocator_destroy(gmd_allocator *allocator)
{
    if (!allocator) {
        return;
    }
    for (int i = 0; i < allocator->device_count; i++) {
        destroy_device(&allocator->devices[i]);
    }
    free(allocator);
}

void *gmd_allocator_malloc(gmd_allocator *allocator, size_t size, int device, cudaStream_t stream)
{
    device_allocator *d = device_at(allocator, device);
    if (!d) {
        return NULL;
    }
    pthread_mutex_lock(&d->lock);
    block *b = allocate(d, size, stream);
    void *memory = b ? (void *)(uintptr_t)places_address(&d->places, b->address) : NULL;
    pthread_mutex_unlock(&d->lock);
    return memory;
}

bool gmd_allocator_free(gmd_allocator *allocator, void *ptr)
{
    if (!ptr) {
        return true;
    }
    for (int i = 0; i < allocator->device_count; i++) {
        device_allocator *d = &allocator->devices[i];
        pthread_mutex_lock(&d->lock);
        uint64_t place = places_place(&d->places, (uint64_t)(uintptr_t)ptr);
        block *b = block_map_take(&d->allocated, place);
        if (b) {
            release(d, b);
        }
        pthread_mutex_unlock(&d->lock);
        if (b) {
            return true;
        }
    }
    return false;
}

void gmd_allocator_empty_cache(gmd_allocator *allocator)
{
    for (int i = 0; i < allocator->device_count; i++) {
        device_allocator *d = &allocator->devices[i];
        pthread_mutex_lock(&d->lock);
        release_cached_segments(d);
        pthread_mutex_unlock(&d->lock);
    }
}

bool gmd_allocator_set_memory_fraction(gmd_allocator *allocator, double fraction, int device)
{
    device_allocator *d = device_at(allocator, device);
    if (!d || !(fraction >= 0 && fraction <= 1)) {
        return false;
    }
    size_t total_bytes = 0;
    if (!device_total(device, &total_bytes)) {
        return false;
    }
    pthread_mutex_lock(&d->lock);
    d->limit_bytes = (uint64_t)(fraction * (double)total_bytes);
    pthread_mutex_unlock(&d->lock);
    return true;
}

void gmd_allocator_reset_peak_stats(gmd_allocator *allocator, int device)
{
    device_allocator *d = device_at(allocator, device);
    if (d) {
        pthread_mutex_lock(&d->lock);
        statistics_reset_peaks(&d->stats);
        pthread_mutex_unlock(&d->lock);
    }
}

bool gmd_allocator_order_segments(gmd_allocator *allocator, int device, const uint64_t *given,
                                  size_t count)
{
    device_allocator *d = device_at(allocator, device);
    if (!d) {
        return false;
    }
    pthread_mutex_lock(&d->lock);
    bool is_set =
        !statistics_current(&d->stats, FIGURE_SEGMENT) && places_set(&d->places, given, count);
    pthread_mutex_unlock(&d->lock);
    return is_set;
}

bool gmd_allocator_get_stats(gmd_allocator *allocator, int device, gmd_stats *out)
{
    device_allocator *d = device_at(allocator, device);
    if (!d || !out || out->struct_size != sizeof *out) {
        return false;
    }
    pthread_mutex_lock(&d->lock);
    statistics_summary(&d->stats, out);
    pthread_mutex_unlock(&d->lock);
    return true;
}

bool gmd_allocator_memory_stats(gmd_allocator *allocator, int device, gmd_stat_fn *emit,
                                void *context)
{
    device_allocator *d = device_at(allocator, device);
    if (!d) {
        return false;
    }
    pthread_mutex_lock(&d->lock);
    statistics stats = d->stats;
    pthread_mutex_unlock(&d->lock);
    statistics_emit(&stats, emit, context);
    return true;
}

/* --- walking ----------------------------------------------------------------------------- */

typedef struct head_list { /* the first block of every segment */
    const block **heads;
    size_t count;
} head_list;

static void add_head(void *context, block *b)
{
    head_list *list = context;
    if (!b->previous) {
        list->heads[list->count++] = b;
    }
}

static int compare_heads(const void *a, const void *b)
{
    const block *const *x = a, *const *y = b;
    return ((*x)->address > (*y)->address) - ((*x)->address < (*y)->address);
}

static void visit_segment(const block *head, gmd_walk_fn *visit, void *context)
{
    uint64_t segment_size = 0;
    for (const block *b = head; b; b = b->next) {
        segment_size += b->size;
    }
    for (const block *b = head; b; b = b->next) {
        const free_set *set = block_set(b);
        visit(context, &(gmd_block_info){.segment_address = head->address,
                                         .segment_size = segment_size,
                                         .address = b->address,
                                         .size = b->size,
                                         .requested_size = b->requested_size,
                                         .stream = set->stream,
                                         .state = block_is_allocated(b),
                                         .is_large = !set->is_small});
    }
}

static bool walk_locked(device_allocator *d, gmd_walk_fn *visit, void *context)
{
    uint64_t segments = statistics_current(&d->stats, FIGURE_SEGMENT);
    head_list list = {.heads = malloc((segments + 1) * sizeof *list.heads)};
    if (!list.heads) {
        return false;
    }
    for (uint64_t i = 0; d->allocated.slots && i <= d->allocated.mask; i++) {
        if (d->allocated.slots[i].address) {
            add_head(&list, d->allocated.slots[i].block);
        }
    }
    for (int kind = 0; kind < POOL_KINDS; kind++) {
        for (const free_set *set = d->sets[kind]; set; set = set->next) {
            free_set_each(set, add_head, &list);
        }
    }
    qsort(list.heads, list.count, sizeof *list.heads, compare_heads);
    for (size_t i = 0; i < list.count; i++) {
        visit_segment(list.heads[i], visit, context);
    }
    free(list.heads);
    return true;
}

bool gmd_allocator_walk(gmd_allocator *allocator, int device, gmd_walk_fn *visit, void *context)
{
    device_allocator *d = device_at(allocator, device);
    if (!d) {
        return false;
    }
    pthread_mutex_lock(&d->lock);
    bool visited = walk_locked(d, visit, context);
    pthread_mutex_unlock(&d->lock);
    return visited;
}
