/* two_level.c - two-level segregated fit: free blocks are in lists by their power of two and an
 * eighth of it; bitmaps say which lists have some. A block is split, and free neighbours in a
 * segment are merged at once. A freed block first goes into the queue of its stream with an event;
 * it serves a request of its own stream for the same size, and becomes free when the event is
 * complete. When memory is short, the host waits for the queues, and segments that are free as a
 * whole go back.
 *
 * Live blocks are found by their address in a hash table; frees of anything else are ignored
 * (promise `misuse`). All blocks of 0 B have the address of a variable of the host.
 *
 * Defects, each with what goes wrong; docs/planted-defects.md has the rest. */
#include "faulty.h"

#include "recorded.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    QUEUE_64,    /* a queue has room for 64 blocks: one more takes the oldest one's place */
    PIECES_BYTE, /* the pieces of a segment are counted in 8 bits */
    QUEUE_KEPT,  /* the queue of a stream that is gone stays, as one whose work is over */
    DRAIN_BLIND, /* short of memory, that waiting for a queue failed is not looked at */
    UNRECORDED,  /* that the event of a block from a split could not be recorded is not looked at */
    DRAIN_CLEARS,  /* whether a queue could be waited for is asked of the last error */
    ENTRY_KEPT,    /* the entry of a block that is merged with the one before stays */
    EMPTY_SPLIT,   /* 0 B are split off a free block, which then begins where they do */
    DECAY_PENDING, /* a block that has been in a queue for ten seconds counts as free */
    QUEUES_GROW,   /* what has left a queue at its head still takes room there */
};
const char *const faulty_defects[] = {"queue_64",      "pieces_byte",  "queue_kept", "drain_blind",
                                      "unrecorded",    "drain_clears", "entry_kept", "empty_split",
                                      "decay_pending", "queues_grow",  NULL};

#define UNIT     ((uint64_t)256)
#define PAGE     ((uint64_t)2 << 20)
#define SEGMENT  ((uint64_t)16 << 20)
#define OWN_FROM (SEGMENT / 2)

enum { LEVELS = 56, PARTS = 8, SLOTS = 1024, DECAY = 10 };

typedef enum state { LIVE, QUEUED, FREE } state;

typedef struct segment segment;
typedef struct block block;
struct block {
    segment *segment;
    block *before, *after;           /* in the segment */
    block *list_before, *list_after; /* FREE */
    uint64_t address, bytes, requested;
    state state;
    bool is_split;       /* what was cut off it is elsewhere */
    bool is_unsure;      /* of a stream that is gone and was not waited for */
    cudaStream_t stream; /* LIVE, QUEUED */
    cudaEvent_t event;   /* QUEUED; NULL: it could not be recorded */
    time_t queued_at;
};

struct segment {
    segment *next;
    uint64_t address, bytes;
    uint32_t pieces;
    block *first;
};

typedef struct entry entry;
struct entry {
    entry *next;
    uint64_t address;
    block *block;
};

typedef struct queue {
    cudaStream_t stream;
    bool is_used, is_over;
    block **blocks;
    uint32_t begin, end, room;
} queue;

