#include "gmd_naive_model.h"

#include "gmd_min.h"
#include "gmd_size.h"

static void remove_block(gmd_naive_model *m, size_t i)
{
    m->blocks[i] = m->blocks[--m->count];
}

/* Where a request goes. */
static uint32_t pool_for(const gmd_naive_model *m, uint32_t stream)
{
    return m->streams >> stream & 1 ? m->open : 0;
}

static uint32_t find_kept(const gmd_naive_model *m, uint32_t pool)
{
    uint32_t i = 0;
    while (i < m->kept_count && m->kept[i] != pool) {
        i++;
    }
    return i;
}

static bool is_kept(const gmd_naive_model *m, uint32_t pool)
{
    return find_kept(m, pool) < m->kept_count;
}

static void keep(gmd_naive_model *m, uint32_t pool)
{
    if (!is_kept(m, pool)) {
        m->kept[m->kept_count++] = pool;
    }
}

/* The smallest that fits, of these the lowest; m->count: none. */
static size_t best_fit(const gmd_naive_model *m, uint64_t size, uint32_t stream, bool is_small)
{
    uint32_t pool = pool_for(m, stream);
    size_t best = m->count;
    for (size_t i = 0; i < m->count; i++) {
        const gmd_naive_block *b = &m->blocks[i], *top = best < m->count ? &m->blocks[best] : NULL;
        if (b->is_live || b->stream != stream || b->pool != pool || b->is_small != is_small ||
            b->size < size) {
            continue;
        }
        if (!top || b->size < top->size || (b->size == top->size && b->address < top->address)) {
            best = i;
        }
    }
    return best;
}

static bool goes_back(const gmd_naive_model *m, const gmd_naive_block *b)
{
    bool is_held_off = is_kept(m, b->pool) || (m->keeps_pools && m->open && !b->pool);
    return !b->is_live && b->size == b->segment_size && !is_held_off;
}

static unsigned give_back(gmd_naive_model *m)
{
    unsigned given = 0;
    for (size_t i = m->count; i-- > 0;) {
        if (goes_back(m, &m->blocks[i])) {
            m->reserved -= m->blocks[i].size;
            remove_block(m, i);
            given++;
        }
    }
    return given;
}

unsigned gmd_naive_empty_cache(gmd_naive_model *m)
{
    return !m->keeps_pools && is_kept(m, m->open) ? 0 : give_back(m);
}

static uint64_t segment_for(uint64_t size, bool is_small)
{
    if (is_small) {
        return 2 * GMD_MIB;
    }
    return size < 10 * GMD_MIB ? 20 * GMD_MIB
                               : (size + 2 * GMD_MIB - 1) / (2 * GMD_MIB) * (2 * GMD_MIB);
}

/* A block of its own segment, with what was asked of the device noted; m->count: refused. */
static size_t new_segment(gmd_naive_model *m, gmd_naive_block block, gmd_naive_answer *answer)
{
    bool gives_back = !m->is_capturing && (!m->keeps_pools || !m->open);
    if (m->reserved + block.size > m->limit && gives_back) {
        answer->given = give_back(m);
        m->retries++;
    }
    if (m->reserved + block.size > m->limit) {
        m->ooms++;
        return m->count;
    }
    answer->made = 1;
    m->reserved += block.size;
    m->blocks[m->count] = block;
    return m->count++;
}

static void split(gmd_naive_model *m, size_t at, uint64_t size)
{
    gmd_naive_block *b = &m->blocks[at];
    uint64_t rest = b->size - size;
    if (b->is_small ? rest >= 512 : rest > GMD_MIB) {
        gmd_naive_block remainder = *b;
        remainder.address += size;
        remainder.size = rest;
        m->blocks[m->count++] = remainder;
        b->size = size;
    }
}

gmd_naive_answer gmd_naive_malloc(gmd_naive_model *m, uint64_t requested, uint32_t stream,
                                  uint64_t placed)
{
    gmd_naive_answer answer = {0};
    uint64_t size = requested <= 512 ? 512 : (requested + 511) / 512 * 512;
    bool is_small = size <= GMD_MIB;
    size_t at = best_fit(m, size, stream, is_small);
    if (m->is_capturing) {
        keep(m, m->open);
    }
    if (at == m->count) {
        uint64_t segment = segment_for(size, is_small);
        uint32_t pool = pool_for(m, stream);
        gmd_naive_block block = {.address = placed,
                                 .size = segment,
                                 .segment = placed,
                                 .segment_size = segment,
                                 .stream = stream,
                                 .pool = pool,
                                 .is_small = is_small};
        at = new_segment(m, block, &answer);
        if (!answer.made) {
            return answer;
        }
    }
    split(m, at, size);
    m->blocks[at].is_live = true;
    answer.address = m->blocks[at].address;
    return answer;
}

/* A free neighbour of `at` in its segment; m->count: none. */
static size_t find_neighbour(const gmd_naive_model *m, size_t at)
{
    const gmd_naive_block *a = &m->blocks[at];
    for (size_t i = 0; i < m->count; i++) {
        const gmd_naive_block *b = &m->blocks[i];
        if (i != at && !b->is_live && b->segment == a->segment &&
            (b->address + b->size == a->address || a->address + a->size == b->address)) {
            return i;
        }
    }
    return m->count;
}

void gmd_naive_free(gmd_naive_model *m, uint64_t address)
{
    size_t at = 0;
    while (m->blocks[at].address != address || !m->blocks[at].is_live) {
        at++;
    }
    m->blocks[at].is_live = false;
    for (size_t i = find_neighbour(m, at); i < m->count; i = find_neighbour(m, at)) {
        gmd_naive_block *a = &m->blocks[at], *b = &m->blocks[i];
        a->address = gmd_min(a->address, b->address);
        a->size += b->size;
        size_t last = m->count - 1;
        remove_block(m, i);
        at = at == last ? i : at; /* the last one has taken the removed one's place */
    }
}

void gmd_naive_begin_pool(gmd_naive_model *m, uint32_t pool, uint32_t stream)
{
    m->open = pool;
    m->streams = stream == GMD_NAIVE_ALL_STREAMS ? UINT64_MAX : (uint64_t)1 << stream;
    if (m->keeps_pools) {
        keep(m, pool);
    }
}

void gmd_naive_begin_capture(gmd_naive_model *m, uint32_t pool, uint32_t stream)
{
    gmd_naive_begin_pool(m, pool, stream);
    m->is_capturing = true;
}

void gmd_naive_join_capture(gmd_naive_model *m, uint32_t stream)
{
    m->streams |= (uint64_t)1 << stream;
}

void gmd_naive_end_pool(gmd_naive_model *m)
{
    m->open = 0;
    m->is_capturing = false;
}

void gmd_naive_drop_pool(gmd_naive_model *m, uint32_t pool)
{
    uint32_t i = find_kept(m, pool);
    if (i < m->kept_count) {
        m->kept[i] = m->kept[--m->kept_count];
    }
}
