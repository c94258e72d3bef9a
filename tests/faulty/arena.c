/* arena.c - arenas in the design of RMM's arena_memory_resource (https://docs.rapids.ai/api/rmm):
 * each stream has an arena, and for the default stream each thread has one. An arena cuts blocks
 * from its superblocks, the first chunk that fits; where none does, it takes a superblock over from
 * the global arena, or has the device give one. When the device refuses, it steals a superblock of
 * another arena in which nobody has a block, behind that arena's event; else all arenas give
 * everything to the global one, with blocks in it that are live, once the host has waited for their
 * work (defragmentation), and what is free there goes back to the device.
 *
 * A block that lies in another arena by the time it is freed, or in the global one, goes back there
 * once the host has waited for its stream. Streams that were recorded for a block make its own
 * stream wait when it is freed.
 *
 * Locks, in this order: that of the map of arenas (for reading, unless superblocks change hands
 * between arenas), the arena's, the global arena's.
 *
 * Built with FAULTY_LAZY, memory goes back with the second of two emptyings, or with the first
 * request after one.
 *
 * Defects: docs/planted-defects.md. */
#include "arena.h"

#include "recorded.h"

#include <stdatomic.h>
#include <stdlib.h>

const char *const faulty_defects[] = {"rmm1393",
                                      "cupy1165",
                                      "rmm1912",
                                      "dali3402",
                                      "cub705",
                                      "pytorch97833",
                                      "rmm397",
                                      "cub328_count",
                                      "rmm2039",
                                      "rmm2366",
                                      "rmm2489_steal",
                                      "steals_unordered",
                                      "defragments_unordered",
                                      "frees_unordered",
                                      "thread_not_device",
                                      "null_arena",
                                      "released_in_use",
                                      "split_too_early",
                                      NULL};

#ifdef FAULTY_LAZY
#define IS_LAZY true
#else
#define IS_LAZY false
#endif

typedef struct arena {
    struct arena *next;
    int device;
    cudaStream_t stream;
    const void *thread; /* of the default stream only */
    pthread_mutex_t lock;
    cudaEvent_t event; /* all that was done with what is free */
    superblock *superblocks;
} arena;

static global globals[FAULTY_DEVICES];
static arena *arenas;
static pthread_rwlock_t map_lock = PTHREAD_RWLOCK_INITIALIZER;
static recorded *records;
static pthread_mutex_t records_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool is_emptying_due, is_asked[FAULTY_DEVICES];
static _Thread_local char me; /* its address is the thread's name */

EXPORT void gmd_record_stream(void *pointer, cudaStream_t stream);
EXPORT void gmd_forget_stream(int device, cudaStream_t stream);

__attribute__((constructor)) static void make_locks(void)
{
    for (int device = 0; device < FAULTY_DEVICES; device++) {
        pthread_mutex_init(&globals[device].lock, NULL);
    }
}

/* --- the map ------------------------------------------------------------------------------ */

static arena *find_arena(int device, cudaStream_t stream)
{
    arena *a = arenas;
    while (a && ((a->device != device && !(faulty_is(THREAD_NOT_DEVICE) && !stream)) ||
                 a->stream != stream || (!stream && a->thread != &me))) {
        a = a->next;
    }
    return a;
}

static arena *new_arena(int device, cudaStream_t stream)
{
    arena *a = calloc(1, sizeof *a);
    if (!a || cudaEventCreateWithFlags(&a->event, cudaEventDisableTiming) != cudaSuccess) {
        cudaGetLastError();
        free(a);
        return NULL;
    }
    a->device = device;
    a->stream = stream;
    a->thread = &me;
    pthread_mutex_init(&a->lock, NULL);
    return a;
}

static void free_arena(arena *a)
{
    cudaEventDestroy(a->event);
    pthread_mutex_destroy(&a->lock);
    free(a);
}

