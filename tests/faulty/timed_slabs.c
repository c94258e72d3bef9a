/* timed_slabs.c - slabs of equal blocks, a power of two each; a larger block has a slab of its own,
 * and one of GOES_BACK and more goes back to the device at its free. A slab without live blocks
 * goes back when it has been idle for ten seconds of the host's clock, at whatever call comes next
 * then. A free block serves its own stream at once, and another one behind a wait.
 *
 * Frees of what is no live block are ignored (promise `misuse`). The slabs that were looked up last
 * are remembered, and so are the last blocks that were freed, for whoever looks for a second free
 * in a debugger.
 *
 * Defects, each with what goes wrong; docs/planted-defects.md has the rest. */
#include "faulty.h"

#include "recorded.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum {
    NOTES_KEPT,     /* what was recorded of a block that goes back at its free is not freed */
    BOOKS_KEPT,     /* the books of the blocks of a slab that goes back are not freed */
    LOG_GROWS,      /* the list of freed blocks is never cut */
    TRIM_LIVE,      /* a slab that was idle once goes back after ten seconds, in use or not */
    TRIM_UNCOUNTED, /* what goes back after ten seconds is not counted */
    TRIM_LOCKED,    /* what gives slabs back after ten seconds leaves its lock held */
    SLAB_FOUND,     /* a slab that went back is still found by its address */
    FREES_UNKNOWN,  /* memory of the device that is in no slab is given back to the device */
};
const char *const faulty_defects[] = {"notes_kept", "books_kept",     "log_grows",
                                      "trim_live",  "trim_uncounted", "trim_locked",
                                      "slab_found", "frees_unknown",  NULL};

#define UNIT      ((uint64_t)512)
#define SLAB      ((uint64_t)2 << 20)
#define LARGEST   (SLAB / 2) /* block that shares a slab */
#define GOES_BACK ((uint64_t)4 << 20)
#define IDLE_MOST 10 /* seconds */
#define FOUND_MAX 8
#define LOG_MAX   64

typedef struct block {
    cudaStream_t stream; /* the last one that it was freed on */
    uint64_t requested;
    bool is_live, is_over; /* free, and no work on it can be left */
} block;

typedef struct slab slab;
struct slab {
    slab *next;
    uint64_t address, bytes, unit;
    uint32_t count, live;
    block *blocks;
    time_t idle_since; /* of CLOCK_MONOTONIC; 0: in use */
};

typedef struct found { /* that was looked up */
    uint64_t begin, end;
    slab *slab;
} found;

typedef struct heap {
    slab *slabs;
    found found[FOUND_MAX];
    gmd_stats stats;
} heap;

static heap heaps[FAULTY_DEVICES];
static slab *spare; /* slabs that went back, to be used for others */
static recorded *notes;
static uint64_t *freed; /* the last LOG_MAX */
static size_t freed_count, freed_room;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, trim_lock = PTHREAD_MUTEX_INITIALIZER;

EXPORT void gmd_record_stream(void *pointer, cudaStream_t stream);
EXPORT void gmd_forget_stream(int device, cudaStream_t stream);
EXPORT unsigned gmd_promises(void);

static bool is_ok(cudaError_t answer)
{
    if (answer != cudaSuccess) {
        cudaGetLastError();
    }
    return answer == cudaSuccess;
}

static void *place(uint64_t address)
{
    return (void *)(uintptr_t)address; /* NOLINT(performance-no-int-to-ptr) */
}

static time_t now(void)
{
    struct timespec t = {0};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec;
}

/* --- slabs --------------------------------------------------------------------------------- */

static slab *new_books(uint64_t unit, uint64_t bytes)
{
    slab *s = spare;
    if (s) {
        spare = s->next;
    } else {
        s = malloc(sizeof *s);
    }
    block *blocks = calloc(bytes / unit, sizeof *blocks);
    if (!s || !blocks) {
        abort();
    }
    *s = (slab){.bytes = bytes, .unit = unit, .count = (uint32_t)(bytes / unit), .blocks = blocks};
    for (uint32_t i = 0; i < s->count; i++) {
        blocks[i].is_over = true;
    }
    return s;
}

static slab *add_slab(heap *h, uint64_t unit)
{
    uint64_t bytes = unit > LARGEST ? unit : SLAB;
    void *memory = faulty_take(bytes);
    if (!memory) {
        return NULL;
    }
    slab *s = new_books(unit, bytes);
    s->address = (uintptr_t)memory;
    s->next = h->slabs;
    s->idle_since = now();
    h->slabs = s;
    faulty_count_segment(&h->stats, bytes);
    return s;
}

static void forget_found(heap *h, const slab *s)
{
    for (int i = 0; i < FOUND_MAX; i++) {
        if (h->found[i].slab == s) {
            h->found[i] = (found){0};
        }
    }
}

