/* mutate_draw.c - new records: kinds, sizes and places as a campaign draws them (generate.c). */
#include "gmd_input_pools.h"
#include "mutant.h"

#include <string.h>

static uint32_t below(mutant *m, uint32_t bound)
{
    return (uint32_t)gmd_random_below(&m->random, bound);
}

static bool chance(mutant *m, unsigned percent)
{
    return gmd_random_chance(&m->random, percent);
}

/* --- fields ------------------------------------------------------------------------------ */

/* The value of an allocation that is there; false: none was come upon. */
static bool size_from_here(mutant *m, uint32_t *size)
{
    for (int attempt = 0; attempt < 4 && m->count; attempt++) {
        size_t i = below(m, (uint32_t)m->count);
        if (kind_has_any(record_kind(m, i), GMD_FIELD_BIT(GMD_FIELD_BYTES))) {
            *size = gmd_input_get32(record_at(m, i) + 4);
            return true;
        }
    }
    return false;
}

/* One of the sizes of this kind, and a step beside it. */
static uint32_t beside(mutant *m, gmd_input_boundary what)
{
    uint32_t step = below(m, 16);
    return gmd_input_boundary_code(what, step, below(m, 64));
}

static uint32_t boundary(mutant *m)
{
    /* With the same steps from the same few sizes, requests meet; the rest is for variety. */
    static const uint8_t whats[] = {GMD_BOUNDARY_USUAL, GMD_BOUNDARY_USUAL,  GMD_BOUNDARY_USUAL,
                                    GMD_BOUNDARY_MIB,   GMD_BOUNDARY_MIB,    GMD_BOUNDARY_PART,
                                    GMD_BOUNDARY_PART,  GMD_BOUNDARY_SHARE,  GMD_BOUNDARY_LEFT,
                                    GMD_BOUNDARY_LEFT,  GMD_BOUNDARY_ROUNDS, GMD_BOUNDARY_ALIKE};
    gmd_input_boundary what = (gmd_input_boundary)whats[below(m, sizeof whats)];
    if (below(m, 200) == 0) {
        what = GMD_BOUNDARY_HUGE;
    }
    return beside(m, what);
}

uint32_t mutant_draw_size(mutant *m)
{
    uint32_t size;
    if (chance(m, 40) && size_from_here(m, &size)) {
        return size;
    }
    switch (below(m, 8)) {
    case 0:
        return 1 + below(m, (uint32_t)GMD_MIB / 16);
    case 1:
        return 1 + below(m, 32 * (uint32_t)GMD_MIB);
    case 2:
        return below(m, 50) ? (1 + below(m, 40)) * (uint32_t)GMD_MIB : 0;
    default:
        return boundary(m);
    }
}

static uint32_t draw_duration(mutant *m)
{
    static const uint32_t durations[] = {1000, 10000, 100000, 1000000000};
    return durations[below(m, 4)];
}

/* Microseconds: with the host's clock, beyond usual time limits of the host's. */
static uint32_t draw_advance(mutant *m)
{
    static const uint32_t long_ones_us[] = {11000000, 61000000, 601000000};
    bool moves_clock = m->data[GMD_INPUT_AT_INTERLEAVE] & GMD_INPUT_MOVES_CLOCK;
    return moves_clock && chance(m, 50) ? GMD_INPUT_TOP_BIT | long_ones_us[below(m, 3)]
                                        : draw_duration(m);
}

/* Likewise some work, which is not over by then. */
static uint32_t draw_work(mutant *m)
{
    bool moves_clock = m->data[GMD_INPUT_AT_INTERLEAVE] & GMD_INPUT_MOVES_CLOCK;
    return moves_clock && chance(m, 30) ? GMD_INPUT_TOP_BIT | 2000000000 : draw_duration(m);
}

/* Few streams and one device, so that requests meet; the header says how many there are. */
static uint8_t draw_place(mutant *m)
{
    uint32_t stream = chance(m, 60) ? below(m, 2) : below(m, 4);
    uint32_t device = chance(m, 75) ? 0 : below(m, 4);
    return (uint8_t)(stream | device << 5);
}

