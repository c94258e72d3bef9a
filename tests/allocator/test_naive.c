/* The reference allocator against a naive model: the same rules on plain arrays, searched from end
 * to end. Every address, every device call and the sums must agree over random requests on three
 * streams under a tight limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gmd_allocator.h"
#include "gmd_sim.h"
#include "gmd_size.h"

#include <stdlib.h>
#include <string.h>

#define STREAMS   3
#define BLOCK_MAX 4096
#define LIMIT     (256 * GMD_MIB)

typedef struct naive_block {
    uint64_t address, size, segment, segment_size, requested;
    int stream;
    bool is_small, is_live;
} naive_block;

typedef struct naive_model {
    naive_block blocks[BLOCK_MAX];
    int count;
    uint64_t reserved, ooms, retries;
} naive_model;

typedef struct call_log {
    uint64_t allocated_at[16];
    int alloc_count, free_count;
} call_log;

static void note_call(void *context, const gmd_sim_call *call)
{
    call_log *log = context;
    if (call->result != 0) {
        return;
    }
    if (call->kind == GMD_SIM_CALL_MALLOC) {
        log->allocated_at[log->alloc_count++] = call->address;
    }
    log->free_count += call->kind == GMD_SIM_CALL_FREE;
}

static void remove_block(naive_model *m, int i)
{
    m->blocks[i] = m->blocks[--m->count];
}

static int naive_best(const naive_model *m, uint64_t size, int stream, bool is_small)
{
    int best = -1;
    for (int i = 0; i < m->count; i++) {
        const naive_block *b = &m->blocks[i], *top = best >= 0 ? &m->blocks[best] : NULL;
        if (b->is_live || b->stream != stream || b->is_small != is_small || b->size < size) {
            continue;
        }
        if (!top || b->size < top->size || (b->size == top->size && b->address < top->address)) {
            best = i;
        }
    }
    return best;
}

static int naive_give_back(naive_model *m)
{
    int freed = 0;
    for (int i = m->count; i-- > 0;) {
        if (!m->blocks[i].is_live && m->blocks[i].size == m->blocks[i].segment_size) {
            m->reserved -= m->blocks[i].size;
            remove_block(m, i);
            freed++;
        }
    }
    return freed;
}

/* The address that the model expects; `log` says where the device put a new segment. */
static uint64_t naive_malloc(naive_model *m, uint64_t requested, int stream, const call_log *log)
{
    uint64_t size = requested <= 512 ? 512 : (requested + 511) / 512 * 512;
    bool is_small = size <= GMD_MIB;
    int at = naive_best(m, size, stream, is_small);
    if (at < 0) {
        uint64_t segment = is_small ? 2 * GMD_MIB
                           : size < 10 * GMD_MIB
                               ? 20 * GMD_MIB
                               : (size + 2 * GMD_MIB - 1) / (2 * GMD_MIB) * (2 * GMD_MIB);
        int freed = 0;
        if (m->reserved + segment > LIMIT) {
            freed = naive_give_back(m);
            m->retries++;
        }
        assert_int_equal(log->free_count, freed);
        if (m->reserved + segment > LIMIT) {
            m->ooms++;
            assert_int_equal(log->alloc_count, 0);
            return 0;
        }
        assert_int_equal(log->alloc_count, 1);
        at = m->count++;
        m->blocks[at] = (naive_block){.address = log->allocated_at[0],
                                      .size = segment,
                                      .segment = log->allocated_at[0],
                                      .segment_size = segment,
                                      .stream = stream,
                                      .is_small = is_small};
        m->reserved += segment;
    } else {
        assert_int_equal(log->alloc_count + log->free_count, 0);
    }
    naive_block *b = &m->blocks[at];
    uint64_t rest = b->size - size;
    if (is_small ? rest >= 512 : rest > GMD_MIB) {
        naive_block remainder = *b;
        remainder.address += size;
        remainder.size = rest;
        m->blocks[m->count++] = remainder;
        b->size = size;
    }
    b->is_live = true;
    b->requested = requested;
    return b->address;
}

static void naive_free(naive_model *m, uint64_t address)
{
    int at = 0;
    while (m->blocks[at].address != address || !m->blocks[at].is_live) {
        at++;
    }
    m->blocks[at].is_live = false;
    for (bool merged = true; merged;) {
        merged = false;
        for (int i = 0; i < m->count && !merged; i++) {
            naive_block *a = &m->blocks[at], *b = &m->blocks[i];
            if (i == at || b->is_live || b->segment != a->segment) {
                continue;
            }
            if (b->address + b->size == a->address || a->address + a->size == b->address) {
                a->address = a->address < b->address ? a->address : b->address;
                a->size += b->size;
                int last = m->count - 1;
                remove_block(m, i);
                at = at == last ? i : at;
                merged = true;
            }
        }
    }
}

static uint64_t draw_size(uint64_t random)
{
    static const uint64_t edges[] = {512, GMD_MIB, 2 * GMD_MIB, 10 * GMD_MIB, 20 * GMD_MIB};
    uint64_t kind = random % 10;
    if (kind < 3) { /* around a boundary of the rules */
        return edges[random / 16 % 5] - 2 + random / 128 % 5;
    }
    return kind < 8 ? random / 16 % (256 * GMD_KIB) + 1 : random / 16 % (30 * GMD_MIB) + 1;
}

static void every_answer_is_that_of_the_naive_model(void **state)
{
    (void)state;
    enum { LIVE = 300, STEPS = 60000 };
    static naive_model model;
    static uint64_t live[LIVE];
    gmd_sim_config config;
    gmd_sim_default_config(&config);
    config.capacity_bytes = 2 * LIMIT;
    config.placement = GMD_SIM_REUSE_FIRST;
    gmd_sim_reset(&config);
    cudaStream_t streams[STREAMS];
    for (int i = 0; i < STREAMS; i++) {
        cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking);
    }
    gmd_allocator *a = NULL;
    assert_int_equal(gmd_allocator_create(&a, 1, NULL, NULL), GMD_OK);
    assert_true(gmd_allocator_set_memory_fraction(a, 0.5, 0));
    call_log log = {0};
    gmd_sim_observe(note_call, &log);
    uint64_t random = 99;
    for (int step = 0; step < STEPS; step++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        uint64_t *slot = &live[(random >> 20) % LIVE];
        log = (call_log){0};
        if (*slot) {
            assert_true(gmd_allocator_free(a, (void *)(uintptr_t)*slot, 0, NULL));
            naive_free(&model, *slot);
            *slot = 0;
        } else {
            int stream = (int)((random >> 50) % STREAMS);
            uint64_t size = draw_size(random >> 16);
            *slot = (uint64_t)(uintptr_t)gmd_allocator_malloc(a, size, 0, streams[stream]);
            assert_int_equal(*slot, naive_malloc(&model, size, stream, &log));
        }
    }
    gmd_stats s = {.struct_size = sizeof s};
    assert_true(gmd_allocator_get_stats(a, 0, &s));
    assert_int_equal(s.reserved_bytes, model.reserved);
    assert_int_equal(s.num_ooms, model.ooms);
    assert_int_equal(s.num_alloc_retries, model.retries);
    assert_true(model.ooms > 10 && model.retries > model.ooms); /* the limit was felt */
    gmd_sim_observe(NULL, NULL);
    gmd_allocator_destroy(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_answer_is_that_of_the_naive_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
