/* ring_fences.c - rings of 2 MiB: blocks are placed one after the other, around the end, and come
 * free in the order in which they were placed. A free attaches the block to the open fence of its
 * stream. A fence is sealed (an event is recorded on its stream) when somebody needs to know
 * whether it is over; then the blocks at a ring's tail make room for any stream. Fences have slots
 * with generations: a slot of another generation than a block's means that the block's fence is
 * over.
 *
 * A larger block has a ring of its own. A ring that was empty for 20 seconds of the host's clock
 * goes back. All blocks of 0 B share one block of the least size, which goes back with the last.
 *
 * Defects, each with what goes wrong; docs/planted-defects.md has the rest. */
#include "faulty.h"

#include "recorded.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    ATTACHED_BITS, /* how many blocks are attached to a fence is counted in 8 bits */
    SLOT_64,       /* the 65th fence takes the slot of the first */
    SEAL_BLIND,    /* that the event of a fence could not be recorded is not looked at */
    TAIL_BLIND,    /* short of memory, that the wait for a ring's tail failed is not looked at */
    FENCE_KEPT,    /* the fence of a stream that is gone stays open under its handle, and is over */
    FENCE_EXPIRES, /* a fence that was sealed 30 seconds ago counts as over */
    NOTHING_EARLY, /* the first free of a block of 0 B frees the block that others share */
    LABELS_KEPT,   /* the labels of fences are never freed */
};
const char *const faulty_defects[] = {"attached_bits", "slot_64",     "seal_blind",
                                      "tail_blind",    "fence_kept",  "fence_expires",
                                      "nothing_early", "labels_kept", NULL};

#define UNIT     ((uint64_t)512)
#define PAGE     ((uint64_t)2 << 20)
#define RING     ((uint64_t)2 << 20)
#define OWN_FROM (RING / 2) /* the smallest block with a ring of its own */

enum { IDLE_MOST = 20, EXPIRY = 30, LABEL = 32, SPANS_MANY = 64 }; /* seconds, bytes */

typedef struct span span; /* of a ring: a block, or what was left before the end */
struct span {
    span *next; /* placed after this one */
    uint64_t offset, bytes, requested;
    uint32_t slot, generation; /* freed: of its fence */
    bool is_live, is_unsure;   /* unsure: of a stream that is gone and was not waited for */
    cudaStream_t stream;
};

typedef struct ring ring;
struct ring {
    ring *next;
    uint64_t address, bytes, head; /* head: where the next block begins */
    span *oldest, *newest;
    uint32_t span_count;
    time_t idle_since; /* 0: in use */
};

typedef struct fence {
    cudaStream_t stream;
    cudaEvent_t event;             /* sealed */
    uint32_t generation, attached; /* attached 0: the slot is unused */
    bool is_sealed, is_over, is_lost;
    time_t sealed_at;
    char *label; /* for a debugger */
} fence;

typedef struct heap {
    ring *rings;
    fence *fences;
    uint32_t fence_count;
    uint64_t limit; /* of reserved bytes; 0: none */
    uint64_t nothing, nothing_count;
    gmd_stats stats;
} heap;

static heap heaps[FAULTY_DEVICES];
static recorded *notes;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_ok(cudaError_t answer)
{
    if (answer != cudaSuccess) {
        cudaGetLastError();
    }
    return answer == cudaSuccess;
}

static time_t now(void)
{
    struct timespec t = {0};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec;
}

/* --- fences -------------------------------------------------------------------------------- */

static void drop_event(fence *f)
{
    if (f->event) {
        is_ok(cudaEventDestroy(f->event));
        f->event = NULL;
    }
}

static void clear_slot(fence *f)
{
    drop_event(f);
    if (!faulty_is(LABELS_KEPT)) {
        free(f->label);
    }
    *f = (fence){.generation = f->generation + 1};
}

static uint32_t unused_slot(heap *h)
{
    uint32_t i = 0;
    while (i < h->fence_count && h->fences[i].attached) {
        i++;
    }
    if (faulty_is(SLOT_64) && i == 64) {
        clear_slot(&h->fences[0]);
        return 0;
    }
    if (i == h->fence_count) {
        fence *grown = realloc(h->fences, (i + 1) * sizeof *grown);
        if (!grown) {
            abort();
        }
        h->fences = grown;
        grown[i] = (fence){0};
        h->fence_count++;
    }
    return i;
}

