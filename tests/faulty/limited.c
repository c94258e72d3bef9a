/* limited.c - cudaMalloc with a limit in front of it, in the design of RMM's
 * limiting_resource_adaptor and tracking_resource_adaptor (https://docs.rapids.ai/api/rmm): a
 * counter of the bytes handed out, which nothing but atomic operations guards, and a table of the
 * blocks, which has a lock of its own.
 *
 * Defects, each with what goes wrong; docs/planted-defects.md has the rest. */
#include "faulty.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
    RMM868,      /* the counter is looked at before the memory is taken and raised after it: two
                    threads find room for one */
    HAMI217,     /* blocks from 1 MiB on are not entered in the table: their frees are ignored */
    KEEPS_CLAIM, /* what the device refuses stays claimed of the limit */
};
const char *const faulty_defects[] = {"rmm868", "hami217", "keeps_claim", NULL};

/* The blocks handed out. */
typedef struct entry entry;
struct entry {
    void *memory;
    entry *next;
};

typedef struct counters {
    atomic_uint_fast64_t claimed; /* what the limit is held against; more than is held at times */
    atomic_uint_fast64_t bytes, peak;        /* held */
    atomic_uint_fast64_t count, ooms, limit; /* limit 0: none */
} counters;

static counters devices[FAULTY_DEVICES];
static entry *table;
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;

static void enter(void *memory)
{
    entry *added = malloc(sizeof *added);
    if (!added) { /* the block would be lost */
        abort();
    }
    pthread_mutex_lock(&table_lock);
    entry *e = table;
    while (e && e->memory != memory) {
        e = e->next;
    }
    if (e) { /* it is there already */
        free(added);
    } else {
        *added = (entry){memory, table};
        table = added;
    }
    pthread_mutex_unlock(&table_lock);
}

static bool leave(const void *memory)
{
    pthread_mutex_lock(&table_lock);
    entry **link = &table;
    while (*link && (*link)->memory != memory) {
        link = &(*link)->next;
    }
    entry *gone = *link;
    if (gone) {
        *link = gone->next;
    }
    pthread_mutex_unlock(&table_lock);
    free(gone);
    return gone != NULL;
}

static void raise_peak(counters *c, uint64_t bytes)
{
    uint64_t peak = atomic_load(&c->peak);
    while (bytes > peak && !atomic_compare_exchange_weak(&c->peak, &peak, bytes)) {
    }
}

static bool fits(const counters *c, uint64_t bytes)
{
    uint64_t limit = atomic_load(&c->limit);
    return !limit || bytes <= limit;
}

static void *take(counters *c, size_t size)
{
    uint64_t before =
        faulty_is(RMM868) ? atomic_load(&c->claimed) : atomic_fetch_add(&c->claimed, size);
    void *memory = fits(c, before + size) ? faulty_take(size) : NULL;
    if (!memory) {
        bool is_kept = faulty_is(KEEPS_CLAIM) && fits(c, before + size);
        if (!faulty_is(RMM868) && !is_kept) {
            atomic_fetch_sub(&c->claimed, size);
        }
        return NULL;
    }
    if (faulty_is(RMM868)) {
        atomic_fetch_add(&c->claimed, size);
    }
    raise_peak(c, atomic_fetch_add(&c->bytes, size) + size);
    return memory;
}

void *gmd_malloc(size_t size, int device, cudaStream_t stream)
{
    (void)stream;
    counters *c = &devices[device];
    faulty_guard guard = faulty_enter_device(device);
    void *memory = size && size <= SIZE_MAX / 2 ? take(c, size) : NULL;
    faulty_leave_device(guard);
    if (memory) {
        if (size < ((size_t)1 << 20) || !faulty_is(HAMI217)) {
            enter(memory);
        }
        atomic_fetch_add(&c->count, 1);
    } else if (size) {
        atomic_fetch_add(&c->ooms, 1);
    }
    return memory;
}

void gmd_free(void *pointer, size_t size, int device, cudaStream_t stream)
{
    (void)stream;
    if (!leave(pointer)) {
        return; /* nobody's */
    }
    atomic_fetch_sub(&devices[device].bytes, size); /* never more than the device has */
    if (cudaFree(pointer) != cudaSuccess) {
        cudaGetLastError();
    }
    atomic_fetch_sub(&devices[device].claimed, size);
    atomic_fetch_sub(&devices[device].count, 1);
}

void gmd_empty_cache(void) {}

void gmd_set_memory_fraction(double fraction, int device)
{
    uint64_t limit;
    if (faulty_limit(fraction, device, &limit)) {
        atomic_store(&devices[device].limit, limit);
    }
}

int gmd_get_stats(int device, gmd_stats *out)
{
    counters *c = &devices[device];
    uint64_t bytes = atomic_load(&c->bytes), count = atomic_load(&c->count);
    gmd_stats s = {.allocated_bytes = bytes,
                   .allocated_bytes_peak = atomic_load(&c->peak),
                   .reserved_bytes = bytes,
                   .reserved_bytes_peak = atomic_load(&c->peak),
                   .requested_bytes = bytes,
                   .allocation_count = count,
                   .segment_count = count,
                   .num_ooms = atomic_load(&c->ooms)};
    return faulty_give_stats(&s, out);
}
