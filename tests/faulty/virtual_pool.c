/* virtual_pool.c - a pool of virtual memory in the design of PyTorch's expandable segments and
 * vLLM's cumem allocator (https://docs.nvidia.com/cuda/cuda-driver-api, virtual memory management):
 * each stream has ranges of addresses, larger than the device, in which pages are mapped where
 * blocks need them. A block goes where the fewest pages are missing. Free pages stay mapped until
 * they are more than a bound, a request finds no memory, or the cache is emptied; since unmapping
 * waits for nothing, the host waits before it for an event that each free records.
 *
 * The stream of a block waits for the streams that were recorded for it when it is freed, so that
 * free memory belongs to its stream only.
 *
 * Defects: docs/planted-defects.md. */
#include "recorded.h"
#include "virtual_memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

const char *const faulty_defects[] = {"pytorch188008",
                                      "vllm34602",
                                      "vllm36651",
                                      "pytorch134338",
                                      "pytorch196258",
                                      "kokkos9433",
                                      "tfdml341",
                                      "paddle79605",
                                      "vllm37111",
                                      "hip_ep1068",
                                      "pytorch61567",
                                      "cap_before_step",
                                      "access_not_set",
                                      "reservation_leaked",
                                      "handle_leaked",
                                      "unmaps_too_much",
                                      "memory_of_current",
                                      "lock_left",
                                      "device_left_at_failure",
                                      "freed_while_mapped",
                                      "released_twice",
                                      NULL};

#ifndef FAULTY_UNIT
#define FAULTY_UNIT 512
#endif
#define UNIT      ((uint64_t)FAULTY_UNIT)
#define CACHE_MAX ((uint64_t)64 << 20) /* of each device: more free memory is not kept */

/* Neighbours: all of a range, in ascending order; no two free ones side by side. */
typedef struct span {
    uint64_t offset, size;
    bool is_used;
    struct span *before, *after;
} span;

typedef struct segment {
    struct segment *next;
    range range;
    cudaStream_t stream;
    cudaEvent_t event; /* all that was done with what is free */
    cudaStream_t event_stream;
    span *first;
    size_t used_count;
} segment;

typedef struct pool {
    segment *segments;
    uint64_t limit; /* of reserved bytes; 0: none */
    gmd_stats stats;
} pool;

/* Where a block may go. */
typedef struct place {
    segment *segment;
    span *span;
    uint64_t offset;
    size_t missing; /* pages */
} place;

static pool pools[FAULTY_DEVICES];
static recorded *records;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

EXPORT void gmd_record_stream(void *pointer, cudaStream_t stream);
EXPORT void gmd_forget_stream(int device, cudaStream_t stream);
EXPORT uint64_t gmd_device_request(size_t size);

static uint64_t round_up(uint64_t size, uint64_t to)
{
    return (size + to - 1) / to * to;
}

/* --- places ------------------------------------------------------------------------------- */

static size_t count_missing(const range *r, uint64_t offset, uint64_t size)
{
    size_t missing = 0;
    for (size_t page = (size_t)(offset / PAGE); page * PAGE < offset + size; page++) {
        missing += r->states[page] != PAGE_READY;
    }
    return missing;
}

static void consider(place *best, segment *s, span *free_span, uint64_t offset, uint64_t size)
{
    if (offset < free_span->offset || offset + size > free_span->offset + free_span->size) {
        return;
    }
    size_t missing = count_missing(&s->range, offset, size);
    if (!best->span || missing < best->missing ||
        (missing == best->missing && free_span->size < best->span->size)) {
        *best = (place){.segment = s, .span = free_span, .offset = offset, .missing = missing};
    }
}

/* At the beginning of a free span, and where mapped pages or whole ones begin in it. */
static void search_span(place *best, segment *s, span *free_span, uint64_t size)
{
    const range *r = &s->range;
    consider(best, s, free_span, free_span->offset, size);
    size_t first = (size_t)(round_up(free_span->offset, PAGE) / PAGE);
    consider(best, s, free_span, first * PAGE, size);
    uint64_t end = free_span->offset + free_span->size;
    for (size_t page = first; page < r->end && page * PAGE < end; page++) {
        if (page > 0 && r->states[page] == PAGE_READY && r->states[page - 1] != PAGE_READY) {
            consider(best, s, free_span, page * PAGE, size);
        }
    }
}