static bool is_open(const fence *f)
{
    return f->attached && !f->is_sealed && !f->is_lost;
}

static uint32_t open_fence(heap *h, cudaStream_t stream)
{
    for (uint32_t i = 0; i < h->fence_count; i++) {
        if (is_open(&h->fences[i]) && h->fences[i].stream == stream) {
            return i;
        }
    }
    uint32_t slot = unused_slot(h);
    fence *f = &h->fences[slot];
    clear_slot(f);
    f->stream = stream;
    f->label = malloc(LABEL);
    if (f->label) {
        snprintf(f->label, LABEL, "fence %u of %p", f->generation, (void *)stream);
    }
    return slot;
}

static void attach(heap *h, span *s, uint32_t slot)
{
    fence *f = &h->fences[slot];
    f->attached++;
    if (faulty_is(ATTACHED_BITS)) {
        f->attached &= 0xff;
    }
    s->slot = slot;
    s->generation = f->generation;
}

static void detach(heap *h, const span *s)
{
    fence *f = &h->fences[s->slot];
    if (f->generation == s->generation && f->attached && --f->attached == 0) {
        clear_slot(f);
    }
}

/* From now on it is known when the work before it is over, where the device lets that be known. */
static void seal(fence *f)
{
    bool has_event = is_ok(cudaEventCreateWithFlags(&f->event, cudaEventDisableTiming));
    if (has_event && !is_ok(cudaEventRecord(f->event, f->stream)) && !faulty_is(SEAL_BLIND)) {
        is_ok(cudaEventDestroy(f->event));
        has_event = false;
    }
    if (!has_event) {
        f->event = NULL;
        f->is_over = is_ok(cudaStreamSynchronize(f->stream)) || is_ok(cudaDeviceSynchronize());
    }
    f->is_sealed = has_event || f->is_over;
    f->sealed_at = now();
}

static bool is_over(heap *h, const span *s)
{
    fence *f = &h->fences[s->slot];
    if (f->generation != s->generation) {
        return true;
    }
    if (!f->is_sealed && !f->is_lost) {
        seal(f);
    }
    if (f->is_sealed && !f->is_over) {
        cudaError_t answer = cudaEventQuery(f->event);
        if (answer != cudaSuccess && answer != cudaErrorNotReady) {
            cudaGetLastError();
        }
        f->is_over =
            answer == cudaSuccess || (faulty_is(FENCE_EXPIRES) && now() - f->sealed_at > EXPIRY);
    }
    if (f->is_over) {
        drop_event(f);
    }
    return f->is_over;
}

static bool wait_for(heap *h, const span *s)
{
    fence *f = &h->fences[s->slot];
    if (is_over(h, s)) {
        return true;
    }
    bool has_waited = f->event && is_ok(cudaEventSynchronize(f->event));
    has_waited = has_waited || faulty_is(TAIL_BLIND) || is_ok(cudaDeviceSynchronize());
    if (has_waited) {
        f->is_over = true;
        drop_event(f);
    }
    return has_waited;
}

/* --- rings --------------------------------------------------------------------------------- */

static span *place(ring *r, uint64_t offset, uint64_t bytes)
{
    span *s = malloc(sizeof *s);
    if (!s) {
        abort();
    }
    *s = (span){.offset = offset, .bytes = bytes};
    if (r->newest) {
        r->newest->next = s;
    } else {
        r->oldest = s;
    }
    r->newest = s;
    r->span_count++;
    r->head = offset + bytes;
    return s;
}

/* NULL: there is no room. */
static span *place_next(ring *r, uint64_t bytes)
{
    uint64_t tail = r->oldest ? r->oldest->offset : 0;
    r->head = r->oldest ? r->head : 0;
    bool is_around = r->oldest && r->head <= tail;
    uint64_t room = (is_around ? tail : r->bytes) - r->head;
    if (bytes <= room) {
        return place(r, r->head, bytes);
    }
    if (is_around || bytes > tail) {
        return NULL;
    }
    if (room) {
        place(r, r->head, room)->slot = UINT32_MAX; /* it was nobody's */
    }
    return place(r, 0, bytes);
}

