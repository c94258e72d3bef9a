/* graph_heaps.c - spans of 64 pages of 32 KiB with a map of the pages in use, in heaps: the
 * device's own, and one for each private pool. A freed block of the device's heap is in the open
 * batch of its stream, and in that of each stream recorded for it. With the next request batches
 * are sealed with an event, but not while their stream is captured into a graph; with the last of
 * its batches over, the pages of a block are free. Short of memory, the host waits for them.
 *
 * The spans of a pool are each for one of its streams, which uses their pages again at once. They
 * stay for as long as the pool is held, if graphs were captured into it. Spans that were empty for
 * 30 seconds go back with the next request. A block of more than 2 MiB has a span of its own.
 *
 * A freed block is active until other streams use it no more (promise `prompt`). A block of 0 B has
 * a page.
 *
 * Defects, each with what goes wrong; docs/planted-defects.md has the rest. */
#include "faulty.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum {
    REOPENED,       /* a pool that is begun again counts as one without graphs */
    FIFTH_STREAM,   /* the fifth stream of a pool uses the spans of the fourth */
    SEALS_CAPTURED, /* whether a stream is captured is not asked when its batch is sealed */
    IDLE_POOL,      /* empty spans go back after 30 seconds, whatever graphs work in */
    END_BLIND, /* at a pool's end, that the event of a batch was not recorded is not looked at */
    CAPTURE_CLEARS, /* a free on a captured stream clears the thread's last error */
    BATCH_BYTE,     /* the blocks of a batch are counted in 8 bits */
    POLL_STOPS,     /* streams behind one with a batch that is not over are not looked at */
    NAMES_GROW,     /* the place of a pool that is gone is not used again */
    OFTEN_REFUSED,  /* what is free goes back only once in five seconds */
    EMPTY_RUN,      /* a block of 0 B has no page, and the address of the next one */
};
const char *const faulty_defects[] = {
    "reopened",   "fifth_stream", "seals_captured", "idle_pool",     "end_blind", "capture_clears",
    "batch_byte", "poll_stops",   "names_grow",     "often_refused", "empty_run", NULL};

#define PAGE  ((uint64_t)32 << 10)
#define SPAN  ((uint64_t)2 << 20)
#define WHOLE UINT64_MAX /* all pages of a span */

enum { PAGES = 64, STREAMS = 32, IDLE = 30, OFTEN = 5, NO_STREAM = -1 };

typedef struct pool pool;
struct pool {
    pool *next;
    uint64_t id[2];
    uint32_t holders; /* 0: its name is gone */
    bool is_captured; /* graphs work in its memory */
    cudaStream_t streams[STREAMS];
    int stream_count;
};

typedef struct span {
    struct span *next;
    uint64_t address, bytes, used; /* used: pages */
    pool *pool;                    /* NULL: the device's heap */
    int stream;                    /* of the pool; NO_STREAM: it serves nobody any more */
    uint32_t blocks;               /* live ones, and those that wait */
    time_t empty_since;            /* 0: it is not */
} span;

typedef struct note note;
struct note {
    note *next;
    cudaStream_t stream;
};

typedef struct block block;
struct block {
    block *next;
    span *span;
    uint64_t address, pages, requested;
    note *notes;
    cudaStream_t stream;    /* that it was freed on */
    uint32_t waits, others; /* batches that it is in; of those, such of other streams */
    bool is_freed, is_active, is_unsure;
};

typedef struct batch batch;
struct batch {
    batch *next; /* later ones of the stream */
    cudaEvent_t event;
    block **blocks;
    uint32_t count, capacity;
};

typedef struct lane lane;
struct lane {
    lane *next;
    cudaStream_t stream;
    batch *open, *sealed;
};

