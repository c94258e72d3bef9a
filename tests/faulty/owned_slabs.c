/* owned_slabs.c - slabs of 2 MiB with blocks of one size for one stream. A slab is a thread's,
 * which cuts its blocks; a free by whoever cannot have the slab for itself pushes the block onto
 * the slab's list of returns, without a lock, and its owner collects that as a whole. For the time
 * of a request a thread marks the slab that it works in as busy; short of memory, it works in
 * others' slabs, too. A larger block has a slab of its own, which goes back with its free.
 *
 * A lock is taken for what is rare: new slabs, and giving back those without a live block. The
 * books of a slab are a slot in a table, which may have another slab by the time it is looked at
 * again.
 *
 * Frees of anything but a live block are ignored (promise `misuse`). All blocks of 0 B have the
 * address of a variable of the host. Compiled with -fsanitize=thread, so that gmd sees its atomic
 * operations (driver/tsan).
 *
 * Defects, each with what goes wrong; docs/planted-defects.md has the rest. */
#include "faulty.h"

#include "recorded.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
    LIVE_FIRST,      /* a freed block is no longer live before it is among the returns */
    ADOPT_UNCHECKED, /* whose slab it is by then is not asked when another's was got hold of (ABA)
                      */
    ADOPT_BUSY,      /* short of memory, a thread works in slabs that others are busy in */
    STATE_LATE,      /* that a block is free is noted when it is among the returns already */
    RANGE_KEPT,      /* a thread's latest slab is found by its address when it went back */
    NOTES_BYTE, /* notes of recorded streams are counted in 8 bits, and with 0 none is looked for */
    LATEST_DEVICE, /* a thread's latest slab of a size serves requests for any device */
    THREAD_BITS,   /* threads are numbered in 4 bits, and slots of number 0 are nobody's */
};
const char *const faulty_defects[] = {"live_first",    "adopt_unchecked", "adopt_busy",
                                      "state_late",    "range_kept",      "notes_byte",
                                      "latest_device", "thread_bits",     NULL};

#define UNIT ((uint64_t)512)
#define SLAB ((uint64_t)2 << 20)
#define BUSY ((uint32_t)1 << 31)
enum { SLABS = 4096, BLOCKS = 4096, KINDS = 10, OWN = KINDS, NOBODY = 0, NONE = BLOCKS };

enum { FREED, LIVE };

typedef struct slab {
    _Atomic uint32_t owner;   /* the number of its thread; NOBODY: the slot is free */
    _Atomic uint64_t address; /* 0: there is none here */
    _Atomic uint64_t bytes;
    _Atomic uint64_t key; /* of its stream; 0: it serves nobody any more */
    _Atomic int kind;     /* blocks of UNIT << kind; OWN: one block */
    _Atomic uint32_t live;
    _Atomic uint32_t returns; /* 1 + a block; the next one is in `links` */
    uint32_t kept, cut;       /* of who is busy in it: collected blocks; those that were cut */
    _Atomic uint32_t *links;  /* these two stay with the slot */
    _Atomic unsigned char *states;
} slab;

typedef struct heap {
    slab slabs[SLABS];
    _Atomic uint32_t slab_count;
    _Atomic bool is_used;
    uint64_t limit; /* of reserved bytes; 0: none */
    gmd_stats segments;
    _Atomic uint64_t blocks, bytes, requested, bytes_peak, refused;
} heap;

static heap heaps[FAULTY_DEVICES];
static recorded *notes;
static _Atomic uint32_t note_count, thread_count;
static char nothing; /* where blocks of 0 B are */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static _Thread_local struct {
    uint32_t number;
    bool is_numbered;
    struct {
        const heap *heap;
        slab *slab;
    } latest[KINDS];
    struct {
        uint64_t address, bytes;
        slab *slab;
    } found;
} thread;

static bool is_done(cudaError_t answer)
{
    if (answer != cudaSuccess) {
        cudaGetLastError();
    }
    return answer == cudaSuccess;
}

static void *made(void *memory)
{
    if (!memory) {
        abort();
    }
    return memory;
}

static uint32_t own_number(void)
{
    if (!thread.is_numbered) {
        thread.is_numbered = true;
        thread.number = atomic_fetch_add(&thread_count, 1) + 1;
        thread.number = faulty_is(THREAD_BITS) ? thread.number & 0xf : thread.number;
    }
    return thread.number;
}

static uint64_t key_of(cudaStream_t stream)
{
    return (uint64_t)(uintptr_t)stream + 1;
}