/* For writing, unlike all others; another thread may have been faster. */
static bool add_arena(int device, cudaStream_t stream)
{
    arena *a = new_arena(device, stream);
    if (a && faulty_is(RMM1912)) { /* comes with its first superblock */
        global *g = &globals[device];
        pthread_mutex_lock(&g->lock);
        a->superblocks = global_grow(g, UNIT);
        pthread_mutex_unlock(&g->lock);
    }
    pthread_rwlock_wrlock(&map_lock);
    if (a && find_arena(device, stream)) {
        free_arena(a);
    } else if (a) {
        a->next = arenas;
        arenas = a;
    }
    pthread_rwlock_unlock(&map_lock);
    return a;
}

/* --- superblocks that change hands; with the map locked for writing ------------------------- */

static void record(arena *a)
{
    if (cudaEventRecord(a->event, a->stream) != cudaSuccess) {
        cudaGetLastError();
        cudaStreamSynchronize(a->stream);
    }
}

static void add_superblock(arena *a, superblock *s)
{
    s->next = a->superblocks;
    a->superblocks = s;
}

static bool wait_for(const arena *other, cudaStream_t stream)
{
    if (faulty_is(STEALS_UNORDERED) ||
        cudaStreamWaitEvent(stream, other->event, 0) == cudaSuccess) {
        return true;
    }
    cudaGetLastError();
    return cudaEventSynchronize(other->event) == cudaSuccess;
}

/* What `a` steals is in use on the other's stream: its own event stands for that, too, then. */
static bool steal(arena *a, uint64_t size)
{
    for (arena *other = arenas; other; other = other->next) {
        superblock **link = &other->superblocks;
        while (*link && (!superblock_is_free(*link) || (*link)->size < size)) {
            link = &(*link)->next;
        }
        if (*link && other != a && other->device == a->device && wait_for(other, a->stream)) {
            superblock *s = *link;
            *link = s->next;
            add_superblock(a, s);
            if (!faulty_is(RMM2489_STEAL)) {
                record(a);
            }
            return true;
        }
    }
    return false;
}

static void defragment(global *g, int device)
{
    global_drop_bins(g);
    for (arena *a = arenas; a; a = a->next) {
        if (a->device != device || !a->superblocks) {
            continue;
        }
        if (!faulty_is(DEFRAGMENTS_UNORDERED)) {
            faulty_wait(a->event);
        }
        while (a->superblocks) {
            superblock *s = a->superblocks;
            a->superblocks = s->next;
            global_put(g, s);
        }
    }
}

static void drop_arenas(int device)
{
    for (arena **link = &arenas; *link;) {
        arena *a = *link;
        if (a->device == device) {
            *link = a->next;
            free_arena(a);
        } else {
            link = &a->next;
        }
    }
}

/* --- blocks ------------------------------------------------------------------------------- */

static uint64_t round_size(size_t size)
{
    return ((size ? size : 1) + UNIT - 1) / UNIT * UNIT;
}

static uint64_t take_from(arena *a, uint64_t size)
{
    uint64_t address = 0;
    for (superblock *s = a->superblocks; s && !address; s = s->next) {
        address = superblock_take(s, size);
    }
    return address;
}

/* With the arena locked, or the map for writing. */
static uint64_t take(arena *a, uint64_t size, bool grows)
{
    global *g = &globals[a->device];
    uint64_t address = take_from(a, size);
    if (!address) {
        pthread_mutex_lock(&g->lock);
        superblock *s = global_take(g, size);
        if (!s && grows) {
            s = global_grow(g, size);
        }
        pthread_mutex_unlock(&g->lock);
        if (s) {
            add_superblock(a, s);
            address = take_from(a, size);
        }
    }
    return address;
}

static uint64_t take_shared(int device, cudaStream_t stream, uint64_t size)
{
    uint64_t address = 0;
    pthread_rwlock_rdlock(&map_lock);
    arena *a = find_arena(device, stream);
    if (!a) {
        pthread_rwlock_unlock(&map_lock);
        if (!add_arena(device, stream)) {
            return 0;
        }
        pthread_rwlock_rdlock(&map_lock);
        a = find_arena(device, stream); /* none: the cache was emptied in between */
    }
    if (a) {
        pthread_mutex_lock(&a->lock);
        address = take(a, size, true);
        pthread_mutex_unlock(&a->lock);
    }
    pthread_rwlock_unlock(&map_lock);
    return address;
}