/* cudaFree waits for all work. False: the device refused. */
static bool release(heap *h, slab **link, bool is_counted)
{
    slab *s = *link;
    if (!is_ok(cudaFree(place(s->address)))) {
        return false;
    }
    *link = s->next;
    if (is_counted) {
        faulty_count_segment_freed(&h->stats, s->bytes);
    }
    if (!faulty_is(SLAB_FOUND)) {
        forget_found(h, s);
    }
    if (!faulty_is(BOOKS_KEPT)) {
        free(s->blocks);
    }
    *s = (slab){.next = spare};
    spare = s;
    return true;
}

static void release_idle(heap *h)
{
    for (slab **link = &h->slabs; *link;) {
        if ((*link)->live || !release(h, link, true)) {
            link = &(*link)->next;
        }
    }
}

/* Those that have been idle for long. */
static void trim(heap *h)
{
    time_t before = now() - IDLE_MOST;
    bool has_released = false;
    pthread_mutex_lock(&trim_lock);
    for (slab **link = &h->slabs; *link;) {
        const slab *s = *link;
        bool is_idle =
            s->idle_since && s->idle_since < before && (!s->live || faulty_is(TRIM_LIVE));
        if (!is_idle || !release(h, link, !faulty_is(TRIM_UNCOUNTED))) {
            link = &(*link)->next;
        } else {
            has_released = true;
        }
    }
    if (!has_released || !faulty_is(TRIM_LOCKED)) {
        pthread_mutex_unlock(&trim_lock);
    }
}

static slab *find(heap *h, uint64_t address, uint64_t *begin)
{
    found *f = &h->found[address / SLAB % FOUND_MAX];
    if (f->slab && address - f->begin < f->end - f->begin) {
        *begin = f->begin;
        return f->slab;
    }
    slab *s = h->slabs;
    while (s && address - s->address >= s->bytes) {
        s = s->next;
    }
    if (s) {
        *f = (found){.begin = s->address, .end = s->address + s->bytes, .slab = s};
        *begin = s->address;
    }
    return s;
}

/* --- blocks -------------------------------------------------------------------------------- */

/* What was done on `before` so far comes before what `stream` does from now on. */
static void order(cudaStream_t before, cudaStream_t stream)
{
    cudaEvent_t event = recorded_event(before);
    if (event) {
        if (!is_ok(cudaStreamWaitEvent(stream, event, 0))) {
            faulty_wait(event);
        }
        is_ok(cudaEventDestroy(event));
    }
}

static block *find_free(const heap *h, uint64_t unit, cudaStream_t stream, bool is_any, slab **in)
{
    for (slab *s = h->slabs; s; s = s->next) {
        for (uint32_t i = 0; s->unit == unit && s->live < s->count && i < s->count; i++) {
            block *b = &s->blocks[i];
            if (!b->is_live && (b->is_over || b->stream == stream || is_any)) {
                *in = s;
                return b;
            }
        }
    }
    return NULL;
}

static block *take(heap *h, uint64_t unit, cudaStream_t stream, slab **in)
{
    block *b = find_free(h, unit, stream, false, in);
    if (!b) {
        b = find_free(h, unit, stream, true, in);
        if (b) {
            order(b->stream, stream);
        }
    }
    if (!b && ((*in = add_slab(h, unit)) || (release_idle(h), *in = add_slab(h, unit)))) {
        b = (*in)->blocks;
    }
    return b;
}

static uint64_t unit_of(uint64_t size)
{
    uint64_t unit = UNIT;
    while (unit < size && unit < LARGEST) {
        unit *= 2;
    }
    return size > LARGEST ? (size + SLAB - 1) / SLAB * SLAB : unit;
}

static void *allocate(heap *h, uint64_t size, cudaStream_t stream)
{
    slab *s = NULL;
    trim(h);
    block *b = size <= SIZE_MAX / 2 ? take(h, unit_of(size), stream, &s) : NULL;
    if (!b) {
        h->stats.num_ooms++;
        return NULL;
    }
    *b = (block){.stream = stream, .requested = size, .is_live = true};
    s->live++;
    if (!faulty_is(TRIM_LIVE)) {
        s->idle_since = 0;
    }
    faulty_count_alloc(&h->stats, s->unit, size);
    return place(s->address + (uint64_t)(b - s->blocks) * s->unit);
}

static void note_freed(uint64_t address)
{
    size_t room = freed_room ? freed_room * 2 : LOG_MAX;
    if (freed_count == freed_room && (!freed_room || faulty_is(LOG_GROWS))) {
        uint64_t *wider = realloc(freed, room * sizeof *freed);
        if (!wider) {
            return;
        }
        freed = wider;
        freed_room = room;
    }
    freed_count = freed_count == freed_room ? 0 : freed_count;
    freed[freed_count++] = address;
}