typedef struct heap {
    segment *segments;
    uint64_t levels;
    uint8_t parts[LEVELS];
    block *free[LEVELS][PARTS];
    entry *entries[SLOTS];
    queue *queues;
    uint32_t queue_count;
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

/* --- free blocks --------------------------------------------------------------------------- */

/* The list in which a block of so many bytes is. */
static void find_list(uint64_t bytes, int *level, int *part)
{
    uint64_t units = bytes / UNIT;
    int top = units ? 63 - __builtin_clzll(units) : 0;
    *level = top;
    *part = top >= 3 ? (int)(units >> (top - 3) & 7) : (int)(units << (3 - top) & 7);
}

static void link_free(heap *h, block *b)
{
    int level, part;
    find_list(b->bytes, &level, &part);
    b->state = FREE;
    b->list_before = NULL;
    b->list_after = h->free[level][part];
    if (b->list_after) {
        b->list_after->list_before = b;
    }
    h->free[level][part] = b;
    h->levels |= UINT64_C(1) << level;
    h->parts[level] |= (uint8_t)(1 << part);
}

static void unlink_free(heap *h, block *b)
{
    int level, part;
    find_list(b->bytes, &level, &part);
    if (b->list_after) {
        b->list_after->list_before = b->list_before;
    }
    if (b->list_before) {
        b->list_before->list_after = b->list_after;
    } else {
        h->free[level][part] = b->list_after;
    }
    if (!h->free[level][part]) {
        h->parts[level] &= (uint8_t) ~(1 << part);
    }
    if (!h->parts[level]) {
        h->levels &= ~(UINT64_C(1) << level);
    }
}

static block *new_block(segment *s, uint64_t address, uint64_t bytes)
{
    block *b = spare;
    if (b) {
        spare = b->after;
    } else {
        b = malloc(sizeof *b);
    }
    if (!b) {
        abort();
    }
    *b = (block){.segment = s, .address = address, .bytes = bytes};
    s->pieces++;
    if (faulty_is(PIECES_BYTE)) {
        s->pieces &= 0xff;
    }
    return b;
}

static void drop_block(block *b)
{
    b->segment->pieces--;
    b->after = spare;
    spare = b;
}

/* `b` and the block behind it, which is FREE and in no list, become one. */
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
}

/* Cuts a block that is in no list; the rest is free. */
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
    b->is_split = true;
    link_free(h, rest);
}

static block *find_fit(const heap *h, uint64_t bytes)
{
    int level, part;
    find_list(bytes, &level, &part);
    for (block *b = h->free[level][part]; b; b = b->list_after) { /* some are too small */
        if (b->bytes >= bytes) {
            return b;
        }
    }
    unsigned parts = part < PARTS - 1 ? h->parts[level] & (0xffU << (part + 1)) : 0;
    if (parts) {
        return h->free[level][__builtin_ctz(parts)];
    }
    uint64_t levels = h->levels & (~UINT64_C(1) << level);
    if (!levels) {
        return NULL;
    }
    level = __builtin_ctzll(levels);
    return h->free[level][__builtin_ctz(h->parts[level])];
}

/* --- live blocks --------------------------------------------------------------------------- */

static entry **slot_of(heap *h, uint64_t address)
{
    return &h->entries[address / UNIT % SLOTS];
}

static void enter_block(heap *h, block *b)
{
    entry *e = malloc(sizeof *e), **slot = slot_of(h, b->address);
    if (!e) {
        abort();
    }
    *e = (entry){.next = *slot, .address = b->address, .block = b};
    *slot = e;
}

/* Takes it out. NULL: there is none. */
static block *leave_block(heap *h, uint64_t address)
{
    entry **link = slot_of(h, address);
    while (*link && !((*link)->address == address && (*link)->block->state == LIVE)) {
        link = &(*link)->next;
    }
    entry *e = *link;
    block *b = e ? e->block : NULL;
    bool is_kept = b && faulty_is(ENTRY_KEPT) && b->before && b->before->state == FREE;
    if (e && !is_kept) {
        *link = e->next;
        free(e);
    }
    return b;
}

/* --- queues -------------------------------------------------------------------------------- */

static queue *queue_of(heap *h, cudaStream_t stream)
{
    uint32_t i = 0, unused = h->queue_count;
    while (i < h->queue_count && !(h->queues[i].is_used && h->queues[i].stream == stream)) {
        unused = !h->queues[i].is_used ? i : unused;
        i++;
    }
    i = i == h->queue_count ? unused : i;
    if (i == h->queue_count) {
        queue *grown = realloc(h->queues, (i + 1) * sizeof *grown);
        if (!grown) {
            abort();
        }
        h->queues = grown;
        grown[h->queue_count++] = (queue){0};
    }
    h->queues[i].stream = stream;
    h->queues[i].is_used = true;
    return &h->queues[i];
}

