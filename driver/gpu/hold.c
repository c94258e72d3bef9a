/* Each hold has a number and a word of the ring, in pinned memory; its stream waits until the word
 * has come to that number (https://docs.nvidia.com/cuda/cuda-driver-api, "Stream Memory
 * Operations"). Words only ever grow, cyclically: whoever is late writes nothing, so the driver's
 * thread and the watchdog need no lock between them, and its word alone says
 * whether a hold is still held. */
#include "gmd_hold.h"

#include "entry_point.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SLOTS         4096u /* a power of two: numbers wrap around with the ring */
#define TICKS         5     /* of the watchdog, that make up its patience */
#define CALL_MS       200
#define HURRIED_MS    20
#define SYNC_MS       5
#define CLOSE_MS      2000
#define NS_PER_MS     UINT64_C(1000000)
#define NS_PER_SECOND UINT64_C(1000000000)

_Static_assert(sizeof(_Atomic uint32_t) == sizeof(uint32_t) && ATOMIC_INT_LOCK_FREE == 2,
               "the device reads what the host writes");

typedef struct hold {
    cudaStream_t stream;
    int device;
    uint64_t until_ns;
} hold;

struct held_work {
    gmd_runtime runtime; /* a copy: a watchdog that is left behind may outlive its owner's */
    hold_wait_fn *wait;
    hold_patience patience;
    uint32_t start;          /* numbers begin after it */
    _Atomic uint32_t *words; /* pinned: the same address on host and devices */
    _Atomic uint32_t last;   /* number of the latest hold */

    /* The driver's own. */
    hold holds[SLOTS]; /* by number */
    uint32_t done;     /* up to here all are let go */
    uint64_t now_ns;   /* of the trace's clock */
    uint64_t devices;  /* bit d: device d has waited */

    /* What the driver tells its watchdog. */
    _Atomic uint64_t beats;
    atomic_bool is_syncing;
    atomic_bool is_watched; /* false: the watchdog sleeps until it is roused */
    pthread_t watchdog;
    atomic_bool is_hurried;
    pthread_mutex_t lock; /* of all that follows */
    pthread_cond_t changed;
    bool is_roused, is_closing, is_done;
    bool is_abandoned; /* the watchdog's to free */
};

/* --- numbers and words -------------------------------------------------------------------- */

static _Atomic uint32_t *word_of(const held_work *h, uint32_t number)
{
    return &h->words[number % SLOTS];
}

/* As the device compares (CU_STREAM_WAIT_VALUE_GEQ). */
static bool is_before(uint32_t word, uint32_t number)
{
    return word - number > INT32_MAX;
}

static bool is_held(const held_work *h, uint32_t number)
{
    return is_before(atomic_load_explicit(word_of(h, number), memory_order_relaxed), number);
}

static void let_go(held_work *h, uint32_t number)
{
    _Atomic uint32_t *word = word_of(h, number);
    uint32_t seen = atomic_load_explicit(word, memory_order_relaxed);
    while (is_before(seen, number) &&
           !atomic_compare_exchange_weak_explicit(word, &seen, number, memory_order_release,
                                                  memory_order_relaxed)) {
    }
}

/* The next number after which something may be held; `last`: nothing is. */
static uint32_t skip_done(const held_work *h, uint32_t done, uint32_t last)
{
    done = last - done > SLOTS ? last - SLOTS : done;
    while (done != last && !is_held(h, done + 1)) {
        done++;
    }
    return done;
}

static void let_all_go(held_work *h)
{
    uint32_t last = atomic_load(&h->last);
    for (uint32_t i = 0; i < SLOTS; i++) { /* numbers that were never given are all before */
        let_go(h, last - i);
    }
}

/* --- the watchdog ------------------------------------------------------------------------- */

static struct timespec time_after(uint64_t ns)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    ns += (uint64_t)t.tv_nsec;
    t.tv_sec += (time_t)(ns / NS_PER_SECOND);
    t.tv_nsec = (long)(ns % NS_PER_SECOND);
    return t;
}

static void rouse(held_work *h)
{
    pthread_mutex_lock(&h->lock);
    h->is_roused = true;
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
}

/* True: nothing happened until then. NULL: whenever that may be. */
static bool sleep_until(held_work *h, const struct timespec *end)
{
    int result = 0;
    while (!h->is_roused && !h->is_closing && result == 0) {
        result = end ? pthread_cond_timedwait(&h->changed, &h->lock, end)
                     : pthread_cond_wait(&h->changed, &h->lock);
    }
    h->is_roused = false;
    return result != 0;
}

/* A hold is announced before the driver looks whether it is watched, and here it is the other way
 * round: one of both sees the other. */
static bool is_anything_held(held_work *h, uint32_t *done)
{
    *done = skip_done(h, *done, atomic_load(&h->last));
    if (*done == atomic_load(&h->last)) {
        atomic_store(&h->is_watched, false);
    }
    return *done != atomic_load(&h->last);
}