static place search(const pool *p, uint64_t size, cudaStream_t stream)
{
    place best = {0};
    for (segment *s = p->segments; s; s = s->next) {
        for (span *f = s->stream == stream ? s->first : NULL; f; f = f->after) {
            if (!f->is_used && f->size >= size) {
                search_span(&best, s, f, size);
            }
        }
    }
    return best;
}

/* --- segments ----------------------------------------------------------------------------- */

static uint64_t range_size(uint64_t least)
{
    size_t unused, total = 0;
    if (cudaMemGetInfo(&unused, &total) != cudaSuccess) {
        cudaGetLastError();
    }
    return round_up(least > total ? least : total, PAGE);
}

static segment *add_segment(pool *p, uint64_t size, int device, cudaStream_t stream)
{
    segment *s = calloc(1, sizeof *s);
    span *all = calloc(1, sizeof *all);
    if (!s || !all || cudaEventCreateWithFlags(&s->event, cudaEventDisableTiming) != cudaSuccess) {
        cudaGetLastError();
        free(s);
        free(all);
        return NULL;
    }
    if (!range_reserve(&s->range, range_size(size), device, &p->stats)) {
        cudaEventDestroy(s->event);
        free(s);
        free(all);
        return NULL;
    }
    *all = (span){.size = s->range.pages * PAGE};
    s->first = all;
    s->stream = s->event_stream = stream;
    s->next = p->segments;
    p->segments = s;
    return s;
}

/* Without blocks it is one free span. */
static void free_segment(segment *s)
{
    range_free(&s->range);
    cudaEventDestroy(s->event);
    free(s->first);
    free(s);
}

static void wait_for(const segment *s)
{
    if (faulty_is(KOKKOS9433)) {
        return; /* cudaFree would wait by itself */
    }
    if (faulty_is(PYTORCH196258) && !s->stream) { /* which is the current device's */
        cudaStreamSynchronize(s->stream);
        return;
    }
    if (cudaEventSynchronize(s->event) != cudaSuccess) {
        cudaGetLastError();
        cudaDeviceSynchronize();
    }
}

static size_t end_of_free_pages(const span *f)
{
    uint64_t end = f->offset + f->size;
    return (size_t)((faulty_is(UNMAPS_TOO_MUCH) && f->after ? end + PAGE - 1 : end) / PAGE);
}

static void unmap_free_pages(segment *s, bool is_retry, victims *v)
{
    bool has_waited = is_retry && faulty_is(TFDML341); /* free means done with, it thinks */
    for (span *f = s->first; f; f = f->after) {
        size_t end = f->is_used ? 0 : end_of_free_pages(f);
        end = end < s->range.end ? end : s->range.end;
        for (size_t page = (size_t)(round_up(f->offset, PAGE) / PAGE); page < end; page++) {
            if (s->range.states[page] != PAGE_EMPTY && !has_waited) {
                wait_for(s);
                has_waited = true;
            }
            range_unmap(&s->range, page, v);
        }
    }
}

/* --- giving memory back ------------------------------------------------------------------- */

/* Segments that nobody has a block in go, too, addresses and all. */
static void drop_unused(pool *p, bool is_retry)
{
    for (segment **link = &p->segments; *link;) {
        segment *s = *link;
        bool is_unused = faulty_is(FREED_WHILE_MAPPED) || range_is_empty(&s->range);
        if (faulty_is(PYTORCH61567) && is_retry && !s->used_count) {
            s->used_count = 1; /* not counted down on this path: it will never be dropped */
        }
        if (s->used_count || !is_unused) {
            link = &s->next;
            continue;
        }
        *link = s->next;
        free_segment(s);
    }
}

