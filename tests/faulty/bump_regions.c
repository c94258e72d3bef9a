/* bump_regions.c - regions of 2 MiB that threads cut blocks from without a lock: one word has a
 * region's generation, the units that were handed out, its live blocks, and whether it is retired;
 * each change is a compare-and-swap of that word. A stream has a current region. One that is full
 * is retired; who makes the last block of a retired region free (or retires one without any) puts
 * it into the stream's ring, a bounded queue whose places have sequence numbers, from where it
 * serves that stream again. Larger blocks, and those of more streams than there are lanes, have
 * device memory of their own.
 *
 * A lock is taken for what is rare: new memory, new streams, and giving regions back, for which
 * current regions are retired and rings are emptied. cudaFree waits for all work.
 *
 * Compiled with -fsanitize=thread, so that gmd sees its atomic operations (driver/tsan).
 *
 * Defects, each with what goes wrong; docs/planted-defects.md has the rest. */
#include "faulty.h"

#include "recorded.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
    NO_GENERATION, /* the word has no generation: a region that was served anew looks as before */
    RETIRE_SPLIT,  /* the word of a full region is read, and then written with its mark */
    LAST_TWICE,    /* whether a free was the last one is asked of the word again */
    PLACE_EARLY,   /* a place of the ring is handed on before the region stands in it */
    TWO_CURRENT,   /* a new region is made the current one without a look at what is there */
    RELEASE_LOOKS, /* a current region that looks empty goes back before it is retired */
    LIVE_BYTE,     /* a region's live blocks are counted in 8 bits */
    RING_WRAPS,    /* a full ring drops its oldest region */
    THREAD_NOTES,  /* from the ninth thread on notes of recorded streams are not looked for */
};
const char *const faulty_defects[] = {
    "no_generation", "retire_split", "last_twice", "place_early",  "two_current",
    "release_looks", "live_byte",    "ring_wraps", "thread_notes", NULL};

#define UNIT    ((uint64_t)512)
#define REGION  ((uint64_t)2 << 20)
#define PAGE    ((uint64_t)2 << 20)
#define CUT_MAX (REGION / 4) /* the largest block that is cut from a region */
enum { LANES = 24, REGIONS = 4096, PLACES = 32, NONE = 0, KEPT = -1 };

/* The word: generation (16 bits), retired (1), live (23), used units (24). */
#define USED       ((uint64_t)0xffffff)
#define LIVE_ONE   ((uint64_t)1 << 24)
#define LIVE       ((uint64_t)0x7fffff << 24)
#define RETIRED    ((uint64_t)1 << 47)
#define GENERATION ((uint64_t)1 << 48)

typedef struct region {
    _Atomic uint64_t word;
    _Atomic uint64_t address; /* 0: there is none here */
    _Atomic uint64_t bytes;
    _Atomic int lane; /* LANES: a block's own; KEPT: the device did not take it back */
} region;

typedef struct place {
    _Atomic uint32_t turn; /* Vyukov's bounded queue */
    _Atomic uint32_t region;
} place;

typedef struct lane {
    _Atomic uint64_t key;     /* the stream's handle + 1; 0: nobody's */
    _Atomic uint64_t current; /* generation << 32 | region */
    _Atomic uint32_t put, taken;
    place places[PLACES];
} lane;

typedef struct heap {
    region regions[REGIONS]; /* the first one is none */
    _Atomic uint32_t region_count;
    lane lanes[LANES];
    _Atomic bool is_used;
    uint64_t limit; /* of reserved bytes; 0: none */
    gmd_stats segments;
    _Atomic uint64_t blocks, bytes, requested, bytes_peak, refused;
} heap;

static heap heaps[FAULTY_DEVICES];
static recorded *notes;
static _Atomic uint32_t note_count, thread_count;
static _Thread_local uint32_t thread;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_done(cudaError_t answer)
{
    if (answer != cudaSuccess) {
        cudaGetLastError();
    }
    return answer == cudaSuccess;
}

/* --- rings --------------------------------------------------------------------------------- */

