/* generations.c - best fit, with free blocks in a list by size; free neighbours are merged. Each
 * free on a stream is a generation of its lane, and has an event; a freed block waits in one queue
 * for all lanes until its generation is done. Until then it serves requests of its own stream for
 * its size. When memory is short, the host waits for the lanes. Segments that were free as a whole
 * for 15 seconds go back with the next request.
 *
 * Frees of anything but a live block are ignored (promise `misuse`). All blocks of 0 B have the
 * address of a variable of the host.
 *
 * Defects, each with what goes wrong; docs/planted-defects.md has the rest. */
#include "faulty.h"

#include "recorded.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum {
    GENERATION_BYTE, /* a block's generation is kept in 8 bits */
    FIFTH_LANE,      /* short of memory, four lanes are waited for, and others count as done */
    QUERY_CLEARS,    /* the thread's last error is cleared after each query of an event */
    NOTED_BLIND,     /* that the wait for a recorded stream failed is not looked at */
    TRIM_PENDING,    /* a segment whose blocks are freed goes back after 15 s, done or not */
    DONE_STAYS,      /* the lane of a stream that is gone begins anew, but what was done stays */
    LANES_GROW,      /* the lane of a stream that is gone is not used again */
    DRAIN_UNLOCKED,  /* the host waits without the lock; what is freed meanwhile counts as done */
};
const char *const faulty_defects[] = {"generation_byte", "fifth_lane",     "query_clears",
                                      "noted_blind",     "trim_pending",   "done_stays",
                                      "lanes_grow",      "drain_unlocked", NULL};

#define UNIT     ((uint64_t)512)
#define PAGE     ((uint64_t)2 << 20)
#define SEGMENT  ((uint64_t)8 << 20)
#define OWN_FROM (SEGMENT / 2)

enum { WAITED_LANES = 4, IDLE = 15 };

typedef enum state { LIVE, PENDING, FREE } state;

typedef struct mark mark;
struct mark {
    mark *next;
    uint64_t generation;
    cudaEvent_t event;
};

typedef struct lane lane;
struct lane {
    lane *next;
    cudaStream_t stream;
    bool is_used;
    uint64_t last, done; /* generations */
    mark *oldest, *newest;
};

typedef struct segment segment;
typedef struct block block;
struct block {
    segment *segment;
    block *before, *after; /* in the segment */
    block *next;           /* FREE: by size; PENDING: later ones */
    uint64_t address, bytes, requested, generation;
    lane *lane; /* PENDING */
    state state;
    bool is_unsure;      /* of a stream that is gone and was not waited for */
    cudaStream_t stream; /* LIVE */
};

struct segment {
    segment *next;
    uint64_t address, bytes;
    uint32_t live;
    time_t idle_since; /* 0: not */
    block *first;
};

typedef struct heap {
    segment *segments;
    lane *lanes;
    block *free, *pending;
    uint64_t limit; /* of reserved bytes; 0: none */
    gmd_stats stats;
} heap;

static heap heaps[FAULTY_DEVICES];
static block *spare;
static recorded *notes;
static char nothing; /* where blocks of 0 B are */
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

static void *made(void *memory)
{
    if (!memory) {
        abort();
    }
    return memory;
}

/* --- lanes --------------------------------------------------------------------------------- */

static lane *lane_of(heap *h, cudaStream_t stream)
{
    lane *unused = NULL;
    for (lane *l = h->lanes; l; l = l->next) {
        if (l->is_used && l->stream == stream) {
            return l;
        }
        unused = !l->is_used ? l : unused;
    }
    if (!unused || faulty_is(LANES_GROW)) {
        unused = made(calloc(1, sizeof *unused));
        unused->next = h->lanes;
        h->lanes = unused;
    }
    unused->stream = stream;
    unused->is_used = true;
    return unused;
}

static void drop_oldest(lane *l)
{
    mark *m = l->oldest;
    l->oldest = m->next;
    l->newest = l->oldest ? l->newest : NULL;
    is_ok(cudaEventDestroy(m->event));
    free(m);
}

/* All its work is known to be over. */
static void end_lane(lane *l)
{
    while (l->oldest) {
        drop_oldest(l);
    }
    l->done = l->last;
}

static bool wait_on_host(cudaStream_t stream)
{
    return is_ok(cudaStreamSynchronize(stream)) || is_ok(cudaDeviceSynchronize());
}