static void make_room(queue *q)
{
    if (q->begin && !faulty_is(QUEUES_GROW)) {
        memmove(q->blocks, q->blocks + q->begin, (q->end - q->begin) * sizeof *q->blocks);
        q->end -= q->begin;
        q->begin = 0;
    }
    if (q->end == q->room) {
        uint32_t room = q->room + 16;
        block **grown = realloc(q->blocks, room * sizeof *grown);
        if (!grown) {
            abort();
        }
        q->blocks = grown;
        q->room = room;
    }
}

static void enqueue(heap *h, block *b, cudaStream_t stream)
{
    queue *q = queue_of(h, stream);
    if (q->end == q->room) {
        make_room(q);
    }
    if (faulty_is(QUEUE_64) && q->end - q->begin == 64) {
        q->begin++;
    }
    b->state = QUEUED;
    b->stream = stream;
    b->queued_at = now();
    q->blocks[q->end++] = b;
    bool has_event =
        !b->is_unsure && is_ok(cudaEventCreateWithFlags(&b->event, cudaEventDisableTiming));
    if (!has_event) {
        b->event = NULL;
    } else if (!is_ok(cudaEventRecord(b->event, stream)) &&
               !(faulty_is(UNRECORDED) && b->is_split)) {
        is_ok(cudaEventDestroy(b->event));
        b->event = NULL;
    }
}

static void drop_event(block *b)
{
    if (b->event) {
        is_ok(cudaEventDestroy(b->event));
        b->event = NULL;
    }
}

static void take_out(queue *q, uint32_t at)
{
    if (at == q->begin) {
        q->begin++;
        return;
    }
    memmove(q->blocks + at, q->blocks + at + 1, (q->end - at - 1) * sizeof *q->blocks);
    q->end--;
}

static bool is_over(const queue *q, const block *b)
{
    if (b->is_unsure) {
        return false;
    }
    if (q->is_over || (faulty_is(DECAY_PENDING) && now() - b->queued_at > DECAY)) {
        return true;
    }
    if (!b->event) {
        return false;
    }
    cudaError_t answer = cudaEventQuery(b->event);
    if (answer != cudaSuccess && answer != cudaErrorNotReady) {
        cudaGetLastError();
    }
    return answer == cudaSuccess;
}

static void poll(heap *h)
{
    for (uint32_t i = 0; i < h->queue_count; i++) {
        queue *q = &h->queues[i];
        while (q->begin < q->end && is_over(q, q->blocks[q->begin])) {
            block *b = q->blocks[q->begin];
            take_out(q, q->begin);
            drop_event(b);
            merge(h, b);
        }
    }
}

static bool wait_for(const block *b)
{
    if (faulty_is(DRAIN_CLEARS) && b->event) {
        cudaEventSynchronize(b->event);
        return cudaGetLastError() == cudaSuccess;
    }
    bool has_waited = b->event && is_ok(cudaEventSynchronize(b->event));
    return has_waited || (b->event && faulty_is(DRAIN_BLIND)) || is_ok(cudaDeviceSynchronize());
}

/* The host waits. */
static void drain(heap *h)
{
    for (uint32_t i = 0; i < h->queue_count; i++) {
        queue *q = &h->queues[i];
        while (q->begin < q->end && wait_for(q->blocks[q->begin])) {
            block *b = q->blocks[q->begin];
            take_out(q, q->begin);
            drop_event(b);
            b->is_unsure = false;
            merge(h, b);
        }
    }
}