static uint32_t draw_target(mutant *m)
{
    return chance(m, 60) ? below(m, 3) : below(m, 16);
}

/* `kind`: an op, or GMD_RECORD_POOL. */
static void put(mutant *m, uint8_t *record, uint8_t kind, uint8_t place, uint32_t target,
                uint32_t value)
{
    uint32_t thread = chance(m, 70) ? 0 : below(m, 4);
    gmd_input_put_op(record, kind, thread, place & 31U, place >> 5);
    gmd_input_put16(record + 2, target);
    gmd_input_put32(record + 4, value);
}

/* --- records ----------------------------------------------------------------------------- */

void mutant_draw_fault(mutant *m, uint8_t *record)
{
    enum { OFTEN = 8 };
    uint32_t function = chance(m, 60)   ? below(m, OFTEN)
                        : chance(m, 80) ? below(m, gmd_input_memory_function_count)
                                        : below(m, gmd_input_function_count);
    uint32_t count = 1 + (chance(m, 60) ? 0 : below(m, 6));
    put(m, record, GMD_OP_FAULT, chance(m, 15), function, count);
}

static uint32_t draw_budget(mutant *m)
{
    return chance(m, 40) ? GMD_INPUT_NO_BUDGET : below(m, 64) * 2 * (uint32_t)GMD_MIB;
}

static uint32_t draw_value(mutant *m, uint8_t op)
{
    if (gmd_op_has(op, GMD_FIELD_BYTES)) {
        return mutant_draw_size(m);
    }
    if (gmd_op_has_any(op, GMD_DURATION_FIELDS)) {
        return op == GMD_OP_ADVANCE ? draw_advance(m) : draw_work(m);
    }
    if (gmd_op_has(op, GMD_FIELD_FRACTION)) {
        return (1 + below(m, 8)) * (GMD_INPUT_BILLION / 8);
    }
    return gmd_op_has(op, GMD_FIELD_BYTES_OR_NONE) ? draw_budget(m) : 0;
}

/* Every tenth begin has options. */
static gmd_input_pool_act draw_pool_act(mutant *m)
{
    gmd_input_pool_act act = (gmd_input_pool_act)below(m, GMD_POOL_PLAIN_ACTS);
    bool has_options = act <= GMD_POOL_BEGIN_ON && chance(m, 10);
    return has_options
               ? gmd_input_pool_begin_with(act, (uint8_t)(1 + below(m, GMD_POOL_OPTION_SETS - 1)))
               : act;
}

/* Only one or two pools are drawn, so that requests meet. */
static void draw_on_pool(mutant *m, uint8_t *record, gmd_input_pool_act act)
{
    uint8_t place = draw_place(m);
    uint32_t pool = chance(m, 70) ? 0 : below(m, 4);
    put(m, record, GMD_RECORD_POOL, place, pool, gmd_input_pool_value(act));
}

static bool has_pools(const mutant *m)
{
    return m->data[GMD_INPUT_AT_POOLS] != 0;
}

#define RECORD_WEIGHT(in_sequences, left_out, inserted)            (inserted)
#define ADD_WEIGHT(op, word, fields, needs, traits, step, weights) +RECORD_WEIGHT weights
enum { RECORD_WEIGHTS = GMD_REQUEST_TABLE(ADD_WEIGHT) };

static uint8_t draw_op(mutant *m)
{
    uint32_t at = below(m, RECORD_WEIGHTS);
    uint8_t op = 0;
    while (at >= gmd_request_rows[op].record_weight) {
        at -= gmd_request_rows[op++].record_weight;
    }
    return op;
}

void mutant_draw_record(mutant *m, uint8_t *record)
{
    if (has_pools(m) && chance(m, 8)) {
        draw_on_pool(m, record, draw_pool_act(m));
        return;
    }
    uint8_t op = draw_op(m);
    if (gmd_op_has(op, GMD_FIELD_FUNCTION)) {
        mutant_draw_fault(m, record);
    } else {
        uint8_t place = draw_place(m);
        uint32_t target = draw_target(m);
        put(m, record, op, place, target, draw_value(m, op));
    }
}

