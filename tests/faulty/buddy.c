/* buddy.c - a buddy allocator (Knuth, The Art of Computer Programming, vol. 1, 2.5) over slabs that
 * are taken from the device at the start and never given back, as pools with a fixed size are. A
 * block has a power of two of units and begins at a multiple of its size in its slab; its buddy is
 * the other half of the block that both were split from, and the two merge when both are free.
 *
 * A freed block waits for an event of its stream, and of each stream that was recorded for it,
 * before it goes back to the lists; its own stream may have it again at once where no other one was
 * recorded. A request that nothing serves waits for those blocks on the host.
 *
 * Built with FAULTY_UNIT as another least block (4 KiB, 64 KiB), and without some of the functions.
 *
 * Defects: docs/planted-defects.md. */
#include "recorded.h"

#include <pthread.h>
#include <stdlib.h>

enum {
    MLX2099,
    CUB328,
    RMM1655,
    WRONG_HALF,
    ORDER_UNCHECKED,
    MARK_OFF_BY_ONE,
    SIZE_ROUNDED_DOWN,
    NULL_LIST,
    RECORD_IGNORED,
    RECORD_FORGOTTEN_AT_REUSE,
    LOST_WITHOUT_EVENT,
    ERROR_LEFT,
    DEVICE_LEFT,
    REUSE_UNLOCKED,
    REQUESTED_NOT_ROUNDED,
    OOM_NOT_WAITED,
    EVENT_KEPT,
};
const char *const faulty_defects[] = {"mlx2099",
                                      "cub328",
                                      "rmm1655",
                                      "wrong_half",
                                      "order_unchecked",
                                      "mark_off_by_one",
                                      "size_rounded_down",
                                      "null_list",
                                      "record_ignored",
                                      "record_forgotten_at_reuse",
                                      "lost_without_event",
                                      "error_left",
                                      "device_left",
                                      "reuse_unlocked",
                                      "requested_not_rounded",
                                      "oom_not_waited",
                                      "event_kept",
                                      NULL};

#ifndef FAULTY_UNIT
#define FAULTY_UNIT 512
#endif
#define UNIT       ((uint64_t)FAULTY_UNIT)
#define SLAB_MAX   ((uint64_t)1 << 30)
#define SLAB_LEAST ((uint64_t)2 << 20)
#define POOL_MAX   ((uint64_t)8 << 30) /* of each device; the rest is for others */
#define ORDERS     32
#define NO_BLOCK   UINT32_MAX
#define IS_FREE    0x80 /* of a state; the rest is 1 + the order, 0 where no block begins */

typedef struct slab {
    struct slab *next;
    uint64_t address;
    unsigned order; /* of all of it */
    uint8_t *states;
    uint32_t *after, *before; /* in the list of free blocks of that order */
    uint32_t *lists;          /* one for each order up to its own */
} slab;

typedef struct waiting {
    struct waiting *next;
    slab *slab;
    uint32_t unit;
    unsigned order;
    cudaStream_t stream;
    bool is_shared;     /* other streams were recorded */
    size_t event_count; /* 0: the host has waited */
    cudaEvent_t events[];
} waiting;

typedef struct pool {
    bool is_ready;
    slab *slabs;
    waiting *waits;
    gmd_stats stats;
} pool;

static pool pools[FAULTY_DEVICES];
static recorded *records;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

EXPORT void gmd_init(int device_count);
EXPORT void gmd_record_stream(void *pointer, cudaStream_t stream);
EXPORT void gmd_forget_stream(int device, cudaStream_t stream);

/* --- free blocks ------------------------------------------------------------------------- */

static void put(slab *s, uint32_t unit, unsigned order)
{
    uint32_t head = s->lists[order];
    s->states[unit] = (uint8_t)(IS_FREE | (1 + order));
    s->after[unit] = head;
    s->before[unit] = NO_BLOCK;
    if (head != NO_BLOCK) {
        s->before[head] = unit;
    }
    s->lists[order] = unit;
}

static void take_out(slab *s, uint32_t unit, unsigned order)
{
    uint32_t before = s->before[unit], after = s->after[unit];
    if (before == NO_BLOCK) {
        s->lists[order] = after;
    } else {
        s->after[before] = after;
    }
    if (after != NO_BLOCK) {
        s->before[after] = before;
    }
    s->states[unit] = 0;
}

