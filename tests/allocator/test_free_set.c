/* The ordered set of free blocks, against a plain sorted array. */
#include "free_set.h"
#include "gmd_test.h"

#include <stdlib.h>
#include <string.h>

#define MODEL_MAX 512

typedef struct model {
    free_set *set;
    block blocks[MODEL_MAX];
    bool is_in[MODEL_MAX];
    uint64_t random;
} model;

static uint64_t next_random(model *m)
{
    m->random ^= m->random << 13;
    m->random ^= m->random >> 7;
    m->random ^= m->random << 17;
    return m->random;
}

static void open_model(model *m, bool is_small)
{
    memset(m, 0, sizeof *m);
    m->random = 0x123456789abcdef;
    m->set = aligned_alloc(_Alignof(free_set), sizeof *m->set);
    assert_non_null(m->set);
    memset(m->set, 0, sizeof *m->set);
    m->set->is_small = is_small;
}

static const block *expected_lower_bound(const model *m, uint64_t size, uint64_t address)
{
    const block *best = NULL;
    for (int i = 0; i < MODEL_MAX; i++) {
        const block *b = &m->blocks[i];
        if (!m->is_in[i] || b->size < size || (b->size == size && b->address < address)) {
            continue;
        }
        if (!best || b->size < best->size ||
            (b->size == best->size && b->address < best->address)) {
            best = b;
        }
    }
    return best;
}

static void compare_with_model(uint64_t size_limit, bool is_small)
{
    static model m;
    open_model(&m, is_small);
    for (int step = 0; step < 20000; step++) {
        int i = (int)(next_random(&m) % MODEL_MAX);
        block *b = &m.blocks[i];
        if (m.is_in[i]) {
            free_set_remove(m.set, b);
        } else {
            /* Few distinct sizes, so that ties are broken by address often. */
            uint64_t spread = next_random(&m) % 3 ? 8 : size_limit / 512;
            b->size = (next_random(&m) % spread + 1) * 512;
            b->address = (uint64_t)(i + 1) << 30;
            b->set_and_state = (uint64_t)(uintptr_t)m.set;
            free_set_insert(m.set, b);
        }
        m.is_in[i] = !m.is_in[i];
        uint64_t size = (next_random(&m) % (size_limit / 512) + 1) * 512;
        uint64_t address = next_random(&m) % 2 ? 0 : (next_random(&m) % MODEL_MAX) << 30;
        assert_ptr_equal(free_set_lower_bound(m.set, size, address),
                         expected_lower_bound(&m, size, address));
        if (step % 64 == 0) {
            assert_true(free_set_is_valid(m.set));
        }
    }
    free(m.set);
}

TEST(small_pool_finds_the_best_fit_at_the_lowest_address)
{
    compare_with_model((uint64_t)2 << 20, true);
}

TEST(large_pool_finds_the_best_fit_at_the_lowest_address)
{
    compare_with_model((uint64_t)1 << 38, false);
}

typedef struct visit_log {
    uint64_t last_size, last_address;
    int count;
} visit_log;

static void note_visit(void *context, block *b)
{
    visit_log *log = context;
    assert_true(b->size > log->last_size ||
                (b->size == log->last_size && b->address > log->last_address));
    log->last_size = b->size;
    log->last_address = b->address;
    log->count++;
}

TEST(visits_every_block_in_order)
{
    static model m;
    open_model(&m, true);
    for (int i = 0; i < MODEL_MAX; i++) {
        m.blocks[i].size = (next_random(&m) % 20 + 1) * 512;
        m.blocks[i].address = (uint64_t)(i + 1) << 21;
        free_set_insert(m.set, &m.blocks[i]);
    }
    visit_log log = {0};
    free_set_each(m.set, note_visit, &log);
    assert_int_equal(log.count, MODEL_MAX);
    free(m.set);
}