/* An allocation of any size. (Choices are made one after the other, not among the arguments of a
 * call, whose order is the compiler's: the same seed, the same input everywhere.) */
static void put_alloc(mutant *m, uint8_t *record)
{
    uint8_t place = draw_place(m);
    uint32_t size = mutant_draw_size(m);
    put(m, record, GMD_OP_ALLOC, place, 0, size);
}

/* --- requests that go together ----------------------------------------------------------- */

static size_t ask_again(mutant *m, uint8_t r[][GMD_INPUT_RECORD])
{
    uint32_t target = draw_target(m);
    uint8_t place = draw_place(m);
    put(m, r[0], GMD_OP_ALLOC, place, 0, gmd_input_boundary_code(GMD_BOUNDARY_ALIKE, 0, target));
    put(m, r[1], GMD_OP_FREE, 0, target + 1, 0);
    if (chance(m, 50)) { /* freed first: it may be handed out again */
        memcpy(r[2], r[0], GMD_INPUT_RECORD);
        return 3;
    }
    return 2;
}

static size_t use_elsewhere(mutant *m, uint8_t r[][GMD_INPUT_RECORD])
{
    uint32_t target = draw_target(m);
    uint8_t place = draw_place(m);
    size_t count = 0;
    put(m, r[count++], GMD_OP_USE, place, target, draw_duration(m));
    if (chance(m, 80)) {
        put(m, r[count++], GMD_OP_RECORD, place, target, 0);
    }
    put(m, r[count++], GMD_OP_FREE, 0, target, 0);
    if (chance(m, 60)) {
        put_alloc(m, r[count++]);
    }
    return count;
}

/* Full up to the limit, or nearly; then something must give way. */
static size_t fill_up(mutant *m, uint8_t r[][GMD_INPUT_RECORD])
{
    size_t count = 0;
    uint8_t place = draw_place(m);
    uint32_t size = beside(m, chance(m, 50) ? GMD_BOUNDARY_LEFT : GMD_BOUNDARY_SHARE);
    put(m, r[count++], GMD_OP_ALLOC, place, 0, size);
    if (chance(m, 50)) {
        put(m, r[count++], GMD_OP_FREE, 0, draw_target(m), 0);
    }
    put_alloc(m, r[count++]);
    if (chance(m, 50)) {
        r[count - 1][1] = place;
    }
    return count;
}

static size_t fail_a_request(mutant *m, uint8_t r[][GMD_INPUT_RECORD])
{
    mutant_draw_fault(m, r[0]);
    put_alloc(m, r[1]);
    put(m, r[2], GMD_OP_FREE, 0, draw_target(m), 0);
    if (chance(m, 50)) {
        put(m, r[2], GMD_OP_EMPTY_CACHE, 0, 0, 0);
    }
    put(m, r[3], GMD_OP_ALLOC, r[1][1], 0, gmd_input_get32(r[1] + 4));
    return chance(m, 50) ? 4 : 2;
}

/* A row of blocks alike, and every other one of them freed: neighbours that can and cannot merge.
 */
static size_t make_holes(mutant *m, uint8_t r[][GMD_INPUT_RECORD])
{
    uint8_t place = draw_place(m);
    uint32_t size = mutant_draw_size(m);
    for (size_t i = 0; i < 4; i++) {
        put(m, r[i], GMD_OP_ALLOC, place, 0, size);
    }
    put(m, r[4], GMD_OP_FREE, 0, 1, 0);
    put(m, r[5], GMD_OP_FREE, 0, below(m, 3), 0);
    return 6;
}