/* Makes room at the tail. `waits`: the host does. */
static void reclaim(heap *h, ring *r, bool waits)
{
    for (span *s; (s = r->oldest) && !s->is_live;) {
        bool is_block = s->slot != UINT32_MAX;
        if (is_block && !(waits ? wait_for(h, s) : is_over(h, s))) {
            return;
        }
        if (is_block) {
            detach(h, s);
        }
        r->span_count--;
        r->oldest = s->next;
        r->newest = r->oldest ? r->newest : NULL;
        free(s);
    }
    r->idle_since = r->oldest || r->idle_since ? r->idle_since : now();
}

static span *place_in_rings(heap *h, uint64_t ring_bytes, uint64_t bytes, bool waits, ring **in)
{
    for (ring *r = h->rings; r; r = r->next) {
        span *s = NULL;
        if (r->bytes == ring_bytes) {
            if (r->span_count >= SPANS_MANY) { /* bookkeeping is to end before the ring does */
                reclaim(h, r, false);
            }
            s = waits ? NULL : place_next(r, bytes);
            if (!s) {
                reclaim(h, r, waits);
                s = place_next(r, bytes);
            }
        }
        if (s) {
            *in = r;
            return s;
        }
    }
    return NULL;
}

static ring *add_ring(heap *h, uint64_t bytes)
{
    ring *r = NULL;
    void *memory = NULL;
    if ((h->limit && h->stats.reserved_bytes + bytes > h->limit) ||
        !(memory = faulty_take(bytes))) {
        return NULL;
    }
    r = malloc(sizeof *r);
    if (!r) {
        abort();
    }
    *r = (ring){.next = h->rings, .address = (uintptr_t)memory, .bytes = bytes};
    h->rings = r;
    faulty_count_segment(&h->stats, bytes);
    return r;
}

/* Where all work before it is known to be over. An open one gets more blocks. */
static void end_fence(heap *h, const span *s)
{
    fence *f = &h->fences[s->slot];
    if (f->generation == s->generation && f->is_sealed) {
        f->is_over = true;
        drop_event(f);
    }
}

/* Whose blocks are all freed: cudaFree has waited for all work. */
static void drop_freed(heap *h, ring *r)
{
    for (span *s; (s = r->oldest);) {
        if (s->slot != UINT32_MAX) {
            end_fence(h, s);
            detach(h, s);
        }
        r->oldest = s->next;
        free(s);
    }
    r->newest = NULL;
    r->span_count = 0;
}

static bool has_live(const ring *r)
{
    const span *s = r->oldest;
    while (s && !s->is_live) {
        s = s->next;
    }
    return s;
}

static void release(heap *h, time_t idle_before)
{
    for (ring **link = &h->rings; *link;) {
        ring *r = *link;
        void *memory = (void *)(uintptr_t)r->address; /* NOLINT(performance-no-int-to-ptr) */
        bool is_meant =
            idle_before ? !r->oldest && r->idle_since && r->idle_since < idle_before : !has_live(r);
        if (!is_meant || !is_ok(cudaFree(memory))) {
            link = &r->next;
            continue;
        }
        *link = r->next;
        drop_freed(h, r);
        faulty_count_segment_freed(&h->stats, r->bytes);
        free(r);
    }
}

/* --- blocks -------------------------------------------------------------------------------- */

static uint64_t round_size(uint64_t size)
{
    uint64_t bytes = (size + UNIT - 1) / UNIT * UNIT;
    return bytes ? bytes : UNIT;
}

static uint64_t ring_bytes_of(uint64_t bytes)
{
    return bytes < OWN_FROM ? RING : (bytes + PAGE - 1) / PAGE * PAGE;
}

static span *take(heap *h, uint64_t bytes, ring **in)
{
    uint64_t ring_bytes = ring_bytes_of(bytes);
    span *s = place_in_rings(h, ring_bytes, bytes, false, in);
    if (!s && (*in = add_ring(h, ring_bytes))) {
        s = place_next(*in, bytes);
    }
    s = s ? s : place_in_rings(h, ring_bytes, bytes, true, in);
    if (!s) {
        release(h, 0);
        *in = add_ring(h, ring_bytes);
        s = *in ? place_next(*in, bytes) : NULL;
    }
    return s;
}