static void forget_notes(recorded *taken)
{
    while (taken) {
        recorded *r = taken;
        taken = r->next;
        if (r->event) {
            is_ok(cudaEventDestroy(r->event));
        }
        if (!faulty_is(NOTES_KEPT)) {
            free(r);
        }
    }
}

/* What device memory it is, which is in no slab, somebody else knows. */
static void refuse(uint64_t address)
{
    struct cudaPointerAttributes known = {0};
    if (faulty_is(FREES_UNKNOWN) && is_ok(cudaPointerGetAttributes(&known, place(address))) &&
        known.type == cudaMemoryTypeDevice) {
        is_ok(cudaFree(place(address)));
    }
}

static bool go_back(heap *h, const slab *s)
{
    slab **link = &h->slabs;
    while (*link != s) {
        link = &(*link)->next;
    }
    return release(h, link, true);
}

static void give_back(heap *h, const void *pointer, cudaStream_t stream)
{
    uint64_t address = (uintptr_t)pointer, begin = 0;
    slab *s = find(h, address, &begin);
    if (!s) {
        refuse(address);
        return;
    }
    uint64_t index = s->unit ? (address - begin) / s->unit : UINT64_MAX; /* 0: no slab any more */
    if (index >= s->count || begin + index * s->unit != address || !s->blocks[index].is_live) {
        return;
    }
    block *b = &s->blocks[index];
    recorded *taken = recorded_take(&notes, pointer);
    faulty_count_free(&h->stats, s->unit, b->requested);
    *b = (block){.stream = stream};
    s->live--;
    s->idle_since = s->live ? s->idle_since : now();
    note_freed(address);
    if (s->bytes < GOES_BACK || !go_back(h, s)) {
        recorded_wait(taken, stream);
    } else { /* cudaFree has waited */
        forget_notes(taken);
    }
}

/* --- the ABI ------------------------------------------------------------------------------- */

void *gmd_malloc(size_t size, int device, cudaStream_t stream)
{
    if (!size || device < 0 || device >= FAULTY_DEVICES) {
        return NULL;
    }
    faulty_guard guard = faulty_enter_device(device);
    pthread_mutex_lock(&lock);
    void *memory = allocate(&heaps[device], size, stream);
    pthread_mutex_unlock(&lock);
    faulty_leave_device(guard);
    return memory;
}

void gmd_free(void *pointer, size_t size, int device, cudaStream_t stream)
{
    (void)size;
    if (!pointer || device < 0 || device >= FAULTY_DEVICES) {
        return;
    }
    faulty_guard guard = faulty_enter_device(device);
    pthread_mutex_lock(&lock);
    give_back(&heaps[device], pointer, stream);
    trim(&heaps[device]);
    pthread_mutex_unlock(&lock);
    faulty_leave_device(guard);
}

void gmd_record_stream(void *pointer, cudaStream_t stream)
{
    pthread_mutex_lock(&lock);
    recorded_add(&notes, pointer, stream);
    pthread_mutex_unlock(&lock);
}

void gmd_forget_stream(int device, cudaStream_t stream)
{
    if (device < 0 || device >= FAULTY_DEVICES) {
        return;
    }
    faulty_guard guard = faulty_enter_device(device);
    pthread_mutex_lock(&lock);
    recorded_forget(&notes, stream);
    bool is_over = is_ok(cudaStreamSynchronize(stream)) || is_ok(cudaDeviceSynchronize());
    for (slab *s = heaps[device].slabs; s && is_over; s = s->next) {
        for (uint32_t i = 0; i < s->count; i++) {
            s->blocks[i].is_over |= !s->blocks[i].is_live && s->blocks[i].stream == stream;
        }
    }
    pthread_mutex_unlock(&lock);
    faulty_leave_device(guard);
}

void gmd_empty_cache(void)
{
    pthread_mutex_lock(&lock);
    for (int device = 0; device < FAULTY_DEVICES; device++) {
        if (heaps[device].slabs) {
            faulty_guard guard = faulty_enter_device(device);
            release_idle(&heaps[device]);
            faulty_leave_device(guard);
        }
    }
    pthread_mutex_unlock(&lock);
}

int gmd_get_stats(int device, gmd_stats *out)
{
    if (device < 0 || device >= FAULTY_DEVICES) {
        return -1;
    }
    pthread_mutex_lock(&lock);
    int result = faulty_give_stats(&heaps[device].stats, out);
    pthread_mutex_unlock(&lock);
    return result;
}

unsigned gmd_promises(void)
{
    return GMD_PROMISE_MISUSE;
}