static void give_all_back(pool *p, bool is_retry)
{
    victims v = {0};
    for (segment *s = p->segments; s; s = s->next) {
        if (is_retry && faulty_is(PYTORCH134338) && !s->used_count && s->range.end) {
            cudaFree((void *)(uintptr_t)s->range.address); /* NOLINT(performance-no-int-to-ptr) */
            cudaGetLastError();
        }
        if (!faulty_is(FREED_WHILE_MAPPED) || s->used_count) {
            unmap_free_pages(s, is_retry, &v);
        }
    }
    victims_release(&v);
    drop_unused(p, is_retry);
}

static uint64_t cached_bytes(const pool *p)
{
    return p->stats.reserved_bytes > p->stats.allocated_bytes
               ? p->stats.reserved_bytes - p->stats.allocated_bytes
               : 0;
}

/* What the other streams keep goes first. */
static void trim(pool *p, segment *kept)
{
    victims v = {0};
    if (cached_bytes(p) <= CACHE_MAX) {
        return;
    }
    for (segment *s = p->segments; s; s = s->next) {
        if (s != kept) {
            unmap_free_pages(s, false, &v);
        }
    }
    if (cached_bytes(p) <= CACHE_MAX && faulty_is(HIP_EP1068)) {
        free(v.handles);
        return; /* this one is retained, and the victims are forgotten */
    }
    if (cached_bytes(p) > CACHE_MAX) {
        unmap_free_pages(kept, false, &v);
    }
    victims_release(&v);
}

/* --- blocks ------------------------------------------------------------------------------- */

/* What is free before and behind a block become spans of their own. */
static bool cut(segment *s, span *f, uint64_t offset, uint64_t size)
{
    uint64_t before = offset - f->offset, behind = f->size - before - size;
    span *head = before ? calloc(1, sizeof *head) : NULL;
    span *tail = behind ? calloc(1, sizeof *tail) : NULL;
    if ((before && !head) || (behind && !tail)) {
        free(head);
        free(tail);
        return false;
    }
    if (head) {
        *head = (span){.offset = f->offset, .size = before, .before = f->before, .after = f};
        *(f->before ? &f->before->after : &s->first) = head;
        f->before = head;
    }
    if (tail) {
        *tail = (span){.offset = offset + size, .size = behind, .before = f, .after = f->after};
        if (f->after) {
            f->after->before = tail;
        }
        f->after = tail;
    }
    f->offset = offset;
    f->size = size;
    f->is_used = true;
    s->used_count++;
    return true;
}

static void absorb_next(span *f)
{
    span *gone = f->after;
    f->size += gone->size;
    f->after = gone->after;
    if (f->after) {
        f->after->before = f;
    }
    free(gone);
}

static void uncut(segment *s, span *f)
{
    f->is_used = false;
    s->used_count--;
    if (f->after && !f->after->is_used) {
        absorb_next(f);
    }
    if (f->before && !f->before->is_used) {
        absorb_next(f->before);
    }
}

static bool is_within_limit(const pool *p, const place *at, uint64_t size)
{
    if (!p->limit || !at->missing || faulty_is(PADDLE79605)) {
        return true;
    }
    uint64_t needed = faulty_is(CAP_BEFORE_STEP) ? (size < PAGE ? 0 : size / PAGE * PAGE - PAGE)
                                                 : at->missing * PAGE;
    return p->stats.reserved_bytes + needed <= p->limit;
}

static void *take(const pool *p, place at, uint64_t size)
{
    size_t first = (size_t)(at.offset / PAGE), last = (size_t)((at.offset + size - 1) / PAGE);
    if (!at.span || !is_within_limit(p, &at, size) ||
        (at.missing && !range_map(&at.segment->range, first, last)) ||
        !cut(at.segment, at.span, at.offset, size)) {
        return NULL;
    }
    /* NOLINTNEXTLINE(performance-no-int-to-ptr) */
    return (void *)(uintptr_t)(at.segment->range.address + at.offset);
}