static int kind_of(uint64_t size)
{
    int kind = 0;
    while (kind < KINDS && UNIT << kind < size) {
        kind++;
    }
    return kind;
}

static uint64_t slab_bytes(uint64_t size)
{
    return kind_of(size) < OWN ? SLAB : (size + SLAB - 1) / SLAB * SLAB;
}

static uint64_t block_bytes(slab *s)
{
    int kind = atomic_load(&s->kind);
    return kind < OWN ? UNIT << kind : atomic_load(&s->bytes);
}

/* --- within a slab ------------------------------------------------------------------------- */

/* False: somebody is busy in it, or it is another's than was seen. */
static bool enter_slab(slab *s, uint32_t seen, uint32_t as)
{
    bool is_free = !(seen & BUSY) || faulty_is(ADOPT_BUSY);
    return is_free && atomic_compare_exchange_strong(&s->owner, &seen, as | BUSY);
}

static void leave_slab(slab *s, uint32_t owner)
{
    atomic_store(&s->owner, owner);
}

static void collect(slab *s)
{
    uint32_t link = atomic_exchange(&s->returns, 0);
    while (link) {
        uint32_t next = atomic_load(&s->links[link - 1]);
        atomic_store(&s->links[link - 1], s->kept);
        s->kept = link;
        link = next;
    }
}

/* NONE: it is full. */
static uint32_t take_block(slab *s)
{
    uint32_t at = NONE;
    if (!s->kept) {
        collect(s);
    }
    if (s->kept) {
        at = s->kept - 1;
        s->kept = atomic_load(&s->links[at]);
    } else if ((s->cut + 1) * block_bytes(s) <= atomic_load(&s->bytes)) {
        at = s->cut++;
    }
    if (at != NONE) {
        atomic_store(&s->states[at], LIVE);
        atomic_fetch_add(&s->live, 1);
    }
    return at;
}

static void push_return(slab *s, uint32_t at)
{
    uint32_t head = atomic_load(&s->returns);
    do {
        atomic_store(&s->links[at], head);
    } while (!atomic_compare_exchange_weak(&s->returns, &head, at + 1));
}

static void put_block(slab *s, uint32_t at)
{
    uint32_t own = own_number();
    if (atomic_load(&s->owner) == own && enter_slab(s, own, own)) {
        atomic_store(&s->links[at], s->kept);
        s->kept = at + 1;
        leave_slab(s, own);
    } else {
        push_return(s, at);
    }
}

/* --- slabs --------------------------------------------------------------------------------- */

static bool serves(slab *s, int kind, uint64_t key)
{
    return atomic_load(&s->address) && atomic_load(&s->kind) == kind && atomic_load(&s->key) == key;
}

/* Under the lock: a slab that the caller is busy in. NULL: no memory. */
static slab *add_slab(heap *h, uint64_t size, uint64_t key)
{
    uint64_t bytes = slab_bytes(size);
    uint32_t at = 0;
    void *memory = NULL;
    while (at < SLABS && !enter_slab(&h->slabs[at], NOBODY, own_number())) {
        at++;
    }
    if (at == SLABS) {
        return NULL;
    }
    slab *s = &h->slabs[at];
    if ((h->limit && h->segments.reserved_bytes + bytes > h->limit) ||
        !is_done(cudaMalloc(&memory, bytes))) {
        leave_slab(s, NOBODY);
        return NULL;
    }
    if (!s->links) {
        s->links = made(calloc(BLOCKS, sizeof *s->links));
        s->states = made(calloc(BLOCKS, sizeof *s->states));
    }
    int kind = kind_of(size);
    s->kept = s->cut = 0;
    atomic_store(&s->returns, 0);
    atomic_store(&s->live, 0);
    atomic_store(&s->kind, kind);
    atomic_store(&s->key, kind < OWN ? key : 0);
    atomic_store(&s->bytes, bytes);
    atomic_store(&s->address, (uintptr_t)memory);
    if (at >= atomic_load(&h->slab_count)) {
        atomic_store(&h->slab_count, at + 1);
    }
    atomic_store(&h->is_used, true);
    faulty_count_segment(&h->segments, bytes);
    return s;
}

