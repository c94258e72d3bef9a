/* mutate_cross.c - inputs of two others. */
#include "gmd_min.h"
#include "gmd_mutate.h"
#include "mutant.h"

#include <string.h>

enum { TURN_MAX = 16 };

static size_t below(mutant *m, size_t bound)
{
    return (size_t)gmd_random_below(&m->random, bound);
}

static bool chance(mutant *m, unsigned percent)
{
    return gmd_random_chance(&m->random, percent);
}

typedef struct run_of {
    const uint8_t *records;
    size_t count;
} run_of;

static run_of records_of(const uint8_t *data, size_t size)
{
    bool has_some = size >= GMD_INPUT_HEADER + GMD_INPUT_RECORD;
    return (run_of){has_some ? data + GMD_INPUT_HEADER : NULL,
                    has_some ? (size - GMD_INPUT_HEADER) / GMD_INPUT_RECORD : 0};
}

/* Puts records `from` to `end` behind what is there, as many as there is room for. */
static void append(mutant *m, run_of source, size_t from, size_t end)
{
    size_t count = end - from, room = m->most - m->count;
    count = gmd_min(count, room);
    if (count) {
        memcpy(record_at(m, m->count), source.records + from * GMD_INPUT_RECORD,
               count * GMD_INPUT_RECORD);
        m->count += count;
    }
}

/* Runs of both by turns: what two programs on one device would do. */
static void interleave(mutant *m, run_of a, run_of b)
{
    size_t next_a = 0, next_b = 0;
    while ((next_a < a.count || next_b < b.count) && m->count < m->most) {
        bool is_a = next_b >= b.count || (next_a < a.count && chance(m, 50));
        run_of source = is_a ? a : b;
        size_t *next = is_a ? &next_a : &next_b;
        size_t left = source.count - *next, length = 1 + below(m, TURN_MAX);
        length = gmd_min(length, left);
        append(m, source, *next, *next + length);
        *next += length;
    }
}

/* A run of `a` gives way to one of `b`; of no length: comes before it. */
static void replace(mutant *m, run_of a, run_of b)
{
    size_t from = below(m, a.count + 1), end = from;
    if (chance(m, 50)) {
        end += below(m, a.count - from + 1);
    }
    size_t first = below(m, b.count), last = first + 1 + below(m, b.count - first);
    append(m, a, 0, from);
    append(m, b, first, last);
    append(m, a, end, a.count);
}

size_t gmd_cross(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size, uint8_t *out,
                 size_t max_size, uint64_t seed)
{
    mutant m;
    if (!mutant_open(&m, out, 0, max_size, seed)) {
        return 0;
    }
    run_of first = records_of(a, a_size), second = records_of(b, b_size);
    const uint8_t *header = chance(&m, 75) ? a : b;
    size_t header_size = header == a ? a_size : b_size;
    if (header_size) {
        memset(out, 0, GMD_INPUT_HEADER);
        memcpy(out, header, gmd_min(header_size, GMD_INPUT_HEADER));
    }
    size_t other_size = header == a ? b_size : a_size;
    const uint8_t *other = header == a ? b : a;
    if (header_size && other_size > GMD_INPUT_AT_POOLS &&
        other[GMD_INPUT_AT_POOLS] > out[GMD_INPUT_AT_POOLS]) {
        out[GMD_INPUT_AT_POOLS] = other[GMD_INPUT_AT_POOLS]; /* its records of pools stay that */
    }
    size_t way = second.count ? below(&m, 4) : 3;
    if (way == 0) { /* the beginning of one, the end of the other */
        append(&m, first, 0, below(&m, first.count + 1));
        append(&m, second, below(&m, second.count), second.count);
    } else if (way < 3) {
        replace(&m, first, second);
    } else {
        interleave(&m, first, second);
    }
    return mutant_close(&m);
}