static bool is_free_buddy(const slab *s, uint32_t buddy, unsigned order)
{
    if (faulty_is(ORDER_UNCHECKED)) { /* free at its beginning, and taken for free to its end */
        return s->states[buddy] & IS_FREE;
    }
    return s->states[buddy] == (IS_FREE | (1 + order));
}

static void give_back(slab *s, uint32_t unit, unsigned order)
{
    s->states[unit] = 0;
    while (order < s->order) {
        uint32_t buddy = unit ^ (UINT32_C(1) << order);
        if (!is_free_buddy(s, buddy, order)) {
            break;
        }
        take_out(s, buddy, (s->states[buddy] & ~(unsigned)IS_FREE) - 1);
        if (!faulty_is(WRONG_HALF)) { /* the lower half is where the merged block begins */
            unit &= buddy;
        }
        order++;
    }
    put(s, unit, order);
}

/* Halves are put back until what is left has the order that is wanted. */
static void split(slab *s, uint32_t unit, unsigned order, unsigned wanted)
{
    while (order > wanted) {
        order--;
        put(s, unit + (UINT32_C(1) << order), order);
    }
    s->states[unit + (faulty_is(MARK_OFF_BY_ONE) ? 1u : 0u)] = (uint8_t)(1 + wanted);
}

/* The slab with the smallest block that serves. */
static slab *take(pool *p, unsigned wanted, uint32_t *unit)
{
    slab *best = NULL;
    unsigned best_order = ORDERS;
    for (slab *s = p->slabs; s; s = s->next) {
        for (unsigned order = wanted; order <= s->order && order < best_order; order++) {
            if (s->lists[order] != NO_BLOCK) {
                best = s;
                best_order = order;
            }
        }
    }
    if (best) {
        *unit = best->lists[best_order];
        take_out(best, *unit, best_order);
        split(best, *unit, best_order, wanted);
    }
    return best;
}

/* --- slabs ------------------------------------------------------------------------------- */

static void free_slab(slab *s)
{
    if (s) {
        free(s->states);
        free(s->after);
        free(s->before);
        free(s->lists);
        free(s);
    }
}

static slab *new_slab(unsigned order)
{
    size_t units = (size_t)1 << order;
    slab *s = calloc(1, sizeof *s);
    void *memory = NULL;
    if (!s) {
        return NULL;
    }
    s->order = order;
    s->states = calloc(units + 1, sizeof *s->states);
    s->after = calloc(units, sizeof *s->after);
    s->before = calloc(units, sizeof *s->before);
    s->lists = calloc(order + 1, sizeof *s->lists);
    if (!s->states || !s->after || !s->before || !s->lists ||
        cudaMalloc(&memory, units * UNIT) != cudaSuccess) {
        cudaGetLastError();
        free_slab(s);
        return NULL;
    }
    s->address = (uintptr_t)memory;
    for (unsigned i = 0; i <= order; i++) {
        s->lists[i] = NO_BLOCK;
    }
    put(s, 0, order);
    return s;
}

static unsigned order_of_slab(uint64_t size)
{
    unsigned order = 0;
    while (UNIT << (order + 1) <= size) {
        order++;
    }
    return order;
}

/* All that the device has, in powers of two. With the device current. */
static void prepare(pool *p)
{
    size_t left = 0, total = 0;
    if (p->is_ready) {
        return;
    }
    p->is_ready = true;
    if (cudaMemGetInfo(&left, &total) != cudaSuccess) {
        cudaGetLastError();
    }
    uint64_t room = left < POOL_MAX ? left : POOL_MAX, size = SLAB_MAX;
    while (size >= SLAB_LEAST) {
        slab *s = size <= room ? new_slab(order_of_slab(size)) : NULL;
        if (!s) {
            size /= 2;
            continue;
        }
        s->next = p->slabs;
        p->slabs = s;
        room -= size;
        faulty_count_segment(&p->stats, size);
    }
}

/* --- blocks that wait -------------------------------------------------------------------- */

static void end_wait(waiting *w)
{
    for (size_t i = 0; i < w->event_count; i++) {
        if (!faulty_is(EVENT_KEPT)) {
            cudaEventDestroy(w->events[i]);
        }
    }
    free(w);
}

static bool is_done(const waiting *w)
{
    for (size_t i = 0; i < w->event_count; i++) {
        if (cudaEventQuery(w->events[i]) != cudaSuccess) {
            return false;
        }
    }
    return true;
}

