#include "gmd_repeats.h"

#include <string.h>

/* The difference where it is a step; 2: it is none. */
static int8_t step_between(uint32_t a, uint32_t b)
{
    return a == b ? 0 : b == a + 1 && b ? 1 : b + 1 == a && a ? -1 : 2;
}

static uint32_t number_of_other(const gmd_request *r, const gmd_numbering *n)
{
    return gmd_op_has(r->op, GMD_FIELD_POOL)           ? n->pools[r->pool]
           : gmd_op_has(r->op, GMD_FIELD_OTHER_STREAM) ? n->streams[r->other_stream]
                                                       : r->function;
}

/* The request without what its line does not say, and with numbers for places. */
static gmd_request meant(const gmd_request *r, const gmd_numbering *n)
{
    const uint32_t others = GMD_FIELD_BIT(GMD_FIELD_OTHER_STREAM) | GMD_FIELD_BIT(GMD_FIELD_POOL) |
                            GMD_FIELD_BIT(GMD_FIELD_FUNCTION);
    const uint32_t values = GMD_BYTES_FIELDS | GMD_DURATION_FIELDS |
                            GMD_FIELD_BIT(GMD_FIELD_FRACTION) | GMD_FIELD_BIT(GMD_FIELD_COUNT);
    const uint32_t flags = GMD_FIELD_BIT(GMD_FIELD_EXPECT) | GMD_FIELD_BIT(GMD_FIELD_EVERY) |
                           GMD_FIELD_BIT(GMD_FIELD_POOL_OPTIONS);
    gmd_request m = {
        .op = r->op,
        .expect = gmd_op_has_any(r->op, flags) ? r->expect : 0,
        .device = gmd_op_has_any(r->op, GMD_DEVICE_FIELDS) ? r->device : 0,
        .block = gmd_op_has_block(r->op) ? r->block : 0,
        .stream = gmd_op_has_any(r->op, GMD_STREAM_FIELDS) ? r->stream : 0,
        .other_stream = gmd_op_has_any(r->op, others) ? r->other_stream : 0,
        .bytes = gmd_op_has_any(r->op, values) ? r->bytes : 0,
    };
    if (n) {
        bool names_stream = gmd_request_names_stream(r) && r->stream < n->stream_count;
        m.block = gmd_op_has_block(r->op) ? n->blocks[r->block] : 0;
        m.stream = names_stream ? n->streams[r->stream] : m.stream;
        m.other_stream = gmd_op_has_any(r->op, others) ? number_of_other(r, n) : 0;
    }
    return m;
}

static uint32_t thread_of(const gmd_request *r, const gmd_numbering *n)
{
    return n ? n->threads[r->thread] : r->thread;
}

/* All that is not numbered; which function fails is not. */
static bool is_alike(const gmd_request *a, const gmd_request *b)
{
    return a->op == b->op && a->expect == b->expect && a->bytes == b->bytes &&
           (!gmd_op_has(a->op, GMD_FIELD_FUNCTION) || a->function == b->function);
}

static bool find_step(const gmd_request *first, const gmd_request *next, const gmd_numbering *n,
                      gmd_turn_step *step)
{
    if (first->op != next->op) {
        return false;
    }
    const gmd_request a = meant(first, n), b = meant(next, n);
    *step = (gmd_turn_step){.block = step_between(a.block, b.block),
                            .stream = step_between(a.stream, b.stream),
                            .other = step_between(a.other_stream, b.other_stream),
                            .device = step_between(a.device, b.device),
                            .thread = step_between(thread_of(first, n), thread_of(next, n))};
    return is_alike(&a, &b) && step->block <= 1 && step->stream <= 1 && step->other <= 1 &&
           step->device <= 1 && step->thread <= 1;
}

static bool is_turn(const gmd_request *first, const gmd_turn_step *step, size_t turn,
                    const gmd_request *now, const gmd_numbering *n)
{
    const gmd_request a = meant(first, n), b = meant(now, n);
    int64_t by = (int64_t)turn;
    return is_alike(&a, &b) && b.block == a.block + by * step->block &&
           b.stream == a.stream + by * step->stream &&
           b.other_stream == a.other_stream + by * step->other &&
           b.device == a.device + by * step->device &&
           thread_of(now, n) == thread_of(first, n) + by * step->thread;
}

/* Whether the whole turn is there. */
static bool has_turn(const gmd_trace *t, size_t at, const gmd_repeat *r, size_t turn,
                     const gmd_repeat_search *s)
{
    for (uint32_t k = 0; k < r->length; k++) {
        size_t i = at + turn * r->length + k;
        if (i >= t->count) {
            return false;
        }
        const gmd_request *first = &t->requests[at + k], *now = &t->requests[i];
        if (!is_turn(first, &r->steps[k], turn, now, s->numbering) ||
            (s->check && !s->check(s->context, first, now, &r->steps[k], turn))) {
            return false;
        }
    }
    return true;
}

static gmd_repeat repeat_of(const gmd_trace *t, size_t at, uint32_t length,
                            const gmd_repeat_search *s)
{
    gmd_repeat r = {.length = length, .turns = 1};
    for (uint32_t k = 0; k < length; k++) {
        size_t next = at + length + k;
        if (next >= t->count ||
            !find_step(&t->requests[at + k], &t->requests[next], s->numbering, &r.steps[k])) {
            return r;
        }
    }
    if (!has_turn(t, at, &r, 0, s)) {
        return r;
    }
    while (has_turn(t, at, &r, r.turns, s)) {
        r.turns++;
    }
    return r;
}

gmd_repeat gmd_repeat_at(const gmd_trace *t, size_t at, const gmd_repeat_search *s)
{
    gmd_repeat best = {.length = 1, .turns = 1};
    for (uint32_t length = 1; length <= GMD_TURN_LENGTH_MAX && at + length < t->count; length++) {
        gmd_repeat r = repeat_of(t, at, length, s);
        bool is_enough = r.turns >= 2 && r.turns >= s->least;
        if (is_enough && r.turns * r.length > best.turns * best.length) {
            best = r;
        }
    }
    return best;
}
