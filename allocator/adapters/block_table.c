#include "block_table.h"
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
static table_entry **buckets; /* live blocks by address */
static size_t bucket_count, live_count;
static table_entry *kept;

void block_table_lock(void)
{
    pthread_mutex_lock(&lock);
}

void block_table_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

/* --- live blocks ------------------------------------------------------------------------- */

static table_entry **bucket_of(const void *memory)
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
    table_entry **old = buckets,
                **grown = calloc(old_count ? old_count * 2 : 256, sizeof(table_entry *));
    if (!grown) {
        return old_count > 0; /* longer chains */
    }
    buckets = grown;
    bucket_count = old_count ? old_count * 2 : 256;
    for (size_t i = 0; i < old_count; i++) {
        for (table_entry *b = old[i], *next; b; b = next) {
            next = b->next;
            table_entry **bucket = bucket_of(b->memory);
            b->next = *bucket;
            *bucket = b;
        }
    }
    free(old);
    return true;
}

static table_entry **link_to(const void *memory)
{
    if (!memory || !bucket_count) {
        return NULL;
    }
    table_entry **link = bucket_of(memory);
    while (*link && (*link)->memory != memory) {
        link = &(*link)->next;
    }
    return *link ? link : NULL;
}

table_entry *block_table_prepare(size_t size, int device)
{
    table_entry *b = NULL;
    if (device >= 0 && device < ADAPTER_DEVICES && grow_buckets()) {
        b = malloc(sizeof *b);
    }
    if (b) {
        *b = (table_entry){.size = size, .device = device};
    }
    return b;
}

bool block_table_each(int device, bool (*visit)(table_entry *b, void *context), void *context)
{
    bool any = false;
    for (size_t i = 0; i < bucket_count; i++) {
        for (table_entry *b = buckets[i]; b; b = b->next) {
            any |= b->device == device && visit(b, context);
        }
    }
    return any;
}

static uint64_t higher(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

void block_table_enter(table_entry *b, void *memory)
{
    figures *f = &of_device[b->device];
    b->memory = memory;
    table_entry **bucket = bucket_of(memory);
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

void block_table_drop(table_entry *b)
{
    for (block_use *use = b->uses, *next; use; use = next) {
        next = use->next;
        free(use);
    }
    free(b);
}

void block_table_refuse(table_entry *b)
{
    of_device[b->device].refusals++;
    block_table_drop(b);
}

table_entry *block_table_find(const void *memory)
{
    table_entry **link = link_to(memory);
    return link ? *link : NULL;
}

table_entry *block_table_take(const void *memory)
{
    table_entry **link = link_to(memory), *b = link ? *link : NULL;
    if (b) {
        *link = b->next;
        live_count--;
        of_device[b->device].live_count--;
        of_device[b->device].live_bytes -= b->size;
    }
    return b;
}

void block_table_given_back(table_entry *b)
{
    of_device[b->device].held_count--;
    of_device[b->device].held_bytes -= b->size;
    block_table_drop(b);
}

/* --- what the device did not take back --------------------------------------------------- */

void block_table_keep(table_entry *b)
{
    b->next = kept;
    kept = b;
}

bool block_table_retry(int device, bool (*give_back)(table_entry *b))
{
    bool any = false;
    for (table_entry **link = &kept; *link;) {
        table_entry *b = *link;
        if (b->device == device && give_back(b)) {
            *link = b->next;
            block_table_given_back(b);
            any = true;
        } else {
            link = &b->next;
        }
    }
    return any;
}

/* A library that is unloaded leaves none of its entries behind. */
__attribute__((destructor)) static void forget_all(void)
{
    for (size_t i = 0; i <= bucket_count; i++) {
        for (table_entry *b = i < bucket_count ? buckets[i] : kept, *next; b; b = next) {
            next = b->next;
            block_table_drop(b);
        }
    }
    free(buckets);
}

/* --- statistics -------------------------------------------------------------------------- */

void block_table_reset_peaks(int device)
{
    if (device >= 0 && device < ADAPTER_DEVICES) {
        of_device[device].live_peak = of_device[device].live_bytes;
        of_device[device].held_peak = of_device[device].held_bytes;
    }
}

bool block_table_read(int device, gmd_stats *out)
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