/* False: it is not known when this generation is done. */
static bool begin_generation(lane *l)
{
    cudaEvent_t event = NULL;
    l->last++;
    if (is_ok(cudaEventCreateWithFlags(&event, cudaEventDisableTiming))) {
        if (is_ok(cudaEventRecord(event, l->stream))) {
            mark *m = made(malloc(sizeof *m));
            *m = (mark){.generation = l->last, .event = event};
            *(l->oldest ? &l->newest->next : &l->oldest) = m;
            l->newest = m;
            return true;
        }
        is_ok(cudaEventDestroy(event));
    }
    if (!wait_on_host(l->stream)) {
        return false;
    }
    end_lane(l);
    return true;
}

static bool is_event_over(cudaEvent_t event)
{
    cudaError_t answer = cudaEventQuery(event);
    if (faulty_is(QUERY_CLEARS) || (answer != cudaSuccess && answer != cudaErrorNotReady)) {
        cudaGetLastError();
    }
    return answer == cudaSuccess;
}

static void query(lane *l)
{
    while (l->oldest && is_event_over(l->oldest->event)) {
        l->done = l->oldest->generation;
        drop_oldest(l);
    }
}

/* --- free blocks --------------------------------------------------------------------------- */

static void link_free(heap *h, block *b)
{
    block **link = &h->free;
    while (*link && ((*link)->bytes < b->bytes ||
                     ((*link)->bytes == b->bytes && (*link)->address < b->address))) {
        link = &(*link)->next;
    }
    b->state = FREE;
    b->next = *link;
    *link = b;
}

static void unlink_free(heap *h, const block *b)
{
    block **link = &h->free;
    while (*link != b) {
        link = &(*link)->next;
    }
    *link = b->next;
}

static block *new_block(segment *s, uint64_t address, uint64_t bytes)
{
    block *b = spare;
    if (b) {
        spare = b->after;
    } else {
        b = made(malloc(sizeof *b));
    }
    *b = (block){.segment = s, .address = address, .bytes = bytes};
    return b;
}

static void drop_block(block *b)
{
    b->after = spare;
    spare = b;
}

/* `b` and the block behind it, which is in no list, become one. */
static void join(block *b, block *behind)
{
    b->bytes += behind->bytes;
    b->after = behind->after;
    if (b->after) {
        b->after->before = b;
    }
    drop_block(behind);
}

static void merge(heap *h, block *b)
{
    block *before = b->before, *after = b->after;
    if (after && after->state == FREE) {
        unlink_free(h, after);
        join(b, after);
    }
    if (before && before->state == FREE) {
        unlink_free(h, before);
        join(before, b);
        b = before;
    }
    link_free(h, b);
    if (!b->before && !b->after && !b->segment->idle_since) {
        b->segment->idle_since = now();
    }
}

static void split(heap *h, block *b, uint64_t bytes)
{
    if (b->bytes == bytes) {
        return;
    }
    block *rest = new_block(b->segment, b->address + bytes, b->bytes - bytes);
    rest->before = b;
    rest->after = b->after;
    if (rest->after) {
        rest->after->before = rest;
    }
    b->after = rest;
    b->bytes = bytes;
    link_free(h, rest);
}

static block *take_fit(heap *h, uint64_t bytes)
{
    block **link = &h->free;
    while (*link && (*link)->bytes < bytes) {
        link = &(*link)->next;
    }
    block *b = *link;
    if (b) {
        *link = b->next;
        split(h, b, bytes);
    }
    return b;
}

/* --- the queue ----------------------------------------------------------------------------- */

static void append(heap *h, block *b)
{
    block **link = &h->pending;
    while (*link) {
        link = &(*link)->next;
    }
    *link = b;
    b->next = NULL;
    b->state = PENDING;
}

static block *leave(block **link)
{
    block *b = *link;
    *link = b->next;
    return b;
}

static bool is_done(const block *b)
{
    return !b->is_unsure && b->generation <= b->lane->done;
}

static void collect(heap *h)
{
    for (block **link = &h->pending; *link;) {
        if (is_done(*link)) {
            merge(h, leave(link));
        } else {
            link = &(*link)->next;
        }
    }
}

static void poll(heap *h)
{
    for (lane *l = h->lanes; l; l = l->next) {
        query(l);
    }
    collect(h);
}