static place search_or_reserve(pool *p, uint64_t size, int device, cudaStream_t stream)
{
    place at = search(p, size, stream);
    if (!at.span && add_segment(p, size, device, stream)) {
        at = search(p, size, stream);
    }
    return at;
}

/* --- the ABI ------------------------------------------------------------------------------ */

static void *find_block(pool *p, uint64_t size, int device, cudaStream_t stream)
{
    void *memory = take(p, search_or_reserve(p, size, device, stream), size);
    if (!memory) {
        give_all_back(p, true);
        memory = take(p, search_or_reserve(p, size, device, stream), size);
    }
    if (!memory) { /* a range that was made for this request only */
        drop_unused(p, false);
    }
    return memory;
}

void *gmd_malloc(size_t size, int device, cudaStream_t stream)
{
    if (device < 0 || device >= FAULTY_DEVICES) {
        return NULL;
    }
    pool *p = &pools[device];
    faulty_guard guard = {0};
    if (!faulty_is(MEMORY_OF_CURRENT)) {
        guard = faulty_enter_device(device);
    }
    pthread_mutex_lock(&lock);
    uint64_t bytes = round_up(size ? size : 1, UNIT);
    void *memory = size > SIZE_MAX / 4 ? NULL : find_block(p, bytes, device, stream);
    if (memory) {
        faulty_count_alloc(&p->stats, bytes, size);
    } else {
        p->stats.num_ooms++;
        if (faulty_is(LOCK_LEFT)) {
            faulty_leave_device(guard);
            return NULL;
        }
        if (faulty_is(DEVICE_LEFT_AT_FAILURE)) {
            guard.is_other = false;
        }
    }
    pthread_mutex_unlock(&lock);
    faulty_leave_device(guard);
    return memory;
}

static segment *segment_of(const pool *p, uint64_t address)
{
    segment *s = p->segments;
    while (s &&
           (address < s->range.address || address - s->range.address >= s->range.pages * PAGE)) {
        s = s->next;
    }
    return s;
}

/* The event stands for one stream's work: where that of a block's stream, which is gone, comes to
 * be another's, the host waits in between. */
static void note_work(segment *s, cudaStream_t stream)
{
    if (stream != s->event_stream) {
        wait_for(s);
        s->event_stream = stream;
    }
    if (cudaEventRecord(s->event, stream) != cudaSuccess) {
        cudaGetLastError();
        cudaStreamSynchronize(stream);
    }
}

void gmd_free(void *pointer, size_t size, int device, cudaStream_t stream)
{
    pool *p = &pools[device];
    faulty_guard guard = faulty_enter_device(device);
    pthread_mutex_lock(&lock);
    segment *s = segment_of(p, (uintptr_t)pointer);
    span *f = s ? s->first : NULL;
    while (f && (!f->is_used || s->range.address + f->offset != (uintptr_t)pointer)) {
        f = f->after;
    }
    if (f) {
        recorded_wait(recorded_take(&records, pointer), stream);
        note_work(s, stream);
        faulty_count_free(&p->stats, f->size, size);
        uncut(s, f);
        trim(p, s);
    }
    pthread_mutex_unlock(&lock);
    faulty_leave_device(guard);
}

void gmd_empty_cache(void)
{
    pthread_mutex_lock(&lock);
    for (int device = 0; device < FAULTY_DEVICES; device++) {
        if (pools[device].segments) {
            faulty_guard guard = {0};
            if (!faulty_is(PYTORCH196258)) {
                guard = faulty_enter_device(device);
            }
            give_all_back(&pools[device], false);
            faulty_leave_device(guard);
        }
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

void gmd_set_memory_fraction(double fraction, int device)
{
    uint64_t limit;
    if (faulty_limit(fraction, device, &limit)) {
        pthread_mutex_lock(&lock);
        pools[device].limit = limit;
        pthread_mutex_unlock(&lock);
    }
}

uint64_t gmd_device_request(size_t size)
{
    return size > SIZE_MAX / 4 ? size : round_up(size ? size : 1, PAGE);
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