/* False: it is full. */
static bool put_region(lane *l, uint32_t number)
{
    uint32_t at = atomic_load(&l->put);
    for (;;) {
        place *p = &l->places[at % PLACES];
        int32_t ahead = (int32_t)(atomic_load(&p->turn) - at);
        if (ahead < 0 && faulty_is(RING_WRAPS)) {
            atomic_fetch_add(&l->taken, 1);
            atomic_store(&p->turn, at);
        } else if (ahead < 0) {
            return false;
        } else if (ahead > 0) {
            at = atomic_load(&l->put);
        } else if (atomic_compare_exchange_weak(&l->put, &at, at + 1)) {
            if (faulty_is(PLACE_EARLY)) {
                atomic_store(&p->turn, at + 1);
            }
            atomic_store(&p->region, number);
            atomic_store(&p->turn, at + 1);
            return true;
        }
    }
}

static uint32_t take_region(lane *l)
{
    uint32_t at = atomic_load(&l->taken);
    for (;;) {
        place *p = &l->places[at % PLACES];
        int32_t ahead = (int32_t)(atomic_load(&p->turn) - (at + 1));
        if (ahead < 0) {
            return NONE;
        }
        if (ahead > 0) {
            at = atomic_load(&l->taken);
        } else if (atomic_compare_exchange_weak(&l->taken, &at, at + 1)) {
            uint32_t number = atomic_load(&p->region);
            atomic_store(&p->turn, at + PLACES);
            return number;
        }
    }
}

/* --- regions ------------------------------------------------------------------------------- */

static uint64_t next_generation(uint64_t word)
{
    return faulty_is(NO_GENERATION) ? 0 : (word & ~(GENERATION - 1)) + GENERATION;
}

static bool is_empty(uint64_t word)
{
    uint64_t live = word & LIVE;
    live = faulty_is(LIVE_BYTE) ? live & 0xff * LIVE_ONE : live;
    return !live && word & RETIRED;
}

/* Under the lock. */
static uint32_t add_region(heap *h, uint64_t bytes, int lane_index)
{
    uint32_t number = 1;
    void *memory = NULL;
    while (number < REGIONS && atomic_load(&h->regions[number].address)) {
        number++;
    }
    if (number == REGIONS || (h->limit && h->segments.reserved_bytes + bytes > h->limit) ||
        !is_done(cudaMalloc(&memory, bytes))) {
        return NONE;
    }
    region *r = &h->regions[number];
    atomic_store(&r->bytes, bytes);
    atomic_store(&r->lane, lane_index);
    atomic_store(&r->word, next_generation(atomic_load(&r->word)));
    atomic_store(&r->address, (uintptr_t)memory);
    if (number >= atomic_load(&h->region_count)) {
        atomic_store(&h->region_count, number + 1);
    }
    faulty_count_segment(&h->segments, bytes);
    return number;
}

/* Under the lock. */
static void release_region(heap *h, uint32_t number)
{
    region *r = &h->regions[number];
    uint64_t address = atomic_load(&r->address);
    atomic_store(&r->word, next_generation(atomic_load(&r->word)) | RETIRED);
    if (is_done(cudaFree((void *)(uintptr_t)address))) { /* NOLINT(performance-no-int-to-ptr) */
        faulty_count_segment_freed(&h->segments, atomic_load(&r->bytes));
        atomic_store(&r->address, 0);
    } else {
        atomic_store(&r->lane, KEPT);
    }
}

/* Nothing in it is live, and nobody cuts from it. */
static void recycle(heap *h, uint32_t number, int device)
{
    int index = atomic_load(&h->regions[number].lane);
    if (index < LANES && atomic_load(&h->lanes[index].key) &&
        put_region(&h->lanes[index], number)) {
        return;
    }
    faulty_guard guard = faulty_enter_device(device);
    pthread_mutex_lock(&lock);
    release_region(h, number);
    pthread_mutex_unlock(&lock);
    faulty_leave_device(guard);
}

/* True: it is the caller's to recycle. */
static bool retire(region *r)
{
    uint64_t word = atomic_load(&r->word);
    if (faulty_is(RETIRE_SPLIT)) {
        atomic_store(&r->word, word | RETIRED);
        return !(word & RETIRED) && is_empty(word | RETIRED);
    }
    while (!(word & RETIRED)) {
        if (atomic_compare_exchange_weak(&r->word, &word, word | RETIRED)) {
            return is_empty(word | RETIRED);
        }
    }
    return false;
}