/* True: the host has not got on for this tick. */
static bool stands_still(held_work *h, uint64_t *beats)
{
    unsigned call_ms = h->patience.call_ms;
    if (atomic_load(&h->is_hurried) && call_ms > HURRIED_MS) {
        call_ms = HURRIED_MS;
    }
    unsigned ms = atomic_load(&h->is_syncing) ? h->patience.sync_ms : call_ms;
    struct timespec end = time_after(ms * NS_PER_MS / TICKS);
    bool has_ticked = sleep_until(h, &end);
    uint64_t before = *beats;
    *beats = atomic_load(&h->beats);
    return has_ticked && *beats == before;
}

/* Memory that a device may still read stays. */
static void free_words(held_work *h)
{
    cudaError_t result = cudaSuccess;
    for (int device = 0; device < 64 && result == cudaSuccess; device++) {
        if (h->devices & (uint64_t)1 << device) {
            result = h->runtime.cudaSetDevice(device);
            result = result == cudaSuccess ? h->runtime.cudaDeviceSynchronize() : result;
        }
    }
    if (result == cudaSuccess) {
        h->runtime.cudaFreeHost((void *)h->words);
    }
}

static void destroy(held_work *h)
{
    pthread_cond_destroy(&h->changed);
    pthread_mutex_destroy(&h->lock);
    free(h);
}

/* The end is the watchdog's, too: it may be left behind in it. */
static void end(held_work *h)
{
    let_all_go(h);
    free_words(h);
    pthread_mutex_lock(&h->lock);
    h->is_done = true;
    bool is_abandoned = h->is_abandoned;
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
    if (is_abandoned) {
        destroy(h);
    }
}

static void *watch(void *argument)
{
    held_work *h = argument;
    uint32_t done = h->start; /* the driver may have begun before this thread */
    uint64_t beats = 0;
    unsigned still = 0;
    pthread_mutex_lock(&h->lock);
    while (!h->is_closing) {
        if (!is_anything_held(h, &done)) {
            sleep_until(h, NULL);
            still = 0;
            continue;
        }
        still = stands_still(h, &beats) ? still + 1 : 0;
        if (still == TICKS) {
            let_all_go(h);
            still = 0;
        }
    }
    pthread_mutex_unlock(&h->lock);
    end(h);
    return NULL;
}

/* --- opening and closing ------------------------------------------------------------------ */

static int queue_wait(held_work *h, int device, cudaStream_t stream, uint32_t number)
{
    unsigned long long address = (uintptr_t)word_of(h, number);
    h->devices |= (uint64_t)1 << device;
    int result = h->wait(stream, address, number, CU_STREAM_WAIT_VALUE_GEQ);
    return entry_point_may_retry(&h->runtime, result)
               ? h->wait(stream, address, number, CU_STREAM_WAIT_VALUE_GEQ)
               : result;
}

static gmd_status make_words(held_work *h, gmd_error *error)
{
    void *memory = NULL;
    cudaError_t result = h->runtime.cudaHostAlloc(&memory, SLOTS * sizeof *h->words,
                                                  cudaHostAllocPortable | cudaHostAllocMapped);
    if (result != cudaSuccess) {
        return gmd_fail(error, GMD_NO_MEMORY, "no pinned memory for a device's pending work: %s",
                        gmd_runtime_error_text(&h->runtime, result));
    }
    h->words = memory;
    for (uint32_t i = 0; i < SLOTS; i++) {
        atomic_init(&h->words[i], h->start);
    }
    return GMD_OK;
}

static int start_watchdog(held_work *h)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&h->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&h->lock, NULL);
    return pthread_create(&h->watchdog, NULL, watch, h);
}

/* A device may lack what its driver has: a wait for what is there already tells. */
static bool can_wait(held_work *h)
{
    int device = 0;
    return h->runtime.cudaGetDevice(&device) == cudaSuccess &&
           queue_wait(h, device, NULL, h->start) == 0;
}

gmd_status holds_make(held_work **holds, const hold_parts *parts, gmd_error *error)
{
    *holds = NULL;
    held_work *h = calloc(1, sizeof *h);
    if (!h) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for a device's pending work");
    }
    h->runtime = *parts->runtime;
    h->wait = parts->wait;
    h->patience = parts->patience;
    h->start = h->done = parts->start;
    atomic_init(&h->last, parts->start);
    gmd_status status = make_words(h, error);
    if (status != GMD_OK || !can_wait(h)) {
        if (h->words) {
            h->runtime.cudaFreeHost((void *)h->words);
        }
        free(h);
        return status;
    }
    int result = start_watchdog(h);
    if (result != 0) {
        free_words(h);
        destroy(h);
        return gmd_fail(error, GMD_FAILED, "a thread cannot be started: %s", strerror(result));
    }
    *holds = h;
    return GMD_OK;
}