static void collect_done(pool *p)
{
    for (waiting **link = &p->waits; *link;) {
        waiting *w = *link;
        if (is_done(w)) {
            *link = w->next;
            give_back(w->slab, w->unit, w->order);
            end_wait(w);
        } else {
            link = &w->next;
        }
    }
}

static void collect_all(pool *p)
{
    if (faulty_is(MLX2099) && p->waits) { /* as the public function does it, lock and all */
        gmd_empty_cache();
    }
    while (p->waits) {
        waiting *w = p->waits;
        p->waits = w->next;
        for (size_t i = 0; i < w->event_count; i++) {
            faulty_wait(w->events[i]);
        }
        give_back(w->slab, w->unit, w->order);
        end_wait(w);
    }
}

static bool may_reuse(const waiting *w, unsigned order, cudaStream_t stream)
{
    return w->order == order && w->stream == stream &&
           (!w->is_shared || faulty_is(RECORD_FORGOTTEN_AT_REUSE));
}

/* What only its own stream worked on is safe for that stream. */
static slab *reuse(pool *p, unsigned order, cudaStream_t stream, uint32_t *unit)
{
    for (waiting **link = &p->waits; *link; link = &(*link)->next) {
        waiting *w = *link;
        if (may_reuse(w, order, stream)) {
            slab *s = w->slab;
            *unit = w->unit;
            if (faulty_is(REUSE_UNLOCKED)) { /* until it is taken out, another thread may find it */
                pthread_mutex_unlock(&lock);
                pthread_mutex_lock(&lock);
                for (link = &p->waits; *link && *link != w; link = &(*link)->next) {
                }
            }
            s->states[*unit] = (uint8_t)(1 + order);
            if (*link) {
                *link = w->next;
                end_wait(w);
            }
            return s;
        }
    }
    return NULL;
}

static void add_event(waiting *w, cudaEvent_t event)
{
    if (event) { /* else the host has waited */
        w->events[w->event_count++] = event;
    }
}

static void add_recorded(waiting *w, recorded *taken)
{
    while (taken) {
        recorded *r = taken;
        if (!faulty_is(RECORD_IGNORED)) {
            add_event(w, r->event ? r->event : recorded_event(r->stream));
        } else if (r->event) {
            cudaEventDestroy(r->event);
        }
        taken = r->next;
        free(r);
    }
}

static size_t length_of(const recorded *r)
{
    size_t length = 0;
    for (; r; r = r->next) {
        length++;
    }
    return length;
}

static void keep_waiting(pool *p, slab *s, uint32_t unit, unsigned order, cudaStream_t stream,
                         recorded *taken)
{
    waiting *w = malloc(sizeof *w + (1 + length_of(taken)) * sizeof w->events[0]);
    if (!w) {
        abort(); /* the block would be lost */
    }
    w->slab = s;
    w->unit = unit;
    w->order = order;
    w->stream = stream;
    w->is_shared = taken != NULL;
    w->event_count = 0;
    add_event(w, recorded_event(stream));
    add_recorded(w, taken);
    w->next = p->waits;
    p->waits = w;
}

/* --- the ABI ----------------------------------------------------------------------------- */

/* ORDERS: more than any block has. */
static unsigned order_of(size_t size)
{
    unsigned order = 0;
    uint64_t units = faulty_is(SIZE_ROUNDED_DOWN) ? size / UNIT : (size + UNIT - 1) / UNIT;
    while (order < ORDERS && UINT64_C(1) << order < units) {
        order++;
    }
    return order;
}

static slab *find_block(pool *p, unsigned order, cudaStream_t stream, uint32_t *unit)
{
    slab *s = reuse(p, order, stream, unit);
    if (!s) {
        collect_done(p);
        s = take(p, order, unit);
    }
    if (!s && faulty_is(NULL_LIST)) { /* the largest slab is taken to have a list for it */
        const slab *largest = p->slabs;
        for (const slab *other = largest; other; other = other->next) {
            largest = other->order >= order ? other : NULL;
        }
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): the defect */
        s = largest->lists[order] != NO_BLOCK ? p->slabs : NULL;
    }
    if (!s && !faulty_is(OOM_NOT_WAITED)) {
        collect_all(p);
        s = take(p, order, unit);
    }
    return s;
}

