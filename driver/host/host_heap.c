#define _GNU_SOURCE /* reallocarray, memalign */
#include "gmd_host_heap.h"

#include "gmd_address_table.h"
#include "gmd_grow.h"
#include "host_calls.h"

#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { TABLE_FIRST = 4096, NONE = UINT32_MAX };

typedef struct block {
    uint64_t address; /* 0: the place is free, */
    uint64_t bytes;   /* and this is the next such place */
    uint32_t function;
} block;

/* The functions in the libraries' tables are called without a context. */
static struct {
    atomic_bool is_on;
    atomic_flag is_taken; /* by a thread that changes what follows */
    bool is_lost;         /* no memory of gmd's own */
    gmd_address_table table;
    size_t table_room, count;
    block *blocks;
    size_t block_room, block_count;
    uint64_t next_free; /* place in `blocks`; NONE: none */
    gmd_host_held held[GMD_HOST_FUNCTION_MAX];
    size_t function_count;
} heap = {.is_taken = ATOMIC_FLAG_INIT, .next_free = NONE};

static _Thread_local const char *under_way;

void host_heap_enter(const char *function)
{
    under_way = function;
}

void host_heap_leave(void)
{
    under_way = NULL;
}

/* pthread's locks are yield points in this program. */
static void take_turn(void)
{
    while (atomic_flag_test_and_set_explicit(&heap.is_taken, memory_order_acquire)) {
    }
}

static void end_turn(void)
{
    atomic_flag_clear_explicit(&heap.is_taken, memory_order_release);
}

/* --- books ------------------------------------------------------------------------------- */

static uint32_t function_under_way(void)
{
    size_t i = 0;
    while (i < heap.function_count &&
           (heap.held[i].function && under_way ? strcmp(heap.held[i].function, under_way) != 0
                                               : heap.held[i].function != under_way)) {
        i++;
    }
    if (i == heap.function_count && i < GMD_HOST_FUNCTION_MAX) {
        heap.held[heap.function_count++] = (gmd_host_held){.function = under_way};
    }
    return i < GMD_HOST_FUNCTION_MAX ? (uint32_t)i : GMD_HOST_FUNCTION_MAX - 1;
}

static bool widen_table(void)
{
    gmd_address_table wider;
    if (heap.count < heap.table_room) {
        return true;
    }
    if (!gmd_address_table_make(&wider, heap.table_room * 2)) {
        return false;
    }
    for (size_t i = 0; i < heap.block_count; i++) {
        if (heap.blocks[i].address) {
            gmd_address_table_put(&wider, heap.blocks[i].address, (uint32_t)i);
        }
    }
    gmd_address_table_free(&heap.table);
    heap.table = wider;
    heap.table_room *= 2;
    return true;
}

static bool add(uint64_t address, uint64_t bytes)
{
    if (!widen_table()) {
        return false;
    }
    uint64_t place = heap.next_free;
    if (place == NONE) {
        if (heap.block_count == NONE ||
            !GMD_GROW(&heap.blocks, &heap.block_room, heap.block_count + 1)) {
            return false;
        }
        place = heap.block_count++;
    } else {
        heap.next_free = heap.blocks[place].bytes;
    }
    heap.blocks[place] =
        (block){.address = address, .bytes = bytes, .function = function_under_way()};
    heap.held[heap.blocks[place].function].bytes += bytes;
    heap.count++;
    return gmd_address_table_put(&heap.table, address, (uint32_t)place);
}

/* The bytes that were asked for; 0: it is none that was noted. */
static uint64_t drop(uint64_t address)
{
    uint32_t place;
    if (!gmd_address_table_take(&heap.table, address, &place)) {
        return 0;
    }
    block *b = &heap.blocks[place];
    uint64_t bytes = b->bytes;
    heap.held[b->function].bytes -= bytes;
    *b = (block){.bytes = heap.next_free};
    heap.next_free = place;
    heap.count--;
    return bytes;
}

/* What was there before was freed where it is not seen: by the C library, say. */
static void note(uint64_t address, uint64_t bytes)
{
    if (address && atomic_load_explicit(&heap.is_on, memory_order_relaxed)) {
        int kept = errno;
        take_turn();
        drop(address);
        heap.is_lost = heap.is_lost || !add(address, bytes);
        end_turn();
        errno = kept;
    }
}

/* Before it is freed: afterwards another thread may get it. Returns as drop. */
static uint64_t forget(const void *memory)
{
    if (!memory || !atomic_load_explicit(&heap.is_on, memory_order_relaxed)) {
        return 0;
    }
    take_turn();
    uint64_t bytes = drop((uint64_t)(uintptr_t)memory);
    end_turn();
    return bytes;
}

/* --- what the libraries call ------------------------------------------------------------- */

static void *noted_malloc(size_t size)
{
    void *memory = malloc(size);
    note((uintptr_t)memory, size);
    return memory;
}

static void *noted_calloc(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    note((uintptr_t)memory, (uint64_t)count * size);
    return memory;
}

static void *noted_realloc(void *old, size_t size)
{
    uint64_t before = forget(old);
    void *memory = realloc(old, size);
    if (!memory && size && before) {
        note((uintptr_t)old, before);
    }
    note((uintptr_t)memory, size);
    return memory;
}

static void *noted_reallocarray(void *old, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return noted_realloc(old, bytes);
}

static void noted_free(void *memory)
{
    forget(memory);
    free(memory);
}

static int noted_posix_memalign(void **memory, size_t alignment, size_t size)
{
    int result = posix_memalign(memory, alignment, size);
    if (result == 0) {
        note((uintptr_t)*memory, size);
    }
    return result;
}

static void *noted_aligned_alloc(size_t alignment, size_t size)
{
    void *memory = aligned_alloc(alignment, size);
    note((uintptr_t)memory, size);
    return memory;
}

static void *noted_memalign(size_t alignment, size_t size)
{
    void *memory = memalign(alignment, size);
    note((uintptr_t)memory, size);
    return memory;
}

static const host_call calls[] = {
    {"malloc", (host_function *)noted_malloc},
    {"calloc", (host_function *)noted_calloc},
    {"realloc", (host_function *)noted_realloc},
    {"reallocarray", (host_function *)noted_reallocarray},
    {"free", (host_function *)noted_free},
    {"posix_memalign", (host_function *)noted_posix_memalign},
    {"aligned_alloc", (host_function *)noted_aligned_alloc},
    {"memalign", (host_function *)noted_memalign},
};

/* --- watching ---------------------------------------------------------------------------- */

bool gmd_host_heap_watch(void)
{
    if (!host_calls_exchange(calls, sizeof calls / sizeof *calls)) {
        return false;
    }
    if (!heap.table_room && gmd_address_table_make(&heap.table, TABLE_FIRST)) {
        heap.table_room = TABLE_FIRST;
    }
    atomic_store(&heap.is_on, heap.table_room > 0);
    return heap.table_room > 0;
}

size_t gmd_host_heap_held(gmd_host_held held[GMD_HOST_FUNCTION_MAX])
{
    take_turn();
    size_t count = heap.is_lost ? 0 : heap.function_count;
    memcpy(held, heap.held, count * sizeof *held);
    end_turn();
    return count;
}