typedef struct heap {
    bool is_used;
    span *spans;
    block *blocks; /* live ones, and those that wait */
    lane *lanes;
    pool *pools, *open;
    gmd_stream_filter *accepts;
    void *context;
    time_t released_at;
    uint64_t limit; /* of reserved bytes; 0: none */
    uint64_t active, active_peak;
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

static bool is_stream_captured(cudaStream_t stream)
{
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    return !is_ok(cudaStreamIsCapturing(stream, &status)) || status != cudaStreamCaptureStatusNone;
}

/* --- calls --------------------------------------------------------------------------------- */

/* Within a call the device is the current one, the books are the caller's alone, and what a capture
 * of another stream forbids may be done. */
typedef struct call {
    faulty_guard guard;
    enum cudaStreamCaptureMode mode;
    bool is_relaxed;
} call;

static call enter(int device)
{
    call c = {.guard = faulty_enter_device(device), .mode = cudaStreamCaptureModeRelaxed};
    pthread_mutex_lock(&lock);
    c.is_relaxed = is_ok(cudaThreadExchangeStreamCaptureMode(&c.mode));
    return c;
}

static void leave(call *c)
{
    if (c->is_relaxed) {
        is_ok(cudaThreadExchangeStreamCaptureMode(&c->mode));
    }
    pthread_mutex_unlock(&lock);
    faulty_leave_device(c->guard);
}

/* --- spans --------------------------------------------------------------------------------- */

static bool is_for_graphs(const span *s)
{
    return s->pool && s->pool->holders && s->pool->is_captured;
}

static bool drop_span(heap *h, span **link)
{
    span *s = *link;
    void *memory = (void *)(uintptr_t)s->address; /* NOLINT(performance-no-int-to-ptr) */
    if (!is_ok(cudaFree(memory))) {
        return false;
    }
    faulty_count_segment_freed(&h->stats, s->bytes);
    *link = s->next;
    free(s);
    return true;
}

/* Empty spans go back, but those that graphs work in. */
static void release(heap *h, time_t empty_before)
{
    for (span **link = &h->spans; *link;) {
        span *s = *link;
        bool is_meant = !s->blocks && (!empty_before || s->empty_since < empty_before);
        bool is_kept = is_for_graphs(s) && !(empty_before && faulty_is(IDLE_POOL));
        if (!is_meant || is_kept || !drop_span(h, link)) {
            link = &s->next;
        }
    }
}

static uint64_t pages_of(uint64_t size)
{
    return (size + PAGE - 1) / PAGE + (!size && !faulty_is(EMPTY_RUN));
}

static uint64_t span_bytes(uint64_t pages)
{
    return pages > PAGES ? (pages * PAGE + SPAN - 1) / SPAN * SPAN : SPAN;
}

/* So many pages from there on; all of a larger block's. */
static uint64_t run(uint64_t pages, uint64_t at)
{
    uint64_t mask = pages < PAGES ? (UINT64_C(1) << pages) - 1 : WHOLE;
    return at < PAGES ? mask << at : 0;
}

/* The first run of that many free pages; PAGES: there is none. */
static uint64_t find_run(const span *s, uint64_t pages)
{
    uint64_t at = 0;
    if (s->bytes > SPAN || pages > PAGES) {
        return s->bytes == span_bytes(pages) && pages > PAGES && !s->used ? 0 : PAGES;
    }
    while (at + pages <= PAGES && s->used & run(pages, at)) {
        at++;
    }
    return at + pages <= PAGES ? at : PAGES;
}

static span *new_span(heap *h, uint64_t pages, pool *owner, int stream)
{
    uint64_t bytes = span_bytes(pages);
    void *memory = NULL;
    if ((h->limit && h->stats.reserved_bytes + bytes > h->limit) ||
        !(memory = faulty_take(bytes))) {
        return NULL;
    }
    span *s = made(malloc(sizeof *s));
    *s = (span){.next = h->spans, .address = (uintptr_t)memory, .bytes = bytes, .pool = owner};
    s->stream = stream;
    h->spans = s;
    h->is_used = true;
    faulty_count_segment(&h->stats, bytes);
    return s;
}

static span *find_span(heap *h, uint64_t pages, const pool *owner, int stream)
{
    span *s = h->spans;
    while (s && !(s->pool == owner && s->stream == stream && find_run(s, pages) < PAGES)) {
        s = s->next;
    }
    return s;
}

/* --- blocks -------------------------------------------------------------------------------- */

static uint64_t bytes_of(const block *b)
{
    return b->pages > PAGES ? b->span->bytes : b->pages * PAGE;
}

static void make_inactive(heap *h, block *b)
{
    h->active -= b->is_active ? bytes_of(b) : 0;
    b->is_active = false;
}

/* Nobody uses its pages any more. */
static void end_block(heap *h, block *b)
{
    block **link = &h->blocks;
    while (*link != b) {
        link = &(*link)->next;
    }
    *link = b->next;
    span *s = b->span;
    uint64_t at = (b->address - s->address) / PAGE;
    make_inactive(h, b);
    if (!b->is_unsure) { /* else they stay in use until the span goes */
        s->used &= ~run(b->pages, at);
    }
    s->blocks--;
    s->empty_since = s->blocks ? 0 : now();
    free(b);
}

static lane *lane_of(heap *h, cudaStream_t stream)
{
    lane *l = h->lanes;
    while (l && l->stream != stream) {
        l = l->next;
    }
    if (!l) {
        l = made(calloc(1, sizeof *l));
        l->stream = stream;
        lane **last = &h->lanes;
        while (*last) {
            last = &(*last)->next;
        }
        *last = l;
    }
    return l;
}

static void leave_batch(heap *h, block *b, cudaStream_t stream)
{
    b->waits--;
    b->others -= stream != b->stream;
    if (!b->others) {
        make_inactive(h, b);
    }
    if (!b->waits) {
        end_block(h, b);
    }
}

static void end_batch(heap *h, batch *b, cudaStream_t stream)
{
    for (uint32_t i = 0; i < b->count; i++) {
        leave_batch(h, b->blocks[i], stream);
    }
    if (b->event) {
        is_ok(cudaEventDestroy(b->event));
    }
    free(b->blocks);
    free(b);
}

/* Where no event can be had the host waits; where it cannot, the batch stays open. */
static void seal(heap *h, lane *l, bool is_end)
{
    batch *b = l->open;
    if (!b || (!faulty_is(SEALS_CAPTURED) && is_stream_captured(l->stream))) {
        return;
    }
    bool is_sealed = is_ok(cudaEventCreateWithFlags(&b->event, cudaEventDisableTiming));
    if (is_sealed && !is_ok(cudaEventRecord(b->event, l->stream)) &&
        !(is_end && faulty_is(END_BLIND))) {
        is_ok(cudaEventDestroy(b->event));
        is_sealed = false;
    }
    if (is_sealed) {
        batch **last = &l->sealed;
        while (*last) {
            last = &(*last)->next;
        }
        *last = b;
        l->open = NULL;
        return;
    }
    b->event = NULL;
    if (is_ok(cudaStreamSynchronize(l->stream))) {
        l->open = NULL;
        end_batch(h, b, l->stream);
    }
}

static void enter_batch(heap *h, block *b, cudaStream_t stream)
{
    lane *l = lane_of(h, stream);
    batch *open = l->open;
    if (!open) {
        open = l->open = made(calloc(1, sizeof *open));
    }
    if (open->count == open->capacity) {
        open->capacity = open->capacity ? 2 * open->capacity : 8;
        open->blocks = made(realloc(open->blocks, open->capacity * sizeof *open->blocks));
    }
    open->blocks[open->count++] = b;
    if (faulty_is(BATCH_BYTE)) {
        open->count &= 0xff;
    }
    b->waits++;
    b->others += stream != b->stream;
    seal(h, l, false);
}

static void seal_all(heap *h, bool is_end)
{
    for (lane *l = h->lanes; l; l = l->next) {
        seal(h, l, is_end);
    }
}

static bool is_event_over(cudaEvent_t event)
{
    cudaError_t answer = cudaEventQuery(event);
    return answer == cudaErrorNotReady ? false : is_ok(answer);
}

static void end_first(heap *h, lane *l)
{
    batch *b = l->sealed;
    l->sealed = b->next;
    end_batch(h, b, l->stream);
}

static void poll(heap *h)
{
    seal_all(h, false);
    for (lane *l = h->lanes; l; l = l->next) {
        while (l->sealed && is_event_over(l->sealed->event)) {
            end_first(h, l);
        }
        if (l->sealed && faulty_is(POLL_STOPS)) {
            return;
        }
    }
}

/* The host waits for what is sealed. */
static void drain(heap *h)
{
    for (lane *l = h->lanes; l; l = l->next) {
        while (l->sealed && is_ok(cudaEventSynchronize(l->sealed->event))) {
            end_first(h, l);
        }
    }
}

/* --- private pools ------------------------------------------------------------------------- */

static pool *find_pool(const heap *h, const uint64_t id[2])
{
    pool *p = h->pools;
    while (p && !(p->holders && p->id[0] == id[0] && p->id[1] == id[1])) {
        p = p->next;
    }
    return p;
}

static bool has_spans(const heap *h, const pool *p)
{
    const span *s = h->spans;
    while (s && s->pool != p) {
        s = s->next;
    }
    return s;
}

/* In the place of one that is gone, if there is any. */
static pool *make_pool(heap *h, const uint64_t id[2])
{
    pool *p = faulty_is(NAMES_GROW) ? NULL : h->pools;
    while (p && (p->holders || has_spans(h, p))) {
        p = p->next;
    }
    pool *next = p ? p->next : h->pools;
    if (!p) {
        p = h->pools = made(malloc(sizeof *p));
    }
    *p = (pool){.next = next, .id = {id[0], id[1]}};
    return p;
}

/* Which of the pool's streams it is; STREAMS: one too many, whose spans serve it once. */
static int place_of(pool *p, cudaStream_t stream)
{
    int most = faulty_is(FIFTH_STREAM) ? 4 : STREAMS, at = 0;
    while (at < p->stream_count && p->streams[at] != stream) {
        at++;
    }
    if (at == most) {
        return faulty_is(FIFTH_STREAM) ? most - 1 : NO_STREAM;
    }
    if (at == p->stream_count) {
        p->streams[p->stream_count++] = stream;
    }
    return at;
}

static pool *pool_for(const heap *h, cudaStream_t stream)
{
    return h->open && (!h->accepts || h->accepts(h->context, stream)) ? h->open : NULL;
}

/* Its spans serve nobody any more. */
static void end_pool(heap *h, const pool *p)
{
    for (span *s = h->spans; s; s = s->next) {
        s->stream = s->pool == p ? NO_STREAM : s->stream;
    }
    for (span **link = &h->spans; *link;) {
        if ((*link)->pool != p || (*link)->blocks || !drop_span(h, link)) {
            link = &(*link)->next;
        }
    }
}

/* --- requests ------------------------------------------------------------------------------ */

static span *make_room(heap *h, uint64_t pages, pool *owner, int place)
{
    span *s = new_span(h, pages, owner, place);
    if (!s) {
        drain(h);
        s = place == NO_STREAM ? NULL : find_span(h, pages, owner, place);
    }
    if (!s && !(faulty_is(OFTEN_REFUSED) && h->released_at && now() - h->released_at < OFTEN)) {
        h->released_at = now();
        release(h, 0);
        s = new_span(h, pages, owner, place);
    }
    return s;
}

static block *take(heap *h, uint64_t size, cudaStream_t stream)
{
    uint64_t pages = pages_of(size);
    pool *owner = pool_for(h, stream);
    int place = owner ? place_of(owner, stream) : 0;
    if (owner && is_stream_captured(stream)) {
        owner->is_captured = true;
    }
    span *s = place == NO_STREAM ? NULL : find_span(h, pages, owner, place);
    s = s ? s : make_room(h, pages, owner, place);
    if (!s) {
        return NULL;
    }
    uint64_t at = find_run(s, pages);
    block *b = made(calloc(1, sizeof *b));
    *b = (block){.next = h->blocks, .span = s, .pages = pages, .requested = size};
    b->address = s->address + at * PAGE;
    s->used |= run(pages, at);
    s->blocks++;
    h->blocks = b;
    return b;
}

static void *allocate(heap *h, uint64_t size, cudaStream_t stream)
{
    poll(h);
    release(h, now() > IDLE ? now() - IDLE : 1);
    block *b = size <= SIZE_MAX / 2 ? take(h, size, stream) : NULL;
    if (!b) {
        h->stats.num_ooms++;
        return NULL;
    }
    faulty_count_alloc(&h->stats, bytes_of(b), size);
    b->is_active = true;
    h->active += bytes_of(b);
    h->active_peak = h->active > h->active_peak ? h->active : h->active_peak;
    return (void *)(uintptr_t)b->address; /* NOLINT(performance-no-int-to-ptr) */
}

static block *find(const heap *h, uint64_t address)
{
    block *b = h->blocks;
    while (b && !(b->address == address && !b->is_freed)) {
        b = b->next;
    }
    return b;
}

static void free_block(heap *h, block *b, cudaStream_t stream)
{
    span *s = b->span;
    const cudaStream_t *owner =
        s->pool && s->stream != NO_STREAM ? &s->pool->streams[s->stream] : NULL;
    bool is_own = owner && (*owner == stream || faulty_is(FIFTH_STREAM));
    b->is_freed = true;
    faulty_count_free(&h->stats, bytes_of(b), b->requested);
    if (is_stream_captured(stream) && faulty_is(CAPTURE_CLEARS)) {
        cudaGetLastError();
    }
    if (is_own && !b->notes) {
        end_block(h, b);
        return;
    }
    note *recorded = b->notes;
    b->notes = NULL;
    b->stream = stream;
    b->waits = 1; /* while batches are entered */
    enter_batch(h, b, stream);
    for (note *n = recorded, *next; n; n = next) {
        next = n->next;
        enter_batch(h, b, n->stream);
        free(n);
    }
    leave_batch(h, b, stream);
}

/* Where a pool is gone, its spans go with their last block. */
static void drop_ended(heap *h)
{
    for (span **link = &h->spans; *link;) {
        const span *s = *link;
        bool is_ended = s->pool && !s->pool->holders;
        if (!is_ended || s->blocks || !drop_span(h, link)) {
            link = &(*link)->next;
        }
    }
}

/* --- the ABI ------------------------------------------------------------------------------- */

void *gmd_malloc(size_t size, int device, cudaStream_t stream)
{
    if (device < 0 || device >= FAULTY_DEVICES) {
        return NULL;
    }
    call c = enter(device);
    void *pointer = allocate(&heaps[device], size, stream);
    leave(&c);
    return pointer;
}

void gmd_free(void *pointer, size_t size, int device, cudaStream_t stream)
{
    (void)size;
    if (!pointer || device < 0 || device >= FAULTY_DEVICES) {
        return;
    }
    heap *h = &heaps[device];
    call c = enter(device);
    block *b = find(h, (uintptr_t)pointer);
    if (b) {
        free_block(h, b, stream);
        drop_ended(h);
    }
    leave(&c);
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

static void forget_notes(block *b, cudaStream_t stream, bool is_over)
{
    for (note **link = &b->notes; *link;) {
        note *n = *link;
        if (n->stream == stream) {
            b->is_unsure |= !is_over;
            *link = n->next;
            free(n);
        } else {
            link = &n->next;
        }
    }
}

static void forget_lane(heap *h, cudaStream_t stream, bool is_over)
{
    lane **link = &h->lanes;
    while (*link && (*link)->stream != stream) {
        link = &(*link)->next;
    }
    lane *l = *link;
    if (!l) {
        return;
    }
    *link = l->next;
    batch *rest = l->open;
    for (batch *b = l->sealed, *next; b || rest; b = next) {
        if (!b) {
            b = rest;
            rest = NULL;
        }
        next = b->next;
        for (uint32_t i = 0; i < b->count && !is_over; i++) {
            b->blocks[i]->is_unsure = true;
        }
        end_batch(h, b, l->stream);
    }
    free(l);
}

/* Its work is over; what is not known to be used no more is not used again. */
static void forget(heap *h, cudaStream_t stream)
{
    bool is_over = is_ok(cudaStreamSynchronize(stream)) || is_ok(cudaDeviceSynchronize());
    for (block *b = h->blocks; b; b = b->next) {
        forget_notes(b, stream, is_over);
    }
    forget_lane(h, stream, is_over);
    for (span *s = h->spans; s; s = s->next) {
        bool is_own = s->pool && s->stream != NO_STREAM && s->pool->streams[s->stream] == stream;
        s->stream = is_own ? NO_STREAM : s->stream;
    }
    for (pool *p = h->pools; p; p = p->next) {
        for (int i = 0; i < p->stream_count; i++) {
            if (p->streams[i] == stream) {
                p->streams[i] = (cudaStream_t)p; /* no stream's handle */
            }
        }
    }
}

EXPORT void gmd_forget_stream(int device, cudaStream_t stream);
void gmd_forget_stream(int device, cudaStream_t stream)
{
    if (device < 0 || device >= FAULTY_DEVICES) {
        return;
    }
    call c = enter(device);
    forget(&heaps[device], stream);
    drop_ended(&heaps[device]);
    leave(&c);
}

void gmd_empty_cache(void)
{
    for (int device = 0; device < FAULTY_DEVICES; device++) {
        pthread_mutex_lock(&lock);
        bool is_used = heaps[device].is_used;
        pthread_mutex_unlock(&lock);
        if (is_used) {
            call c = enter(device);
            seal_all(&heaps[device], false);
            drain(&heaps[device]);
            release(&heaps[device], 0);
            leave(&c);
        }
    }
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
    return size > SIZE_MAX / 2 ? size : span_bytes(pages_of(size));
}

int gmd_get_stats(int device, gmd_stats *out)
{
    if (device < 0 || device >= FAULTY_DEVICES) {
        return -1;
    }
    pthread_mutex_lock(&lock);
    int result = faulty_give_stats(&heaps[device].stats, out);
    if (result == 0) {
        out->active_bytes = heaps[device].active;
        out->active_bytes_peak = heaps[device].active_peak;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

EXPORT unsigned gmd_promises(void);
unsigned gmd_promises(void)
{
    return GMD_PROMISE_PROMPT;
}

EXPORT int gmd_begin_pool(int device, const uint64_t id[2], gmd_stream_filter *accepts,
                          void *context);
int gmd_begin_pool(int device, const uint64_t id[2], gmd_stream_filter *accepts, void *context)
{
    heap *h = &heaps[device];
    pthread_mutex_lock(&lock);
    bool is_possible = !h->open;
    if (is_possible) {
        pool *p = find_pool(h, id);
        h->open = p ? p : make_pool(h, id);
        h->open->holders++;
        if (faulty_is(REOPENED)) {
            h->open->is_captured = false;
        }
        h->accepts = accepts;
        h->context = context;
    }
    pthread_mutex_unlock(&lock);
    return is_possible ? 0 : -1;
}

EXPORT int gmd_end_pool(int device, const uint64_t id[2], void **context);
int gmd_end_pool(int device, const uint64_t id[2], void **context)
{
    heap *h = &heaps[device];
    call c = enter(device);
    bool is_open = h->open && h->open == find_pool(h, id);
    if (is_open) {
        h->open = NULL;
        *context = h->context;
        seal_all(h, true);
    }
    leave(&c);
    return is_open ? 0 : -1;
}

EXPORT int gmd_release_pool(int device, const uint64_t id[2]);
int gmd_release_pool(int device, const uint64_t id[2])
{
    heap *h = &heaps[device];
    call c = enter(device);
    pool *p = find_pool(h, id);
    if (p && --p->holders == 0) {
        end_pool(h, p);
    }
    leave(&c);
    return p ? 0 : -1;
}