/* 0: there is no room, or it is another generation. */
static uint64_t cut(region *r, uint64_t generation, uint64_t units)
{
    uint64_t word = atomic_load(&r->word);
    for (;;) {
        uint64_t address = atomic_load(&r->address);
        uint64_t used = word & USED;
        if (word >> 48 != generation || word & RETIRED || !address ||
            (used + units) * UNIT > REGION) {
            return 0;
        }
        if (atomic_compare_exchange_weak(&r->word, &word, word + units + LIVE_ONE)) {
            return address + used * UNIT;
        }
    }
}

static uint64_t as_current(heap *h, uint32_t number)
{
    return atomic_load(&h->regions[number].word) >> 48 << 32 | number;
}

/* --- lanes --------------------------------------------------------------------------------- */

static int find_lane(heap *h, cudaStream_t stream)
{
    uint64_t key = (uint64_t)(uintptr_t)stream + 1;
    int i = 0;
    while (i < LANES && atomic_load(&h->lanes[i].key) != key) {
        i++;
    }
    return i;
}

static int lane_of(heap *h, cudaStream_t stream)
{
    int index = find_lane(h, stream);
    if (index < LANES) {
        return index;
    }
    pthread_mutex_lock(&lock);
    index = find_lane(h, stream); /* another thread may have added it */
    for (int i = 0; index == LANES && i < LANES; i++) {
        lane *l = &h->lanes[i];
        if (!atomic_load(&l->key)) {
            for (uint32_t k = 0; k < PLACES; k++) {
                atomic_store(&l->places[k].turn, k);
            }
            atomic_store(&l->put, 0);
            atomic_store(&l->taken, 0);
            atomic_store(&l->key, (uint64_t)(uintptr_t)stream + 1);
            index = i;
        }
    }
    pthread_mutex_unlock(&lock);
    return index;
}

/* Under the lock: what no block lies in goes back. */
static void release_lane(heap *h, lane *l)
{
    uint32_t current = (uint32_t)atomic_exchange(&l->current, NONE), number;
    bool looks_empty =
        current && faulty_is(RELEASE_LOOKS) && !(atomic_load(&h->regions[current].word) & LIVE);
    if (current && (looks_empty || retire(&h->regions[current]))) {
        release_region(h, current);
    }
    while ((number = take_region(l))) {
        release_region(h, number);
    }
}

static void release_all(heap *h)
{
    for (int i = 0; i < LANES; i++) {
        if (atomic_load(&h->lanes[i].key)) {
            release_lane(h, &h->lanes[i]);
        }
    }
    for (uint32_t i = 1; i < atomic_load(&h->region_count); i++) {
        if (atomic_load(&h->regions[i].address) && atomic_load(&h->regions[i].lane) == KEPT) {
            release_region(h, i);
        }
    }
}

static uint32_t grow(heap *h, uint64_t bytes, int lane_index, int device)
{
    faulty_guard guard = faulty_enter_device(device);
    pthread_mutex_lock(&lock);
    atomic_store(&h->is_used, true);
    uint32_t number = add_region(h, bytes, lane_index);
    if (!number) {
        release_all(h);
        number = add_region(h, bytes, lane_index);
    }
    pthread_mutex_unlock(&lock);
    faulty_leave_device(guard);
    return number;
}

/* A region of the ring, empty, is the stream's again. */
static void renew(region *r)
{
    atomic_store(&r->word, next_generation(atomic_load(&r->word)));
}

/* In place of `full`, which the stream had. False: no memory. */
static bool change_current(heap *h, int index, uint64_t full, int device)
{
    lane *l = &h->lanes[index];
    if (full && !atomic_compare_exchange_strong(&l->current, &full, NONE)) {
        return true; /* somebody else has changed it */
    }
    if (full && retire(&h->regions[(uint32_t)full])) {
        recycle(h, (uint32_t)full, device);
    }
    uint64_t none = NONE;
    uint32_t number = take_region(l);
    if (number) {
        renew(&h->regions[number]);
    } else {
        number = grow(h, REGION, index, device);
    }
    if (!number) {
        return atomic_load(&l->current); /* another thread's */
    }
    if (faulty_is(TWO_CURRENT)) {
        atomic_store(&l->current, as_current(h, number));
    } else if (!atomic_compare_exchange_strong(&l->current, &none, as_current(h, number)) &&
               retire(&h->regions[number])) {
        recycle(h, number, device);
    }
    return true;
}