/* Under the lock: it goes back unless a block is live in it. cudaFree waits for all work. */
static void release_slab(heap *h, slab *s)
{
    uint32_t owner = atomic_load(&s->owner), own = own_number();
    uint64_t address = atomic_load(&s->address);
    if (owner & BUSY || !address || atomic_load(&s->live) || !enter_slab(s, owner, own)) {
        return;
    }
    address = atomic_load(&s->address);
    if (!address || atomic_load(&s->live)) { /* since then */
        leave_slab(s, owner);
        return;
    }
    uint64_t bytes = atomic_load(&s->bytes);
    atomic_store(&s->address, 0);
    if (is_done(cudaFree((void *)(uintptr_t)address))) { /* NOLINT(performance-no-int-to-ptr) */
        faulty_count_segment_freed(&h->segments, bytes);
        leave_slab(s, NOBODY);
    } else {
        atomic_store(&s->address, address);
        leave_slab(s, owner);
    }
}

static void release_all(heap *h)
{
    for (uint32_t i = 0; i < atomic_load(&h->slab_count); i++) {
        release_slab(h, &h->slabs[i]);
    }
}

static slab *grow(heap *h, uint64_t size, uint64_t key, int device, bool gives_back)
{
    faulty_guard guard = faulty_enter_device(device);
    pthread_mutex_lock(&lock);
    if (gives_back) {
        release_all(h);
    }
    slab *s = add_slab(h, size, key);
    pthread_mutex_unlock(&lock);
    faulty_leave_device(guard);
    return s;
}

/* --- requests ------------------------------------------------------------------------------ */

/* A block of that slab, if it is still what it was seen to be; the slab is the thread's then. */
static uint64_t take_from(slab *s, uint32_t seen, int kind, uint64_t key)
{
    uint32_t own = own_number(), at = NONE;
    if (!serves(s, kind, key) || !enter_slab(s, seen, own)) {
        return 0;
    }
    if (serves(s, kind, key) || (seen != own && faulty_is(ADOPT_UNCHECKED))) {
        at = take_block(s);
    }
    uint64_t address = at == NONE ? 0 : atomic_load(&s->address) + at * block_bytes(s);
    leave_slab(s, address ? own : seen & ~BUSY);
    return address;
}

static uint64_t take_latest(const heap *h, int kind, uint64_t key)
{
    slab *s = thread.latest[kind].slab;
    bool is_here = thread.latest[kind].heap == h || faulty_is(LATEST_DEVICE);
    return s && is_here && atomic_load(&s->owner) == own_number()
               ? take_from(s, own_number(), kind, key)
               : 0;
}

static void note_latest(const heap *h, slab *s, int kind)
{
    thread.latest[kind].heap = h;
    thread.latest[kind].slab = s;
}

/* From the thread's own slabs, or from those of others. */
static uint64_t take_any(heap *h, int kind, uint64_t key, bool is_own)
{
    uint32_t own = own_number();
    for (uint32_t i = 0; i < atomic_load(&h->slab_count); i++) {
        slab *s = &h->slabs[i];
        uint32_t owner = atomic_load(&s->owner);
        bool is_meant = (owner == own) == is_own && (owner || is_own);
        uint64_t address = is_meant ? take_from(s, owner, kind, key) : 0;
        if (address) {
            note_latest(h, s, kind);
            return address;
        }
    }
    return 0;
}

static uint64_t take_new(heap *h, uint64_t size, uint64_t key, int device, bool gives_back)
{
    slab *s = grow(h, size, key, device, gives_back);
    if (!s) {
        return 0;
    }
    uint64_t address = atomic_load(&s->address) + take_block(s) * block_bytes(s);
    if (kind_of(size) < OWN) {
        note_latest(h, s, kind_of(size));
    }
    leave_slab(s, own_number());
    return address;
}

static uint64_t take(heap *h, uint64_t size, cudaStream_t stream, int device)
{
    int kind = kind_of(size);
    uint64_t key = key_of(stream), address = 0;
    if (kind < OWN) {
        address = take_latest(h, kind, key);
        address = address ? address : take_any(h, kind, key, true);
    }
    address = address ? address : take_new(h, size, key, device, false);
    if (!address && kind < OWN) {
        address = take_any(h, kind, key, false);
    }
    return address ? address : take_new(h, size, key, device, true);
}

static slab *find_slab(heap *h, uint64_t address)
{
    bool is_latest = address - thread.found.address < thread.found.bytes;
    slab *latest = thread.found.slab;
    if (is_latest &&
        (faulty_is(RANGE_KEPT) || atomic_load(&latest->address) == thread.found.address)) {
        return latest;
    }
    for (uint32_t i = 0; i < atomic_load(&h->slab_count); i++) {
        slab *s = &h->slabs[i];
        uint64_t start = atomic_load(&s->address), bytes = atomic_load(&s->bytes);
        if (start && address - start < bytes && start == atomic_load(&s->address)) {
            thread.found.address = start;
            thread.found.bytes = bytes;
            thread.found.slab = s;
            return s;
        }
    }
    return NULL;
}