gmd_status holds_open(held_work **holds, const gmd_runtime *runtime, gmd_error *error)
{
    hold_parts parts = {.runtime = runtime,
                        .patience = {.call_ms = CALL_MS, .sync_ms = SYNC_MS, .close_ms = CLOSE_MS}};
    gmd_error reason;
    *holds = NULL;
    return find_entry_point(runtime, "cuStreamWaitValue32", &parts.wait, &reason) == GMD_OK
               ? holds_make(holds, &parts, error)
               : GMD_OK;
}

void holds_close(held_work *h)
{
    if (!h) {
        return;
    }
    struct timespec end = time_after(h->patience.close_ms * NS_PER_MS);
    pthread_t watchdog = h->watchdog; /* h may be gone when it is left behind */
    int result = 0;
    pthread_mutex_lock(&h->lock);
    h->is_closing = true;
    pthread_cond_broadcast(&h->changed);
    while (!h->is_done && result == 0) {
        result = pthread_cond_timedwait(&h->changed, &h->lock, &end);
    }
    bool is_done = h->is_done;
    h->is_abandoned = !is_done;
    pthread_mutex_unlock(&h->lock);
    if (is_done) {
        pthread_join(watchdog, NULL);
        destroy(h);
    } else {
        pthread_detach(watchdog);
    }
}

/* --- holding and letting go --------------------------------------------------------------- */

void holds_beat(held_work *h)
{
    if (h) {
        atomic_store_explicit(&h->is_syncing, false, memory_order_relaxed);
        atomic_fetch_add_explicit(&h->beats, 1, memory_order_relaxed);
    }
}

void holds_hurry(held_work *h)
{
    if (h) {
        atomic_store(&h->is_hurried, true);
    }
}

cudaError_t hold_stream(held_work *h, int device, cudaStream_t stream, uint64_t duration_ns)
{
    if (!h || duration_ns == 0) {
        return cudaSuccess;
    }
    uint32_t number = atomic_load_explicit(&h->last, memory_order_relaxed) + 1;
    bool is_endless = duration_ns > UINT64_MAX - h->now_ns;
    let_go(h, number - SLOTS);
    h->holds[number % SLOTS] =
        (hold){.stream = stream,
               .device = device,
               .until_ns = is_endless ? UINT64_MAX : h->now_ns + duration_ns};
    /* Before it is queued, which may itself have to wait for what is held. */
    atomic_store(&h->last, number);
    if (!atomic_exchange(&h->is_watched, true)) {
        rouse(h);
    }
    int result = queue_wait(h, device, stream, number);
    if (result != 0) {
        let_go(h, number);
    }
    return (cudaError_t)result;
}

typedef bool is_meant_fn(const held_work *h, const hold *one, const hold *like);

static bool is_due(const held_work *h, const hold *one, const hold *like)
{
    (void)like;
    return one->until_ns <= h->now_ns;
}

static bool is_on_device(const held_work *h, const hold *one, const hold *like)
{
    (void)h;
    return one->device == like->device;
}

static bool is_on_stream(const held_work *h, const hold *one, const hold *like)
{
    return one->stream == like->stream && is_on_device(h, one, like);
}

/* True: something is held still. */
static bool let_go_of(held_work *h, is_meant_fn *is_meant, const hold *like)
{
    uint32_t last = atomic_load_explicit(&h->last, memory_order_relaxed);
    h->done = skip_done(h, h->done, last);
    for (uint32_t n = h->done; n != last; n++) {
        if (is_meant(h, &h->holds[(n + 1) % SLOTS], like)) {
            let_go(h, n + 1);
        }
    }
    h->done = skip_done(h, h->done, last);
    return h->done != last;
}

/* The host is about to wait: the watchdog must not sleep through it. */
static void release(held_work *h, is_meant_fn *is_meant, const hold *like)
{
    atomic_store_explicit(&h->is_syncing, true, memory_order_relaxed);
    atomic_fetch_add_explicit(&h->beats, 1, memory_order_relaxed);
    if (let_go_of(h, is_meant, like)) {
        rouse(h);
    }
}

void holds_advance(held_work *h, uint64_t duration_ns)
{
    if (h) {
        h->now_ns = duration_ns > UINT64_MAX - h->now_ns ? UINT64_MAX : h->now_ns + duration_ns;
        let_go_of(h, is_due, NULL);
    }
}

void holds_release_stream(held_work *h, int device, cudaStream_t stream)
{
    if (h) {
        release(h, is_on_stream, &(hold){.device = device, .stream = stream});
    }
}

void holds_release_device(held_work *h, int device)
{
    if (h) {
        release(h, is_on_device, &(hold){.device = device});
    }
}

void holds_release(held_work *h)
{
    if (h) {
        let_all_go(h);
    }
}