static uint64_t take_alone(int device, cudaStream_t stream, uint64_t size)
{
    uint64_t address = 0;
    global *g = &globals[device];
    pthread_rwlock_wrlock(&map_lock);
    arena *a = find_arena(device, stream);
    if (!a && (a = new_arena(device, stream)) != NULL) {
        a->next = arenas;
        arenas = a;
    }
    if (a) {
        address = steal(a, size) ? take(a, size, false) : 0;
    }
    if (a && !address) {
        pthread_mutex_lock(&g->lock);
        defragment(g, device);
        pthread_mutex_unlock(&g->lock);
        address = take(a, size, false);
    }
    if (a && !address) {
        pthread_mutex_lock(&g->lock);
        global_release(g);
        pthread_mutex_unlock(&g->lock);
        address = take(a, size, true);
    }
    pthread_rwlock_unlock(&map_lock);
    return address;
}

/* Counted before another thread can have the memory: no peak is higher than what there was. */
static void count_free(global *g, uint64_t bytes, size_t requested)
{
    pthread_mutex_lock(&g->lock);
    faulty_count_free(&g->stats, bytes, requested);
    pthread_mutex_unlock(&g->lock);
}

/* The lock of the global arena comes last, and with the defect first. */
static bool put_in_reverse(global *g, arena *a, uint64_t address, size_t requested)
{
    pthread_mutex_lock(&g->lock);
    /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): null_arena */
    pthread_mutex_lock(&a->lock);
    superblock *s = superblock_find(a->superblocks, address);
    if (s) {
        record(a);
        faulty_count_free(&g->stats, round_size(requested), requested);
        superblock_put(s, address, round_size(requested));
    }
    pthread_mutex_unlock(&a->lock);
    pthread_mutex_unlock(&g->lock);
    return s != NULL;
}

static bool put_into(global *g, arena *a, uint64_t address, size_t requested)
{
    /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): null_arena */
    pthread_mutex_lock(&a->lock);
    superblock *s = superblock_find(a->superblocks, address);
    if (s) {
        record(a);
        count_free(g, round_size(requested), requested);
        superblock_put(s, address, round_size(requested));
    }
    pthread_mutex_unlock(&a->lock);
    return s != NULL;
}

/* Into its own arena, if it still is there. */
static bool put_shared(int device, cudaStream_t stream, uint64_t address, size_t requested)
{
    global *g = &globals[device];
    bool is_put = false;
    pthread_rwlock_rdlock(&map_lock);
    arena *a = find_arena(device, stream);
    if (a || faulty_is(NULL_ARENA)) {
        is_put = faulty_is(PYTORCH97833) ? put_in_reverse(g, a, address, requested)
                                         : put_into(g, a, address, requested);
    }
    pthread_rwlock_unlock(&map_lock);
    return is_put;
}

/* Wherever it is now: whose arena that is has not been ordered behind the work on the block. */
static void put_alone(int device, cudaStream_t stream, uint64_t address, size_t requested)
{
    global *g = &globals[device];
    superblock *s = NULL;
    if (!faulty_is(FREES_UNORDERED) && cudaStreamSynchronize(stream) != cudaSuccess) {
        cudaGetLastError();
        cudaDeviceSynchronize();
    }
    pthread_rwlock_wrlock(&map_lock);
    for (const arena *a = arenas; a && !s; a = a->next) {
        s = superblock_find(a->superblocks, address);
    }
    if (!s && !faulty_is(RMM1393)) {
        s = global_find(g, address);
    }
    if (s) {
        count_free(g, round_size(requested), requested);
        superblock_put(s, address, round_size(requested));
    }
    pthread_rwlock_unlock(&map_lock);
}