static uint64_t allocate(heap *h, uint64_t size, cudaStream_t stream)
{
    ring *r = NULL;
    release(h, now() - IDLE_MOST > 0 ? now() - IDLE_MOST : 1);
    span *s = size <= SIZE_MAX / 2 ? take(h, round_size(size), &r) : NULL;
    if (!s) {
        h->stats.num_ooms++;
        return 0;
    }
    s->is_live = true;
    s->stream = stream;
    s->requested = size;
    r->idle_since = 0;
    if (size) {
        faulty_count_alloc(&h->stats, s->bytes, size);
    }
    return r->address + s->offset;
}

static uint64_t allocate_nothing(heap *h, cudaStream_t stream)
{
    if (!h->nothing_count) {
        h->nothing = allocate(h, 0, stream);
    }
    h->nothing_count += h->nothing != 0;
    return h->nothing;
}

static span *find(const heap *h, uint64_t address)
{
    for (const ring *r = h->rings; r; r = r->next) {
        for (span *s = address - r->address < r->bytes ? r->oldest : NULL; s; s = s->next) {
            if (s->is_live && r->address + s->offset == address) {
                return s;
            }
        }
    }
    return NULL;
}

static bool is_shared_still(heap *h, uint64_t address)
{
    if (!h->nothing_count || address != h->nothing) {
        return false;
    }
    h->nothing_count = faulty_is(NOTHING_EARLY) ? 0 : h->nothing_count - 1;
    return h->nothing_count;
}

static void give_back(heap *h, const void *pointer, cudaStream_t stream)
{
    if (is_shared_still(h, (uintptr_t)pointer)) {
        return;
    }
    span *s = find(h, (uintptr_t)pointer);
    if (!s) {
        return;
    }
    recorded_wait(recorded_take(&notes, pointer), stream);
    s->is_live = false;
    attach(h, s, open_fence(h, stream));
    if (s->is_unsure) {
        h->fences[s->slot].is_lost = true; /* until its ring goes back */
    }
    if (s->requested) {
        faulty_count_free(&h->stats, s->bytes, s->requested);
    }
}

/* --- the ABI ------------------------------------------------------------------------------- */

void *gmd_malloc(size_t size, int device, cudaStream_t stream)
{
    if (device < 0 || device >= FAULTY_DEVICES) {
        return NULL;
    }
    heap *h = &heaps[device];
    faulty_guard guard = faulty_enter_device(device);
    pthread_mutex_lock(&lock);
    uint64_t address = size ? allocate(h, size, stream) : allocate_nothing(h, stream);
    pthread_mutex_unlock(&lock);
    faulty_leave_device(guard);
    return (void *)(uintptr_t)address; /* NOLINT(performance-no-int-to-ptr) */
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
    pthread_mutex_unlock(&lock);
    faulty_leave_device(guard);
}

EXPORT void gmd_record_stream(void *pointer, cudaStream_t stream);
void gmd_record_stream(void *pointer, cudaStream_t stream)
{
    pthread_mutex_lock(&lock);
    recorded_add(&notes, pointer, stream);
    pthread_mutex_unlock(&lock);
}

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
    bool is_known = is_ok(cudaStreamSynchronize(stream)) || is_ok(cudaDeviceSynchronize());
    for (uint32_t i = 0; i < h->fence_count; i++) {
        fence *f = &h->fences[i];
        if (is_open(f) && f->stream == stream) {
            f->is_over = is_known;
            f->is_sealed = is_known && !faulty_is(FENCE_KEPT);
            f->is_lost = !is_known;
        }
    }
    for (const ring *r = h->rings; r && !is_known; r = r->next) {
        for (span *s = r->oldest; s; s = s->next) {
            s->is_unsure |= s->is_live && s->stream == stream;
        }
    }
    pthread_mutex_unlock(&lock);
    faulty_leave_device(guard);
}

void gmd_empty_cache(void)
{
    pthread_mutex_lock(&lock);
    for (int device = 0; device < FAULTY_DEVICES; device++) {
        if (heaps[device].rings) {
            faulty_guard guard = faulty_enter_device(device);
            release(&heaps[device], 0);
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
    return size > SIZE_MAX / 2 ? size : ring_bytes_of(round_size(size));
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