/* A block of a pool, freed there or after it, and one alike that may or may not get its memory. */
static size_t work_in_a_pool(mutant *m, uint8_t r[][GMD_INPUT_RECORD])
{
    size_t count = 0;
    draw_on_pool(m, r[count++], chance(m, 50) ? GMD_POOL_BEGIN : GMD_POOL_BEGIN_ON);
    put_alloc(m, r[count++]);
    r[count - 1][1] = r[0][1];
    bool is_freed_inside = chance(m, 50);
    if (is_freed_inside) {
        put(m, r[count++], GMD_OP_FREE, 0, 0, 0);
    }
    draw_on_pool(m, r[count], chance(m, 85) ? GMD_POOL_END : GMD_POOL_RELEASE);
    r[count++][1] = r[0][1];
    if (!is_freed_inside && chance(m, 50)) {
        put(m, r[count++], GMD_OP_FREE, 0, 0, 0);
    }
    memcpy(r[count++], r[1], GMD_INPUT_RECORD);
    return count;
}

/* The pool of `as`, on its device. */
static void put_same_pool(mutant *m, uint8_t *record, const uint8_t *as, gmd_input_pool_act act)
{
    put(m, record, GMD_RECORD_POOL, as[1], gmd_input_get16(as + 2), gmd_input_pool_value(act));
}

/* A pool with a block is kept; the block is freed, or another one comes; the pool is brought back,
 * and a block alike asked for there. */
static size_t bring_a_pool_back(mutant *m, uint8_t r[][GMD_INPUT_RECORD])
{
    size_t count = 0;
    draw_on_pool(m, r[count++], chance(m, 50) ? GMD_POOL_BEGIN : GMD_POOL_BEGIN_ON);
    put_alloc(m, r[count++]);
    r[count - 1][1] = r[0][1];
    put_same_pool(m, r[count++], r[0], GMD_POOL_CHECKPOINT);
    if (chance(m, 60)) {
        put(m, r[count++], GMD_OP_FREE, 0, 0, 0);
    } else {
        memcpy(r[count++], r[1], GMD_INPUT_RECORD);
    }
    put_same_pool(m, r[count++], r[0], GMD_POOL_RESTORE);
    memcpy(r[count++], r[1], GMD_INPUT_RECORD);
    put_same_pool(m, r[count++], r[0], GMD_POOL_END);
    return count;
}

/* What is captured works on a block, maybe on another stream, too; then the graph is launched, and
 * a block alike asked for. Or the capture fails, since the host waits for its stream. */
static size_t capture_work(mutant *m, uint8_t r[][GMD_INPUT_RECORD])
{
    size_t count = 0;
    draw_on_pool(m, r[count++], GMD_POOL_CAPTURE);
    put_alloc(m, r[count++]);
    r[count - 1][1] = r[0][1];
    if (chance(m, 25)) {
        put(m, r[count++], GMD_OP_SYNC, r[0][1], 0, 0);
    } else {
        put(m, r[count++], GMD_OP_USE, r[0][1], 0, draw_duration(m));
    }
    if (chance(m, 60)) {
        put(m, r[count++], GMD_OP_FREE, 0, 0, 0);
    }
    draw_on_pool(m, r[count], GMD_POOL_END);
    r[count++][1] = r[0][1];
    draw_on_pool(m, r[count], chance(m, 60) ? GMD_POOL_LAUNCH : GMD_POOL_CAPTURE);
    gmd_input_put16(r[count++] + 2, gmd_input_get16(r[0] + 2));
    memcpy(r[count++], r[1], GMD_INPUT_RECORD);
    return count;
}

/* A block of the captured stream is used on another one, recorded or not. */
static size_t fork_in_capture(mutant *m, uint8_t r[][GMD_INPUT_RECORD])
{
    size_t count = 0;
    uint8_t origin = draw_place(m), other = draw_place(m);
    if (chance(m, 60)) {
        draw_on_pool(m, r[count], GMD_POOL_CAPTURE);
        r[count++][1] = origin;
    }
    uint8_t *alloc = r[count++];
    put_alloc(m, alloc);
    alloc[1] = origin;
    put(m, r[count++], GMD_OP_WAIT, other, origin & 31U, 0);
    put(m, r[count++], GMD_OP_USE, other, 0, draw_duration(m));
    if (chance(m, 70)) {
        put(m, r[count++], GMD_OP_RECORD, other, 0, 0);
    }
    put(m, r[count++], GMD_OP_FREE, 0, 0, 0);
    memcpy(r[count++], alloc, GMD_INPUT_RECORD);
    put(m, r[count++], GMD_OP_USE, origin, 0, draw_duration(m));
    return count;
}

