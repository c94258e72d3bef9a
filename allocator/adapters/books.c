#include "books.h"
#include "gmd_hash.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct figures {
    uint64_t live_bytes, live_peak, live_count;
    uint64_t held_bytes, held_peak, held_count; /* live, or freed and kept */
    uint64_t refusals;
} figures;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static figures of_device[ADAPTER_DEVICES];
static booked **buckets; /* live blocks by address */
static size_t bucket_count, live_count;
static booked *kept;

void books_lock(void)
{
    pthread_mutex_lock(&lock);
}

void books_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

/* --- live blocks ------------------------------------------------------------------------- */

static booked **bucket_of(const void *memory)
{
    uint64_t hash = gmd_hash_pointer(memory);
    return &buckets[(hash >> 32) & (bucket_count - 1)];
}

/* Makes room for one block more. */
static bool grow_buckets(void)
{
    if (live_count < bucket_count) {
        return true;
    }
    size_t old_count = bucket_count;
    booked **old = buckets, **grown = calloc(old_count ? old_count * 2 : 256, sizeof(booked *));
    if (!grown) {
        return old_count > 0; /* longer chains */
    }
    buckets = grown;
    bucket_count = old_count ? old_count * 2 : 256;
    for (size_t i = 0; i < old_count; i++) {
        for (booked *b = old[i], *next; b; b = next) {
            next = b->next;
            booked **bucket = bucket_of(b->memory);
            b->next = *bucket;
            *bucket = b;
        }
    }
    free(old);
    return true;
}

static booked **link_to(const void *memory)
{
    if (!memory || !bucket_count) {
        return NULL;
    }
    booked **link = bucket_of(memory);
    while (*link && (*link)->memory != memory) {
        link = &(*link)->next;
    }
    return *link ? link : NULL;
}

booked *books_prepare(size_t size, int device)
{
    booked *b = NULL;
    if (device >= 0 && device < ADAPTER_DEVICES && grow_buckets()) {
        b = malloc(sizeof *b);
    }
    if (b) {
        *b = (booked){.size = size, .device = device};
    }
    return b;
}

bool books_each(int device, bool (*visit)(booked *b, void *context), void *context)
{
    bool any = false;
    for (size_t i = 0; i < bucket_count; i++) {
        for (booked *b = buckets[i]; b; b = b->next) {
            any |= b->device == device && visit(b, context);
        }
    }
    return any;
}

static uint64_t higher(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

void books_enter(booked *b, void *memory)
{
    figures *f = &of_device[b->device];
    b->memory = memory;
    booked **bucket = bucket_of(memory);
    b->next = *bucket;
    *bucket = b;
    live_count++;
    f->live_count++;
    f->held_count++;
    f->live_bytes += b->size;
    f->held_bytes += b->size;
    f->live_peak = higher(f->live_peak, f->live_bytes);
    f->held_peak = higher(f->held_peak, f->held_bytes);
}

void books_drop(booked *b)
{
    for (block_use *use = b->uses, *next; use; use = next) {
        next = use->next;
        free(use);
    }
    free(b);
}

void books_refuse(booked *b)
{
    of_device[b->device].refusals++;
    books_drop(b);
}

booked *books_find(const void *memory)
{
    booked **link = link_to(memory);
    return link ? *link : NULL;
}

booked *books_take(const void *memory)
{
    booked **link = link_to(memory), *b = link ? *link : NULL;
    if (b) {
        *link = b->next;
        live_count--;
        of_device[b->device].live_count--;
        of_device[b->device].live_bytes -= b->size;
    }
    return b;
}

void books_given_back(booked *b)
{
    of_device[b->device].held_count--;
    of_device[b->device].held_bytes -= b->size;
    books_drop(b);
}

/* --- what the device did not take back --------------------------------------------------- */

void books_keep(booked *b)
{
    b->next = kept;
    kept = b;
}

bool books_retry(int device, bool (*give_back)(booked *b))
{
    bool any = false;
    for (booked **link = &kept; *link;) {
        booked *b = *link;
        if (b->device == device && give_back(b)) {
            *link = b->next;
            books_given_back(b);
            any = true;
        } else {
            link = &b->next;
        }
    }
    return any;
}

/* A library that is unloaded leaves none of its pages behind. */
__attribute__((destructor)) static void forget_all(void)
{
    for (size_t i = 0; i <= bucket_count; i++) {
        for (booked *b = i < bucket_count ? buckets[i] : kept, *next; b; b = next) {
            next = b->next;
            books_drop(b);
        }
    }
    free(buckets);
}

/* --- statistics -------------------------------------------------------------------------- */

void books_reset_peaks(int device)
{
    if (device >= 0 && device < ADAPTER_DEVICES) {
        of_device[device].live_peak = of_device[device].live_bytes;
        of_device[device].held_peak = of_device[device].held_bytes;
    }
}

bool books_read(int device, gmd_stats *out)
{
    if (device < 0 || device >= ADAPTER_DEVICES || out->struct_size != sizeof *out) {
        return false;
    }
    const figures *f = &of_device[device];
    *out = (gmd_stats){.struct_size = sizeof *out,
                       .allocated_bytes = f->live_bytes,
                       .allocated_bytes_peak = f->live_peak,
                       .reserved_bytes = f->held_bytes,
                       .reserved_bytes_peak = f->held_peak,
                       .active_bytes = f->live_bytes,
                       .active_bytes_peak = f->live_peak,
                       .requested_bytes = f->live_bytes,
                       .allocation_count = f->live_count,
                       .segment_count = f->held_count,
                       .num_ooms = f->refusals};
    return true;
}