/* --- the ABI ------------------------------------------------------------------------------- */

static void count_block(heap *h, uint64_t bytes, uint64_t requested)
{
    atomic_fetch_add(&h->blocks, 1);
    atomic_fetch_add(&h->requested, requested);
    uint64_t sum = atomic_fetch_add(&h->bytes, bytes) + bytes, peak = atomic_load(&h->bytes_peak);
    while (sum > peak && !atomic_compare_exchange_weak(&h->bytes_peak, &peak, sum)) {
    }
}

static uint64_t round_size(uint64_t size)
{
    uint64_t bytes = (size + UNIT - 1) / UNIT * UNIT;
    return bytes ? bytes : UNIT;
}

static uint64_t take_cut(heap *h, uint64_t bytes, int index, int device)
{
    for (;;) {
        uint64_t current = atomic_load(&h->lanes[index].current);
        region *r = &h->regions[(uint32_t)current];
        uint64_t address = current ? cut(r, current >> 32, bytes / UNIT) : 0;
        if (address || !change_current(h, index, current, device)) {
            return address;
        }
    }
}

static uint64_t take_own(heap *h, uint64_t bytes, int device)
{
    uint32_t number = grow(h, bytes, LANES, device);
    if (!number) {
        return 0;
    }
    atomic_fetch_add(&h->regions[number].word, RETIRED + LIVE_ONE);
    return atomic_load(&h->regions[number].address);
}

void *gmd_malloc(size_t size, int device, cudaStream_t stream)
{
    if (device < 0 || device >= FAULTY_DEVICES) {
        return NULL;
    }
    heap *h = &heaps[device];
    uint64_t bytes = size > SIZE_MAX / 2 ? 0 : round_size(size), address = 0;
    int index = bytes > CUT_MAX ? LANES : lane_of(h, stream);
    if (bytes) {
        address = index < LANES ? take_cut(h, bytes, index, device) : take_own(h, bytes, device);
    }
    if (!address) {
        atomic_fetch_add(&h->refused, 1);
        return NULL;
    }
    count_block(h, bytes, size);
    return (void *)(uintptr_t)address; /* NOLINT(performance-no-int-to-ptr) */
}

static uint32_t find_region(heap *h, uint64_t address)
{
    uint32_t count = atomic_load(&h->region_count);
    for (uint32_t i = 1; i < count; i++) {
        uint64_t start = atomic_load(&h->regions[i].address);
        if (start && address - start < atomic_load(&h->regions[i].bytes) &&
            start == atomic_load(&h->regions[i].address)) { /* else another's bytes were read */
            return i;
        }
    }
    return NONE;
}

/* True: it was the last one of a retired region. */
static bool leave_region(region *r)
{
    uint64_t word = atomic_fetch_sub(&r->word, LIVE_ONE) - LIVE_ONE;
    return is_empty(faulty_is(LAST_TWICE) ? atomic_load(&r->word) : word);
}

static bool looks_for_notes(void)
{
    if (!thread) {
        thread = atomic_fetch_add(&thread_count, 1) + 1;
    }
    return atomic_load(&note_count) && !(faulty_is(THREAD_NOTES) && thread > 8);
}

/* The stream of the free waits for those that were recorded, and the region's stream for it. */
static void order_free(heap *h, const void *pointer, const region *r, cudaStream_t stream)
{
    int index = atomic_load(&r->lane);
    uint64_t key = index < LANES ? atomic_load(&h->lanes[index].key) : 0;
    bool is_other = key && key != (uint64_t)(uintptr_t)stream + 1;
    if (!is_other && !looks_for_notes()) {
        return;
    }
    pthread_mutex_lock(&lock);
    recorded *taken = recorded_take(&notes, pointer);
    for (const recorded *t = taken; t; t = t->next) {
        atomic_fetch_sub(&note_count, 1);
    }
    recorded_wait(taken, stream);
    if (is_other && !is_done(cudaStreamSynchronize(stream))) {
        is_done(cudaDeviceSynchronize());
    }
    pthread_mutex_unlock(&lock);
}