static bool has_notes(void)
{
    uint32_t count = atomic_load(&note_count);
    return faulty_is(NOTES_BYTE) ? count & 0xff : count;
}

/* The stream of the free waits for those that were recorded, and the slab's stream for it. */
static void order_free(slab *s, const void *pointer, cudaStream_t stream, int device)
{
    uint64_t key = atomic_load(&s->key);
    bool is_other = key && key != key_of(stream);
    if (!is_other && !has_notes()) {
        return;
    }
    faulty_guard guard = faulty_enter_device(device);
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
    faulty_leave_device(guard);
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

static uint64_t counted_bytes(uint64_t size)
{
    return kind_of(size) < OWN ? UNIT << kind_of(size) : slab_bytes(size);
}

void *gmd_malloc(size_t size, int device, cudaStream_t stream)
{
    if (device < 0 || device >= FAULTY_DEVICES) {
        return NULL;
    }
    if (!size) {
        return &nothing;
    }
    heap *h = &heaps[device];
    uint64_t address = size <= SIZE_MAX / 2 ? take(h, size, stream, device) : 0;
    if (!address) {
        atomic_fetch_add(&h->refused, 1);
        return NULL;
    }
    count_block(h, counted_bytes(size), size);
    return (void *)(uintptr_t)address; /* NOLINT(performance-no-int-to-ptr) */
}

/* False: no live block begins there. */
static bool end_life(slab *s, uint32_t at)
{
    unsigned char live = LIVE;
    return faulty_is(STATE_LATE) ? atomic_load(&s->states[at]) == LIVE
                                 : atomic_compare_exchange_strong(&s->states[at], &live, FREED);
}

void gmd_free(void *pointer, size_t size, int device, cudaStream_t stream)
{
    if (!pointer || device < 0 || device >= FAULTY_DEVICES) {
        return;
    }
    heap *h = &heaps[device];
    slab *s = find_slab(h, (uintptr_t)pointer);
    uint64_t offset = s ? (uintptr_t)pointer - thread.found.address : 0;
    if (!s || offset % block_bytes(s) || !end_life(s, (uint32_t)(offset / block_bytes(s)))) {
        return;
    }
    uint32_t at = (uint32_t)(offset / block_bytes(s));
    bool is_own = atomic_load(&s->kind) == OWN;
    order_free(s, pointer, stream, device);
    atomic_fetch_sub(&h->blocks, 1);
    atomic_fetch_sub(&h->requested, size);
    atomic_fetch_sub(&h->bytes, counted_bytes(size));
    if (faulty_is(LIVE_FIRST)) {
        atomic_fetch_sub(&s->live, 1);
    }
    put_block(s, at);
    if (faulty_is(STATE_LATE)) {
        atomic_store(&s->states[at], FREED);
    }
    if (!faulty_is(LIVE_FIRST)) {
        atomic_fetch_sub(&s->live, 1); /* from here on the slot may be another slab's */
    }
    if (is_own) {
        faulty_guard guard = faulty_enter_device(device);
        pthread_mutex_lock(&lock);
        release_slab(h, s);
        pthread_mutex_unlock(&lock);
        faulty_leave_device(guard);
    }
}

EXPORT void gmd_record_stream(void *pointer, cudaStream_t stream);
void gmd_record_stream(void *pointer, cudaStream_t stream)
{
    pthread_mutex_lock(&lock);
    const recorded *before = notes;
    if (pointer != &nothing) {
        recorded_add(&notes, pointer, stream);
        atomic_fetch_add(&note_count, notes != before);
    }
    pthread_mutex_unlock(&lock);
}

/* No other call is under way. Its slabs serve nobody any more. */
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
    for (uint32_t i = 0; i < atomic_load(&h->slab_count); i++) {
        uint64_t key = key_of(stream);
        atomic_compare_exchange_strong(&h->slabs[i].key, &key, 0);
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
    return size > SIZE_MAX / 2 ? size : slab_bytes(size);
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

EXPORT unsigned gmd_promises(void);
unsigned gmd_promises(void)
{
    return GMD_PROMISE_MISUSE;
}
