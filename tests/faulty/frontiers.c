/* frontiers.c - best fit in a treap; free neighbours are merged, whatever their streams. A freed
 * block needs a tick of its stream, and one of each stream that was recorded for it; a merged block
 * needs what both did, up to eight. A stream that takes a block waits for what it needs and does
 * not know to be over: each lane keeps, as a vector of ticks, how far it is ordered behind the
 * others. Events are recorded only then: the latest one of a lane, its mark, serves all who need no
 * later tick. What a lane knew at its mark is known to those who wait for it.
 *
 * There are sixteen lanes; a further stream takes the place of the one that was idle for longest,
 * for which the host waits. All blocks of 0 B share one block.
 *
 * Defects, each with what goes wrong; docs/planted-defects.md has the rest. */
#include "faulty.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    MARK_NOW, /* who waits for a mark counts as ordered behind all ticks that there are by now */
    JOINS_LATEST, /* who waits for a mark learns what its lane knows by now */
    NINTH_NEED,   /* the ninth tick that a block needs takes the place of the eighth */
    TICK_16,      /* the ticks that blocks need are kept in 16 bits */
    SETTLE_BLIND, /* that the host's wait for a ninth tick failed is not looked at */
    LIMIT_CLEARS, /* a request over the limit clears the thread's last error */
    BOOKS_LOST,   /* the books of a block that is merged with the one before it are not freed */
    NOTE_STAYS,   /* the note of a stream that is gone stays, and a new one of its handle is none */
    KNOWN_KEPT, /* what was known of a stream that is gone is known of the next one in its place */
    LANE_EXPIRES, /* a lane that was idle for 30 seconds gives its place away without a wait */
    EMPTIES_BYTE, /* blocks of 0 B are counted in 8 bits */
    SPLIT_FIRST,  /* the remainder of a split block needs only the first tick of the whole */
};
const char *const faulty_defects[] = {
    "mark_now",     "joins_latest", "ninth_need", "tick_16",    "settle_blind",
    "limit_clears", "books_lost",   "note_stays", "known_kept", "lane_expires",
    "empties_byte", "split_first",  NULL};

#define UNIT     ((uint64_t)512)
#define PAGE     ((uint64_t)2 << 20)
#define SEGMENT  ((uint64_t)16 << 20)
#define OWN_FROM (SEGMENT / 2)

enum { LANES = 16, NEEDS = 8, TRIED = 16, IDLE = 30 };

typedef enum state { LIVE, FREE, LOST } state;

typedef struct need {
    int lane;
    uint64_t tick;
} need;

typedef struct note note;
struct note {
    note *next;
    cudaStream_t stream;
    bool is_over; /* the stream is gone, and its work done */
};

typedef struct segment segment;
typedef struct block block;
struct block {
    segment *segment;
    block *before, *after; /* in the segment */
    block *less, *more;    /* FREE: in the treap */
    uint64_t address, bytes, requested;
    state state; /* LOST: what it needs cannot be waited for, until its segment goes back */
    note *notes; /* LIVE: recorded streams */
    bool is_unsure;
    uint32_t need_count;
    need needs[NEEDS];
};

struct segment {
    segment *next;
    uint64_t address, bytes;
    uint32_t live;
    block *first;
};

typedef struct lane {
    cudaStream_t stream;
    bool is_used, is_lost; /* is_lost: it could not be waited for */
    uint64_t now, done;    /* ticks; done: over for the host */
    uint64_t known[LANES];
    struct {
        cudaEvent_t event; /* NULL: none */
        uint64_t tick, known[LANES];
    } mark;
    time_t used_at;
} lane;

typedef struct heap {
    bool is_used;
    segment *segments;
    block *root; /* of the treap */
    lane lanes[LANES];
    block *empty; /* for all blocks of 0 B */
    uint64_t empties;
    uint64_t limit; /* of reserved bytes; 0: none */
    gmd_stats stats;
} heap;

static heap heaps[FAULTY_DEVICES];
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

/* --- the treap: by bytes, then by address -------------------------------------------------- */