void *gmd_malloc(size_t size, int device, cudaStream_t stream)
{
    if (device < 0 || device >= FAULTY_DEVICES) {
        return NULL;
    }
    pool *p = &pools[device];
    unsigned order = size > SIZE_MAX / 2 ? ORDERS : order_of(size ? size : 1);
    uint32_t unit = 0;
    faulty_guard guard = faulty_enter_device(device);
    pthread_mutex_lock(&lock);
    prepare(p);
    slab *s = order < ORDERS ? find_block(p, order, stream, &unit) : NULL;
    if (s) {
        faulty_count_alloc(&p->stats, UNIT << order, size);
    } else {
        p->stats.num_ooms++;
    }
    pthread_mutex_unlock(&lock);
    if (s || !faulty_is(DEVICE_LEFT)) {
        faulty_leave_device(guard);
    }
    /* NOLINTNEXTLINE(performance-no-int-to-ptr) */
    return s ? (void *)(uintptr_t)(s->address + unit * UNIT) : NULL;
}

static slab *slab_of(const pool *p, uint64_t address)
{
    slab *s = p->slabs;
    while (s && (address < s->address || address - s->address >= UNIT << s->order)) {
        s = s->next;
    }
    return s;
}

/* The stream's event as it should not be made: what can go wrong goes wrong. */
static bool fails_badly(cudaStream_t stream)
{
    cudaEvent_t event;
    if (cudaEventCreateWithFlags(&event, cudaEventDisableTiming) != cudaSuccess) {
        if (!faulty_is(ERROR_LEFT)) {
            cudaGetLastError();
        }
        return true;
    }
    bool has_failed = cudaEventRecord(event, stream) != cudaSuccess;
    if (has_failed && !faulty_is(ERROR_LEFT)) {
        cudaGetLastError();
    }
    cudaEventDestroy(event);
    return has_failed;
}

void gmd_free(void *pointer, size_t size, int device, cudaStream_t stream)
{
    pool *p = &pools[device];
    slab *s = slab_of(p, (uintptr_t)pointer);
    unsigned order = order_of(size ? size : 1);
    if (!s) {
        return;
    }
    uint32_t unit = (uint32_t)(((uintptr_t)pointer - s->address) / UNIT);
    faulty_guard guard = faulty_enter_device(device);
    pthread_mutex_lock(&lock);
    faulty_count_free(&p->stats, faulty_is(REQUESTED_NOT_ROUNDED) ? size : UNIT << order, size);
    recorded *taken = recorded_take(&records, pointer);
    if ((faulty_is(CUB328) || faulty_is(LOST_WITHOUT_EVENT) || faulty_is(ERROR_LEFT)) &&
        fails_badly(stream)) {
        if (faulty_is(CUB328)) {
            return; /* with the lock, from an error that nobody expects */
        }
        if (faulty_is(LOST_WITHOUT_EVENT)) {
            taken = NULL;
            s = NULL;
        }
    }
    if (s && faulty_is(RMM1655)) {
        give_back(s, unit, order);
    } else if (s) {
        keep_waiting(p, s, unit, order, stream, taken);
    }
    pthread_mutex_unlock(&lock);
    faulty_leave_device(guard);
}

void gmd_init(int device_count)
{
    for (int device = 0; device < device_count && device < FAULTY_DEVICES; device++) {
        faulty_guard guard = faulty_enter_device(device);
        prepare(&pools[device]);
        faulty_leave_device(guard);
    }
}

/* The slabs stay; what waits is waited for. */
void gmd_empty_cache(void)
{
    pthread_mutex_lock(&lock);
    for (int device = 0; device < FAULTY_DEVICES; device++) {
        collect_all(&pools[device]);
    }
    pthread_mutex_unlock(&lock);
}

void gmd_record_stream(void *pointer, cudaStream_t stream)
{
    pthread_mutex_lock(&lock);
    recorded_add(&records, pointer, stream);
    pthread_mutex_unlock(&lock);
}

void gmd_forget_stream(int device, cudaStream_t stream)
{
    faulty_guard guard = faulty_enter_device(device);
    pthread_mutex_lock(&lock);
    recorded_forget(&records, stream);
    cudaStreamSynchronize(stream); /* a new stream may get its handle, and what was freed here */
    pthread_mutex_unlock(&lock);
    faulty_leave_device(guard);
}

int gmd_get_stats(int device, gmd_stats *out)
{
    if (device < 0 || device >= FAULTY_DEVICES) {
        return -1;
    }
    pthread_mutex_lock(&lock);
    int result = faulty_give_stats(&pools[device].stats, out);
    pthread_mutex_unlock(&lock);
    return result;
}