static bool wait_for_lane(const lane *l)
{
    if (faulty_is(DRAIN_UNLOCKED)) {
        pthread_mutex_unlock(&lock);
    }
    bool has_waited = is_ok(cudaEventSynchronize(l->newest->event));
    if (faulty_is(DRAIN_UNLOCKED)) {
        pthread_mutex_lock(&lock);
    }
    return has_waited || is_ok(cudaDeviceSynchronize());
}

/* The host waits. */
static void drain(heap *h)
{
    int waited = 0;
    for (lane *l = h->lanes; l; l = l->next) {
        bool is_skipped = faulty_is(FIFTH_LANE) && waited == WAITED_LANES;
        if (l->oldest && (is_skipped || wait_for_lane(l))) {
            waited += !is_skipped;
            end_lane(l);
        }
    }
    collect(h);
}

static block *take_pending(heap *h, uint64_t bytes, cudaStream_t stream)
{
    for (block **link = &h->pending; *link; link = &(*link)->next) {
        const block *b = *link;
        bool is_own = b->lane->is_used && b->lane->stream == stream && !b->is_unsure;
        if (is_own && b->bytes == bytes) {
            return leave(link);
        }
    }
    return NULL;
}

/* --- segments ------------------------------------------------------------------------------ */

static uint64_t round_size(uint64_t size)
{
    return (size + UNIT - 1) / UNIT * UNIT;
}

static uint64_t segment_bytes(uint64_t bytes)
{
    return bytes >= OWN_FROM ? (bytes + PAGE - 1) / PAGE * PAGE : SEGMENT;
}

static bool grow(heap *h, uint64_t bytes)
{
    uint64_t size = segment_bytes(bytes);
    void *memory = NULL;
    if ((h->limit && h->stats.reserved_bytes + size > h->limit) || !(memory = faulty_take(size))) {
        return false;
    }
    segment *s = made(malloc(sizeof *s));
    *s = (segment){.next = h->segments, .address = (uintptr_t)memory, .bytes = size};
    s->first = new_block(s, s->address, size);
    h->segments = s;
    link_free(h, s->first);
    faulty_count_segment(&h->stats, size);
    return true;
}

static void drop_pending(heap *h, const segment *s)
{
    for (block **link = &h->pending; *link;) {
        if ((*link)->segment == s) {
            drop_block(leave(link));
        } else {
            link = &(*link)->next;
        }
    }
}

/* No block of it is live, and cudaFree has waited for all work. */
static void drop_segment(heap *h, segment *s, bool is_trim)
{
    bool is_kept = is_trim && faulty_is(TRIM_PENDING);
    for (block *b = s->first, *after; b; b = after) {
        after = b->after;
        b->before = b->after = NULL;
        if (b->state == FREE) {
            unlink_free(h, b);
            drop_block(b);
        }
    }
    faulty_count_segment_freed(&h->stats, s->bytes);
    if (!is_kept) {
        drop_pending(h, s);
        free(s);
    }
}

static void release(heap *h, time_t idle_before)
{
    for (segment **link = &h->segments; *link;) {
        segment *s = *link;
        void *memory = (void *)(uintptr_t)s->address; /* NOLINT(performance-no-int-to-ptr) */
        bool is_meant = idle_before ? s->idle_since && s->idle_since < idle_before : !s->live;
        if (!is_meant || !is_ok(cudaFree(memory))) {
            link = &s->next;
            continue;
        }
        *link = s->next;
        drop_segment(h, s, idle_before != 0);
    }
}

/* --- blocks -------------------------------------------------------------------------------- */

static block *take(heap *h, uint64_t bytes, cudaStream_t stream)
{
    block *b = take_pending(h, bytes, stream);
    b = b ? b : take_fit(h, bytes);
    if (!b && grow(h, bytes)) {
        b = take_fit(h, bytes);
    }
    if (!b) {
        drain(h);
        b = take_fit(h, bytes);
    }
    if (!b) {
        release(h, 0);
        b = grow(h, bytes) ? take_fit(h, bytes) : NULL;
    }
    return b;
}