size_t mutant_draw_idiom(mutant *m, uint8_t records[IDIOM_MAX][GMD_INPUT_RECORD])
{
    static size_t (*const idioms[])(mutant *, uint8_t[][GMD_INPUT_RECORD]) = {
        ask_again, use_elsewhere, use_elsewhere, fill_up, fail_a_request, make_holes};
    if (has_pools(m) && chance(m, 45)) {
        static size_t (*const of_pools[])(mutant *, uint8_t[][GMD_INPUT_RECORD]) = {
            work_in_a_pool, work_in_a_pool, capture_work, fork_in_capture, bring_a_pool_back};
        return of_pools[below(m, sizeof of_pools / sizeof *of_pools)](m, records);
    }
    return idioms[below(m, sizeof idioms / sizeof *idioms)](m, records);
}

/* --- header ------------------------------------------------------------------------------ */

static uint8_t few(mutant *m, unsigned percent_of_one, uint32_t most)
{
    return (uint8_t)(chance(m, percent_of_one) ? 1 : 1 + below(m, most));
}

static void draw_field(mutant *m, size_t at)
{
    static const uint8_t schedules[] = {GMD_SCHEDULE_TIMED, GMD_SCHEDULE_TIMED,
                                        GMD_SCHEDULE_LAZY,  GMD_SCHEDULE_LAZY,
                                        GMD_SCHEDULE_EAGER, GMD_SCHEDULE_SEEDED};
    uint8_t *h = m->data;
    switch (at) {
    case GMD_INPUT_AT_DEVICES:
        h[at] = few(m, 80, 3);
        break;
    case GMD_INPUT_AT_CAPACITY:
        h[at] = (uint8_t)(1 + below(m, chance(m, 80) ? 9 : gmd_input_capacity_count - 1));
        break;
    case GMD_INPUT_AT_SCHEDULE:
        h[at] = schedules[below(m, sizeof schedules)];
        break;
    case GMD_INPUT_AT_INTERLEAVE:
        h[at] = chance(m, 70);
        h[at] |= chance(m, 30) ? GMD_INPUT_REUSES_HANDLES : 0;
        h[at] |= chance(m, 20) ? GMD_INPUT_MOVES_CLOCK : 0;
        break;
    case GMD_INPUT_AT_SCHEDULE_SEED:
    case GMD_INPUT_AT_INTERLEAVE_SEED:
        gmd_input_put32(h + at, below(m, 1000000));
        break;
    case GMD_INPUT_AT_CONF:
        h[at] = (uint8_t)(chance(m, 40) ? 0 : below(m, gmd_input_conf_count));
        break;
    case GMD_INPUT_AT_STREAMS:
        h[at] = few(m, 20, 4);
        break;
    case GMD_INPUT_AT_POOLS:
        h[at] = (uint8_t)(chance(m, 75) ? 0 : 1 + below(m, 3));
        break;
    default:
        h[GMD_INPUT_AT_THREADS] = few(m, 80, 3);
        break;
    }
}

static const uint8_t fields[] = {GMD_INPUT_AT_DEVICES,         GMD_INPUT_AT_CAPACITY,
                                 GMD_INPUT_AT_SCHEDULE,        GMD_INPUT_AT_INTERLEAVE,
                                 GMD_INPUT_AT_SCHEDULE_SEED,   GMD_INPUT_AT_CONF,
                                 GMD_INPUT_AT_STREAMS,         GMD_INPUT_AT_THREADS,
                                 GMD_INPUT_AT_INTERLEAVE_SEED, GMD_INPUT_AT_POOLS};

void mutant_redraw_header_field(mutant *m)
{
    draw_field(m, fields[below(m, sizeof fields)]);
}

void mutant_draw_header(mutant *m)
{
    memset(m->data, 0, GMD_INPUT_HEADER);
    for (size_t i = 0; i < sizeof fields; i++) {
        draw_field(m, fields[i]);
    }
}