void gmd_free(void *pointer, size_t size, int device, cudaStream_t stream)
{
    if (!pointer || device < 0 || device >= FAULTY_DEVICES) {
        return;
    }
    heap *h = &heaps[device];
    uint32_t number = find_region(h, (uintptr_t)pointer);
    if (!number) {
        return;
    }
    region *r = &h->regions[number];
    faulty_guard guard = faulty_enter_device(device);
    order_free(h, pointer, r, stream);
    faulty_leave_device(guard);
    atomic_fetch_sub(&h->blocks, 1);
    atomic_fetch_sub(&h->requested, size);
    atomic_fetch_sub(&h->bytes, round_size(size));
    if (leave_region(r)) {
        recycle(h, number, device);
    }
}

EXPORT void gmd_record_stream(void *pointer, cudaStream_t stream);
void gmd_record_stream(void *pointer, cudaStream_t stream)
{
    pthread_mutex_lock(&lock);
    const recorded *before = notes;
    recorded_add(&notes, pointer, stream);
    atomic_fetch_add(&note_count, notes != before);
    pthread_mutex_unlock(&lock);
}

/* No other call is under way. Its lane goes with its ring; live blocks' regions then go back to the
 * device with their last one. */
EXPORT void gmd_forget_stream(int device, cudaStream_t stream);
void gmd_forget_stream(int device, cudaStream_t stream)
{
    if (device < 0 || device >= FAULTY_DEVICES) {
        return;
    }
    heap *h = &heaps[device];
    faulty_guard guard = faulty_enter_device(device);
    pthread_mutex_lock(&lock);
    recorded_forget(&notes, stream);
    int index = find_lane(h, stream);
    if (index < LANES) {
        release_lane(h, &h->lanes[index]);
        for (uint32_t i = 1; i < atomic_load(&h->region_count); i++) {
            int own = index;
            atomic_compare_exchange_strong(&h->regions[i].lane, &own, LANES); /* KEPT stays */
        }
        atomic_store(&h->lanes[index].key, 0);
    }
    pthread_mutex_unlock(&lock);
    faulty_leave_device(guard);
}

void gmd_empty_cache(void)
{
    pthread_mutex_lock(&lock);
    for (int device = 0; device < FAULTY_DEVICES; device++) {
        if (atomic_load(&heaps[device].is_used)) {
            faulty_guard guard = faulty_enter_device(device);
            release_all(&heaps[device]);
            faulty_leave_device(guard);
        }
    }
    pthread_mutex_unlock(&lock);
}

void gmd_set_memory_fraction(double fraction, int device)
{
    if (device < 0 || device >= FAULTY_DEVICES) {
        return;
    }
    pthread_mutex_lock(&lock);
    faulty_limit(fraction, device, &heaps[device].limit);
    pthread_mutex_unlock(&lock);
}

EXPORT uint64_t gmd_device_request(size_t size);
uint64_t gmd_device_request(size_t size)
{
    if (size > SIZE_MAX / 2) {
        return size;
    }
    uint64_t bytes = round_size(size);
    return bytes > CUT_MAX ? (bytes + PAGE - 1) / PAGE * PAGE : REGION;
}

int gmd_get_stats(int device, gmd_stats *out)
{
    if (device < 0 || device >= FAULTY_DEVICES) {
        return -1;
    }
    heap *h = &heaps[device];
    pthread_mutex_lock(&lock);
    gmd_stats s = h->segments;
    pthread_mutex_unlock(&lock);
    s.allocated_bytes = atomic_load(&h->bytes);
    s.allocated_bytes_peak = atomic_load(&h->bytes_peak);
    s.requested_bytes = atomic_load(&h->requested);
    s.allocation_count = atomic_load(&h->blocks);
    s.num_ooms = atomic_load(&h->refused);
    return faulty_give_stats(&s, out);
}