static void *allocate(heap *h, uint64_t size, cudaStream_t stream)
{
    if (!size) {
        return &nothing;
    }
    poll(h);
    release(h, now() > IDLE ? now() - IDLE : 1);
    block *b = size <= SIZE_MAX / 2 ? take(h, round_size(size), stream) : NULL;
    if (!b) {
        h->stats.num_ooms++;
        return NULL;
    }
    b->state = LIVE;
    b->stream = stream;
    b->requested = size;
    b->segment->live++;
    b->segment->idle_since = 0;
    faulty_count_alloc(&h->stats, b->bytes, size);
    return (void *)(uintptr_t)b->address; /* NOLINT(performance-no-int-to-ptr) */
}

static block *find(const heap *h, uint64_t address)
{
    const segment *s = h->segments;
    while (s && address - s->address >= s->bytes) {
        s = s->next;
    }
    block *b = s ? s->first : NULL;
    while (b && !(b->address == address && b->state == LIVE)) {
        b = b->after;
    }
    return b;
}

static void wait_for_notes(const void *pointer, cudaStream_t stream)
{
    recorded *taken = recorded_take(&notes, pointer);
    if (!faulty_is(NOTED_BLIND)) {
        recorded_wait(taken, stream);
        return;
    }
    for (recorded *next; taken; taken = next) {
        cudaEvent_t event = taken->event ? taken->event : recorded_event(taken->stream);
        if (event) {
            is_ok(cudaStreamWaitEvent(stream, event, 0));
            is_ok(cudaEventDestroy(event));
        }
        next = taken->next;
        free(taken);
    }
}

static void give_back(heap *h, const void *pointer, cudaStream_t stream)
{
    block *b = find(h, (uintptr_t)pointer);
    if (!b) {
        return;
    }
    wait_for_notes(pointer, stream);
    faulty_count_free(&h->stats, b->bytes, b->requested);
    b->segment->live--;
    b->lane = lane_of(h, stream);
    b->is_unsure |= !begin_generation(b->lane);
    b->generation = faulty_is(GENERATION_BYTE) ? b->lane->last & 0xff : b->lane->last;
    append(h, b);
    if (faulty_is(TRIM_PENDING) && !b->segment->live) {
        b->segment->idle_since = now();
    }
}

/* --- the ABI ------------------------------------------------------------------------------- */

void *gmd_malloc(size_t size, int device, cudaStream_t stream)
{
    if (device < 0 || device >= FAULTY_DEVICES) {
        return NULL;
    }
    faulty_guard guard = faulty_enter_device(device);
    pthread_mutex_lock(&lock);
    void *pointer = allocate(&heaps[device], size, stream);
    pthread_mutex_unlock(&lock);
    faulty_leave_device(guard);
    return pointer;
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

/* It was not waited for. */
static void doubt(heap *h, const lane *l)
{
    for (block *b = h->pending; b; b = b->next) {
        b->is_unsure |= b->lane == l;
    }
    for (const segment *s = h->segments; s; s = s->next) {
        for (block *b = s->first; b; b = b->after) {
            b->is_unsure |= b->state == LIVE && b->stream == l->stream;
        }
    }
}

static void forget(heap *h, cudaStream_t stream)
{
    lane *l = lane_of(h, stream);
    if (!wait_on_host(stream)) {
        doubt(h, l);
    }
    end_lane(l);
    collect(h);
    l->last = 0;
    if (!faulty_is(DONE_STAYS)) {
        l->done = 0;
        l->is_used = false;
    }
}

EXPORT void gmd_forget_stream(int device, cudaStream_t stream);
void gmd_forget_stream(int device, cudaStream_t stream)
{
    if (device < 0 || device >= FAULTY_DEVICES) {
        return;
    }
    faulty_guard guard = faulty_enter_device(device);
    pthread_mutex_lock(&lock);
    recorded_forget(&notes, stream);
    forget(&heaps[device], stream);
    pthread_mutex_unlock(&lock);
    faulty_leave_device(guard);
}

void gmd_empty_cache(void)
{
    pthread_mutex_lock(&lock);
    for (int device = 0; device < FAULTY_DEVICES; device++) {
        if (heaps[device].segments) {
            faulty_guard guard = faulty_enter_device(device);
            drain(&heaps[device]);
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
    return size > SIZE_MAX / 2 ? size : segment_bytes(round_size(size));
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

EXPORT unsigned gmd_promises(void);
unsigned gmd_promises(void)
{
    return GMD_PROMISE_MISUSE;
}