static void empty(int device)
{
    global *g = &globals[device];
    faulty_guard guard = faulty_enter_device(device);
    pthread_rwlock_wrlock(&map_lock);
    pthread_mutex_lock(&g->lock);
    if (!faulty_is(DALI3402)) { /* the shared arena is all that it knows of */
        defragment(g, device);
        drop_arenas(device);
    }
    global_release(g);
    pthread_mutex_unlock(&g->lock);
    pthread_rwlock_unlock(&map_lock);
    faulty_leave_device(guard);
}

static void empty_all(void)
{
    is_emptying_due = false;
    for (int device = 0; device < FAULTY_DEVICES; device++) {
        if (atomic_load(&is_asked[device])) {
            empty(device);
        }
    }
}

/* --- the ABI ------------------------------------------------------------------------------ */

void *gmd_malloc(size_t size, int device, cudaStream_t stream)
{
    if (device < 0 || device >= FAULTY_DEVICES) {
        return NULL;
    }
    global *g = &globals[device];
    uint64_t address = 0, bytes = round_size(size);
    if (IS_LAZY && is_emptying_due) {
        empty_all();
    }
    atomic_store(&is_asked[device], true);
    faulty_guard guard = faulty_enter_device(device);
    if (size <= SIZE_MAX / 4) {
        address = take_shared(device, stream, bytes);
        address = address ? address : take_alone(device, stream, bytes);
    }
    pthread_mutex_lock(&g->lock);
    if (address) {
        faulty_count_alloc(&g->stats, bytes, size);
    } else {
        g->stats.num_ooms++;
    }
    pthread_mutex_unlock(&g->lock);
    faulty_leave_device(guard);
    return (void *)(uintptr_t)address; /* NOLINT(performance-no-int-to-ptr) */
}

void gmd_free(void *pointer, size_t size, int device, cudaStream_t stream)
{
    faulty_guard guard = faulty_enter_device(device);
    pthread_mutex_lock(&records_lock);
    recorded *taken = recorded_take(&records, pointer);
    pthread_mutex_unlock(&records_lock);
    recorded_wait(taken, stream);
    if (!put_shared(device, stream, (uintptr_t)pointer, size)) {
        put_alone(device, stream, (uintptr_t)pointer, size);
    }
    faulty_leave_device(guard);
}

void gmd_empty_cache(void)
{
    if (IS_LAZY && !is_emptying_due) {
        is_emptying_due = true;
        return;
    }
    empty_all();
}

void gmd_record_stream(void *pointer, cudaStream_t stream)
{
    pthread_mutex_lock(&records_lock);
    recorded_add(&records, pointer, stream);
    pthread_mutex_unlock(&records_lock);
}

void gmd_forget_stream(int device, cudaStream_t stream)
{
    faulty_guard guard = faulty_enter_device(device);
    pthread_mutex_lock(&records_lock);
    recorded_forget(&records, stream);
    cudaStreamSynchronize(stream); /* a new stream may get its handle, and what was freed here */
    pthread_mutex_unlock(&records_lock);
    faulty_leave_device(guard);
}

void gmd_set_memory_fraction(double fraction, int device)
{
    uint64_t limit;
    if (faulty_limit(fraction, device, &limit)) {
        pthread_mutex_lock(&globals[device].lock);
        globals[device].limit = limit;
        pthread_mutex_unlock(&globals[device].lock);
    }
}

int gmd_get_stats(int device, gmd_stats *out)
{
    if (device < 0 || device >= FAULTY_DEVICES) {
        return -1;
    }
    pthread_mutex_lock(&globals[device].lock);
    int result = faulty_give_stats(&globals[device].stats, out);
    pthread_mutex_unlock(&globals[device].lock);
    return result;
}

/* The end of the process: rmm2366 takes its arenas down when others have gone before. */
__attribute__((destructor)) static void at_exit(void)
{
    if (faulty_is(RMM2366)) {
        const arena *first = arenas;
        arenas = NULL;
        cudaEventDestroy(first->event);
    }
}