static uint64_t weight(const block *b)
{
    return (b->address / UNIT + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

static bool is_below(const block *b, uint64_t bytes, uint64_t address)
{
    return b->bytes < bytes || (b->bytes == bytes && b->address < address);
}

static void divide(block *tree, uint64_t bytes, uint64_t address, block **low, block **high)
{
    if (!tree) {
        *low = *high = NULL;
    } else if (is_below(tree, bytes, address)) {
        *low = tree;
        divide(tree->more, bytes, address, &tree->more, high);
    } else {
        *high = tree;
        divide(tree->less, bytes, address, low, &tree->less);
    }
}

static block *unite(block *low, block *high)
{
    if (!low || !high) {
        return low ? low : high;
    }
    if (weight(low) > weight(high)) {
        low->more = unite(low->more, high);
        return low;
    }
    high->less = unite(low, high->less);
    return high;
}

static void link_free(heap *h, block *b)
{
    block *low, *high;
    b->state = b->is_unsure ? LOST : FREE;
    b->less = b->more = NULL;
    if (b->state == FREE) {
        divide(h->root, b->bytes, b->address, &low, &high);
        h->root = unite(unite(low, b), high);
    }
}

static void unlink_free(heap *h, const block *b)
{
    block *low, *high, *own;
    divide(h->root, b->bytes, b->address, &low, &high);
    divide(high, b->bytes, b->address + 1, &own, &high);
    h->root = unite(low, high);
}

/* The least block from there on. */
static block *first_from(const heap *h, uint64_t bytes, uint64_t address)
{
    block *found = NULL;
    for (block *b = h->root; b;) {
        bool is_less = is_below(b, bytes, address);
        found = is_less ? found : b;
        b = is_less ? b->more : b->less;
    }
    return found;
}

/* --- lanes --------------------------------------------------------------------------------- */

static bool wait_on_host(cudaStream_t stream)
{
    return is_ok(cudaStreamSynchronize(stream)) || is_ok(cudaDeviceSynchronize());
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* The host has waited for all of it, and so for what it was behind. */
static void end_lane(heap *h, lane *own)
{
    own->done = own->now;
    for (int i = 0; i < LANES; i++) {
        h->lanes[i].done = later(h->lanes[i].done, own->known[i]);
    }
}

static bool settle_lane(heap *h, lane *l)
{
    if (l->is_lost || !is_ok(cudaStreamSynchronize(l->stream))) {
        return false;
    }
    end_lane(h, l);
    return true;
}

static void drop_mark(lane *l)
{
    if (l->mark.event) {
        is_ok(cudaEventDestroy(l->mark.event));
        l->mark.event = NULL;
    }
}

static void drop_needs(block *b, int lane_index, uint64_t up_to)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < b->need_count; i++) {
        if (b->needs[i].lane != lane_index || b->needs[i].tick > up_to) {
            b->needs[kept++] = b->needs[i];
        }
    }
    b->need_count = kept;
}

/* Its work is over, and its place is free for another stream, which begins at tick 0. */
static void drop_lane(heap *h, int index)
{
    lane *l = &h->lanes[index];
    drop_mark(l);
    for (segment *s = h->segments; s; s = s->next) {
        for (block *b = s->first; b; b = b->after) {
            drop_needs(b, index, UINT64_MAX);
        }
    }
    for (int i = 0; i < LANES && !faulty_is(KNOWN_KEPT); i++) {
        h->lanes[i].known[index] = h->lanes[i].mark.known[index] = 0;
    }
    *l = (lane){0};
}

/* -1: every other lane is lost. */
static int free_place(heap *h)
{
    for (;;) {
        int idle = -1;
        for (int i = 0; i < LANES; i++) {
            if (!h->lanes[i].is_used) {
                return i;
            }
            if (!h->lanes[i].is_lost &&
                (idle < 0 || h->lanes[i].used_at < h->lanes[idle].used_at)) {
                idle = i;
            }
        }
        lane *l = idle < 0 ? NULL : &h->lanes[idle];
        bool is_expired = l && faulty_is(LANE_EXPIRES) && now() - l->used_at > IDLE;
        if (l && (is_expired || settle_lane(h, l))) {
            drop_lane(h, idle);
        } else if (l) {
            l->is_lost = true;
        } else {
            return -1;
        }
    }
}

static int lane_of(heap *h, cudaStream_t stream)
{
    int index = 0;
    while (index < LANES && !(h->lanes[index].is_used && h->lanes[index].stream == stream)) {
        index++;
    }
    index = index < LANES ? index : free_place(h);
    if (index >= 0) {
        h->lanes[index].is_used = true;
        h->lanes[index].stream = stream;
        h->lanes[index].used_at = now();
    }
    return index;
}

/* --- what blocks need ---------------------------------------------------------------------- */

static void drop_done(const heap *h, block *b)
{
    for (int i = 0; i < LANES; i++) {
        drop_needs(b, i, h->lanes[i].done);
    }
}

static void add_need(heap *h, block *b, need n)
{
    for (uint32_t i = 0; i < b->need_count; i++) {
        if (b->needs[i].lane == n.lane) {
            b->needs[i].tick = later(b->needs[i].tick, n.tick);
            return;
        }
    }
    if (b->need_count == NEEDS && faulty_is(NINTH_NEED)) {
        b->need_count--;
    } else if (b->need_count == NEEDS) {
        int oldest = b->needs[0].lane;
        bool is_over = settle_lane(h, &h->lanes[oldest]);
        b->is_unsure |= !is_over && !faulty_is(SETTLE_BLIND);
        drop_needs(b, oldest, UINT64_MAX);
        drop_done(h, b);
    }
    b->needs[b->need_count++] = n;
}

static void need_stream(heap *h, block *b, cudaStream_t stream)
{
    int index = lane_of(h, stream);
    if (index < 0) {
        b->is_unsure |= !wait_on_host(stream);
        return;
    }
    uint64_t tick = ++h->lanes[index].now;
    add_need(h, b, (need){index, faulty_is(TICK_16) ? tick & 0xffff : tick});
}

static bool is_behind(const heap *h, int own, need n)
{
    uint64_t known = own >= 0 ? h->lanes[own].known[n.lane] : 0;
    return n.lane == own || n.tick <= later(known, h->lanes[n.lane].done);
}

static bool make_mark(lane *l)
{
    drop_mark(l);
    if (!is_ok(cudaEventCreateWithFlags(&l->mark.event, cudaEventDisableTiming))) {
        l->mark.event = NULL;
        return false;
    }
    if (!is_ok(cudaEventRecord(l->mark.event, l->stream))) {
        drop_mark(l);
        return false;
    }
    l->mark.tick = l->now;
    memcpy(l->mark.known, l->known, sizeof l->known);
    return true;
}

/* False: the lane cannot be put in order behind it. */
static bool order(heap *h, int own, need n)
{
    lane *to = &h->lanes[own], *from = &h->lanes[n.lane];
    if (from->is_lost) {
        return false;
    }
    if ((!from->mark.event || from->mark.tick < n.tick) && !make_mark(from)) {
        return settle_lane(h, from);
    }
    if (!is_ok(cudaStreamWaitEvent(to->stream, from->mark.event, 0))) {
        return settle_lane(h, from);
    }
    const uint64_t *learnt = faulty_is(JOINS_LATEST) ? from->known : from->mark.known;
    for (int i = 0; i < LANES; i++) {
        to->known[i] = later(to->known[i], learnt[i]);
    }
    to->known[n.lane] = later(to->known[n.lane], faulty_is(MARK_NOW) ? from->now : from->mark.tick);
    return true;
}

static bool is_ready(const heap *h, const block *b, int own)
{
    uint32_t i = 0;
    while (i < b->need_count && is_behind(h, own, b->needs[i])) {
        i++;
    }
    return i == b->need_count;
}

static bool make_ready(heap *h, const block *b, int own)
{
    for (uint32_t i = 0; i < b->need_count; i++) {
        if (!is_behind(h, own, b->needs[i]) && (own < 0 || !order(h, own, b->needs[i]))) {
            return false;
        }
    }
    return true;
}

/* --- blocks and segments ------------------------------------------------------------------- */

static block *new_block(segment *s, uint64_t address, uint64_t bytes)
{
    block *b = made(malloc(sizeof *b));
    *b = (block){.segment = s, .address = address, .bytes = bytes};
    return b;
}

/* `b` and the block behind it, which is in no tree, become one that needs what both did. */
static void join(heap *h, block *b, block *behind, bool is_kept)
{
    b->bytes += behind->bytes;
    b->is_unsure |= behind->is_unsure;
    b->after = behind->after;
    if (b->after) {
        b->after->before = b;
    }
    for (uint32_t i = 0; i < behind->need_count; i++) {
        if (behind->needs[i].tick > h->lanes[behind->needs[i].lane].done) {
            add_need(h, b, behind->needs[i]);
        }
    }
    if (!is_kept) {
        free(behind);
    }
}

static void merge(heap *h, block *b)
{
    block *before = b->is_unsure ? NULL : b->before, *after = b->is_unsure ? NULL : b->after;
    if (after && after->state == FREE) {
        unlink_free(h, after);
        join(h, b, after, false);
    }
    if (before && before->state == FREE) {
        unlink_free(h, before);
        join(h, before, b, faulty_is(BOOKS_LOST));
        b = before;
    }
    link_free(h, b);
}

/* The rest needs what the whole did. */
static void split(heap *h, block *b, uint64_t bytes)
{
    if (b->bytes == bytes) {
        return;
    }
    block *rest = new_block(b->segment, b->address + bytes, b->bytes - bytes);
    rest->need_count = faulty_is(SPLIT_FIRST) && b->need_count ? 1 : b->need_count;
    memcpy(rest->needs, b->needs, sizeof b->needs);
    rest->before = b;
    rest->after = b->after;
    if (rest->after) {
        rest->after->before = rest;
    }
    b->after = rest;
    b->bytes = bytes;
    link_free(h, rest);
}

/* Without `waits`, one of the least that needs no wait. */
static block *take_fit(heap *h, uint64_t bytes, int own, bool waits)
{
    block *b = first_from(h, bytes, 0);
    for (int tried = 0; b && (waits || tried < TRIED); tried++) {
        if (waits ? make_ready(h, b, own) : is_ready(h, b, own)) {
            unlink_free(h, b);
            split(h, b, bytes);
            b->need_count = 0;
            return b;
        }
        b = first_from(h, b->bytes, b->address + 1);
    }
    return NULL;
}

static uint64_t round_size(uint64_t size)
{
    return size ? (size + UNIT - 1) / UNIT * UNIT : UNIT;
}

static uint64_t segment_bytes(uint64_t bytes)
{
    return bytes >= OWN_FROM ? (bytes + PAGE - 1) / PAGE * PAGE : SEGMENT;
}

static bool grow(heap *h, uint64_t bytes)
{
    uint64_t size = segment_bytes(bytes);
    if (h->limit && h->stats.reserved_bytes + size > h->limit) {
        if (faulty_is(LIMIT_CLEARS)) {
            cudaGetLastError();
        }
        return false;
    }
    void *memory = faulty_take(size);
    if (!memory) {
        return false;
    }
    segment *s = made(malloc(sizeof *s));
    *s = (segment){.next = h->segments, .address = (uintptr_t)memory, .bytes = size};
    s->first = new_block(s, s->address, size);
    h->segments = s;
    h->is_used = true;
    link_free(h, s->first);
    faulty_count_segment(&h->stats, size);
    return true;
}

/* What has no live block goes back: cudaFree waits for all work. */
static void release(heap *h)
{
    for (segment **link = &h->segments; *link;) {
        segment *s = *link;
        void *memory = (void *)(uintptr_t)s->address; /* NOLINT(performance-no-int-to-ptr) */
        if (s->live || !is_ok(cudaFree(memory))) {
            link = &s->next;
            continue;
        }
        *link = s->next;
        faulty_count_segment_freed(&h->stats, s->bytes);
        for (block *b = s->first, *after; b; b = after) {
            after = b->after;
            if (b->state == FREE) {
                unlink_free(h, b);
            }
            free(b);
        }
        free(s);
    }
}

/* --- requests ------------------------------------------------------------------------------ */

static block *take(heap *h, uint64_t bytes, cudaStream_t stream)
{
    int own = lane_of(h, stream);
    block *b = take_fit(h, bytes, own, false);
    b = b ? b : take_fit(h, bytes, own, true);
    if (!b && grow(h, bytes)) {
        b = take_fit(h, bytes, own, true);
    }
    if (!b) {
        release(h);
        b = grow(h, bytes) ? take_fit(h, bytes, own, true) : NULL;
    }
    return b;
}

static block *allocate(heap *h, uint64_t size, cudaStream_t stream)
{
    block *b = size <= SIZE_MAX / 2 ? take(h, round_size(size), stream) : NULL;
    if (!b) {
        h->stats.num_ooms++;
        return NULL;
    }
    b->state = LIVE;
    b->requested = size;
    b->segment->live++;
    faulty_count_alloc(&h->stats, b->bytes, size);
    return b;
}

static uint64_t count_empties(uint64_t count)
{
    return faulty_is(EMPTIES_BYTE) ? count & 0xff : count;
}

static block *allocate_empty(heap *h, cudaStream_t stream)
{
    if (!h->empties) {
        h->empty = allocate(h, 0, stream);
    }
    h->empties = count_empties(h->empties + (h->empty != NULL));
    return h->empty;
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

static void free_block(heap *h, block *b, cudaStream_t stream)
{
    for (note *n = b->notes, *next; n; n = next) {
        next = n->next;
        if (!n->is_over) {
            need_stream(h, b, n->stream);
        }
        free(n);
    }
    b->notes = NULL;
    need_stream(h, b, stream);
    faulty_count_free(&h->stats, b->bytes, b->requested);
    b->segment->live--;
    merge(h, b);
}

static void give_back(heap *h, const void *pointer, cudaStream_t stream)
{
    block *b = find(h, (uintptr_t)pointer);
    if (b && h->empties && b == h->empty) {
        h->empties = count_empties(h->empties - 1);
        if (h->empties) {
            return;
        }
    }
    if (b) {
        free_block(h, b, stream);
    }
}

static void record(block *b, cudaStream_t stream)
{
    note *n = b->notes;
    while (n && n->stream != stream) {
        n = n->next;
    }
    if (!n) {
        n = made(malloc(sizeof *n));
        *n = (note){.next = b->notes, .stream = stream};
        b->notes = n;
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
    heap *h = &heaps[device];
    const block *b = size ? allocate(h, size, stream) : allocate_empty(h, stream);
    uint64_t address = b ? b->address : 0;
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
    block *b = NULL;
    pthread_mutex_lock(&lock);
    for (int device = 0; device < FAULTY_DEVICES && !b; device++) {
        b = find(&heaps[device], (uintptr_t)pointer);
    }
    if (b) {
        record(b, stream);
    }
    pthread_mutex_unlock(&lock);
}

/* What was recorded of it is over, or the block is used no more. */
static void forget_notes(block *b, cudaStream_t stream, bool is_over)
{
    for (note **link = &b->notes; *link;) {
        note *n = *link;
        if (n->stream != stream) {
            link = &n->next;
        } else if (is_over && faulty_is(NOTE_STAYS)) {
            n->is_over = true;
            link = &n->next;
        } else {
            b->is_unsure |= !is_over;
            *link = n->next;
            free(n);
        }
    }
}

static void forget(heap *h, cudaStream_t stream)
{
    bool is_over = wait_on_host(stream);
    for (segment *s = h->segments; s; s = s->next) {
        for (block *b = s->first; b; b = b->after) {
            forget_notes(b, stream, is_over);
        }
    }
    for (int i = 0; i < LANES; i++) {
        lane *l = &h->lanes[i];
        if (l->is_used && l->stream == stream && is_over) {
            end_lane(h, l);
            drop_lane(h, i);
        } else if (l->is_used && l->stream == stream) {
            l->is_lost = true;
            l->stream = (cudaStream_t)l; /* no stream's handle */
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
    forget(&heaps[device], stream);
    pthread_mutex_unlock(&lock);
    faulty_leave_device(guard);
}

void gmd_empty_cache(void)
{
    pthread_mutex_lock(&lock);
    for (int device = 0; device < FAULTY_DEVICES; device++) {
        heap *h = &heaps[device];
        if (h->is_used) {
            faulty_guard guard = faulty_enter_device(device);
            release(h);
            for (int i = 0; i < LANES; i++) {
                drop_mark(&h->lanes[i]);
            }
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