static block *take_queued(heap *h, uint64_t bytes, cudaStream_t stream)
{
    for (uint32_t i = 0; i < h->queue_count; i++) {
        queue *q = &h->queues[i];
        bool is_own = q->is_used && q->stream == stream;
        for (uint32_t k = q->begin; is_own && k < q->end; k++) {
            block *b = q->blocks[k];
            if (b->bytes == bytes && !b->is_unsure) {
                take_out(q, k);
                drop_event(b);
                return b;
            }
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

static block *grow(heap *h, uint64_t bytes)
{
    uint64_t size = segment_bytes(bytes);
    void *memory = NULL;
    if ((h->limit && h->stats.reserved_bytes + size > h->limit) || !(memory = faulty_take(size))) {
        return NULL;
    }
    segment *s = malloc(sizeof *s);
    if (!s) {
        abort();
    }
    *s = (segment){.next = h->segments, .address = (uintptr_t)memory, .bytes = size};
    s->first = new_block(s, s->address, size);
    h->segments = s;
    link_free(h, s->first);
    faulty_count_segment(&h->stats, size);
    return s->first;
}

static void drop_pieces(heap *h, const segment *s)
{
    for (block *b = s->first, *next; b; b = next) {
        next = b->after;
        if (b->state == FREE) {
            unlink_free(h, b);
            drop_block(b);
        }
    }
}

static void release(heap *h)
{
    drain(h);
    for (segment **link = &h->segments; *link;) {
        segment *s = *link;
        void *memory = (void *)(uintptr_t)s->address; /* NOLINT(performance-no-int-to-ptr) */
        if (s->pieces != 1 || s->first->state != FREE || !is_ok(cudaFree(memory))) {
            link = &s->next;
            continue;
        }
        *link = s->next;
        drop_pieces(h, s);
        faulty_count_segment_freed(&h->stats, s->bytes);
        free(s);
    }
}

/* --- blocks -------------------------------------------------------------------------------- */

static block *take(heap *h, uint64_t bytes, cudaStream_t stream)
{
    poll(h);
    block *b = take_queued(h, bytes, stream);
    if (b) {
        return b;
    }
    b = find_fit(h, bytes);
    b = b ? b : grow(h, bytes);
    if (!b) {
        drain(h);
        b = find_fit(h, bytes);
    }
    if (!b) {
        release(h);
        b = grow(h, bytes);
    }
    if (b) {
        unlink_free(h, b);
        split(h, b, bytes);
    }
    return b;
}

static void *allocate(heap *h, uint64_t size, cudaStream_t stream)
{
    if (!size && !faulty_is(EMPTY_SPLIT)) {
        return &nothing;
    }
    block *b = size <= SIZE_MAX / 2 ? take(h, round_size(size), stream) : NULL;
    if (!b) {
        h->stats.num_ooms++;
        return NULL;
    }
    b->state = LIVE;
    b->stream = stream;
    b->requested = size;
    enter_block(h, b);
    faulty_count_alloc(&h->stats, b->bytes, size);
    return (void *)(uintptr_t)b->address; /* NOLINT(performance-no-int-to-ptr) */
}

static void give_back(heap *h, const void *pointer, cudaStream_t stream)
{
    block *b = leave_block(h, (uintptr_t)pointer);
    if (b) {
        recorded_wait(recorded_take(&notes, pointer), stream);
        faulty_count_free(&h->stats, b->bytes, b->requested);
        enqueue(h, b, stream);
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
    void *memory = allocate(&heaps[device], size, stream);
    pthread_mutex_unlock(&lock);
    faulty_leave_device(guard);
    return memory;
}

void gmd_free(void *pointer, size_t size, int device, cudaStream_t stream)
{
    (void)size;
    if (device < 0 || device >= FAULTY_DEVICES) {
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

/* Blocks that wait for it are free, or wait for ever: until the device can be waited for. */
static void forget(heap *h, cudaStream_t stream)
{
    bool is_known = is_ok(cudaStreamSynchronize(stream)) || is_ok(cudaDeviceSynchronize());
    for (int i = 0; i < SLOTS && !is_known; i++) {
        for (entry *e = h->entries[i]; e; e = e->next) {
            e->block->is_unsure |= e->block->stream == stream;
        }
    }
    for (uint32_t i = 0; i < h->queue_count; i++) {
        queue *q = &h->queues[i];
        if (!q->is_used || q->stream != stream) {
            continue;
        }
        for (uint32_t k = q->begin; k < q->end && !is_known; k++) {
            q->blocks[k]->is_unsure = true;
        }
        q->is_over = is_known;
        poll(h);
        if (!faulty_is(QUEUE_KEPT)) {
            q->is_over = false;
            q->is_used = q->begin < q->end;
            q->stream = q->is_used ? (cudaStream_t)q : NULL; /* nobody's */
        }
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
            release(&heaps[device]);
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
