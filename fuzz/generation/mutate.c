#include "gmd_mutate.h"
#include "mutant.h"

#include "gmd_min.h"

#include <string.h>

enum { RUN_MAX = 16, TARGET_MAX = UINT16_MAX };

static size_t below(mutant *m, size_t bound)
{
    return (size_t)gmd_random_below(&m->random, bound);
}

static bool chance(mutant *m, unsigned percent)
{
    return gmd_random_chance(&m->random, percent);
}

static bool names_block(uint8_t kind)
{
    return kind_has_any(kind, GMD_FIELD_BIT(GMD_FIELD_BLOCK));
}

static bool is_alloc(uint8_t kind)
{
    return kind_has_any(kind, GMD_FIELD_BIT(GMD_FIELD_NEW_BLOCK));
}

static bool is_free(uint8_t kind)
{
    return names_block(kind) && gmd_op_is(kind, GMD_IS_FREE);
}

static uint32_t target_at(const mutant *m, size_t i)
{
    return gmd_input_get16(record_at(m, i) + 2);
}

static void set_target(mutant *m, size_t i, uint32_t target)
{
    gmd_input_put16(record_at(m, i) + 2, target < TARGET_MAX ? target : TARGET_MAX);
}

/* A record for which `wanted` holds, looked for from a random place on. False: none. */
static bool find(mutant *m, bool (*wanted)(uint8_t kind), size_t *found)
{
    size_t start = below(m, m->count);
    for (size_t n = 0; n < m->count; n++) {
        size_t i = (start + n) % m->count;
        if (wanted(record_kind(m, i))) {
            *found = i;
            return true;
        }
    }
    return false;
}

/* --- what later records name ------------------------------------------------------------- */

/* From record `from` on a block is live that was not before (`is_new`), or no more, and `age` live
 * ones are younger. The records go on to name the same blocks; what named a lost one names the next
 * older one. */
static void follow_block(mutant *m, size_t from, uint32_t age, bool is_new)
{
    for (size_t i = from; i < m->count; i++) {
        uint8_t kind = record_kind(m, i);
        uint32_t fields = kind_fields(kind);
        if (fields & GMD_FIELD_BIT(GMD_FIELD_NEW_BLOCK)) {
            age++;
        } else if (fields & GMD_FIELD_BIT(GMD_FIELD_BLOCK)) {
            uint32_t target = target_at(m, i);
            if (is_new ? target >= age : target > age) {
                set_target(m, i, is_new ? target + 1 : target - 1);
            } else if (gmd_op_is(kind, GMD_IS_FREE)) {
                if (target == age) {
                    return; /* the lost one would have gone here */
                }
                age--;
            }
        }
    }
}

/* --- records come and go ----------------------------------------------------------------- */

/* Room for `count` records at `at`; how many there is room for. */
static size_t open_gap(mutant *m, size_t at, size_t count)
{
    size_t room = m->most - m->count;
    count = gmd_min(count, room);
    memmove(record_at(m, at + count), record_at(m, at), (m->count - at) * GMD_INPUT_RECORD);
    m->count += count;
    return count;
}

static void close_gap(mutant *m, size_t at, size_t count)
{
    memmove(record_at(m, at), record_at(m, at + count), (m->count - at - count) * GMD_INPUT_RECORD);
    m->count -= count;
}

/* The record, which is in place, as if it had been there ever since. */
static void settle_in(mutant *m, size_t at)
{
    uint8_t kind = record_kind(m, at);
    if (is_alloc(kind)) {
        follow_block(m, at + 1, 0, true);
    } else if (is_free(kind)) {
        follow_block(m, at + 1, target_at(m, at), false);
    }
}

static bool insert_records(mutant *m, const uint8_t records[][GMD_INPUT_RECORD], size_t count)
{
    size_t at = below(m, m->count + 1), made = 0;
    bool follows = chance(m, 75);
    while (made < count && open_gap(m, at + made, 1)) {
        memcpy(record_at(m, at + made), records[made], GMD_INPUT_RECORD);
        if (follows) {
            settle_in(m, at + made);
        }
        made++;
    }
    return made;
}

static bool insert(mutant *m)
{
    uint8_t records[4][GMD_INPUT_RECORD];
    size_t count = m->count < 4 ? 4 : chance(m, 60) ? 1 : 1 + below(m, 4);
    for (size_t i = 0; i < count; i++) {
        mutant_draw_record(m, records[i]);
    }
    return insert_records(m, (const uint8_t(*)[GMD_INPUT_RECORD])records, count);
}

static bool insert_idiom(mutant *m)
{
    uint8_t records[IDIOM_MAX][GMD_INPUT_RECORD];
    size_t count = mutant_draw_idiom(m, records);
    return insert_records(m, (const uint8_t(*)[GMD_INPUT_RECORD])records, count);
}

static bool insert_fault(mutant *m)
{
    uint8_t records[1][GMD_INPUT_RECORD];
    mutant_draw_fault(m, records[0]);
    return insert_records(m, (const uint8_t(*)[GMD_INPUT_RECORD])records, 1);
}

static bool delete_one(mutant *m)
{
    if (!m->count) {
        return false;
    }
    size_t at = below(m, m->count);
    uint8_t kind = record_kind(m, at);
    uint32_t target = target_at(m, at);
    close_gap(m, at, 1);
    if (is_alloc(kind)) {
        follow_block(m, at, 0, false);
    } else if (is_free(kind)) {
        follow_block(m, at, target, true);
    }
    return true;
}

/* A run of the input; false: there is none. */
static bool choose_run(mutant *m, size_t *at, size_t *length)
{
    if (!m->count) {
        return false;
    }
    size_t longest = m->count < RUN_MAX || chance(m, 10) ? m->count : RUN_MAX;
    *length = 1 + below(m, longest);
    *at = below(m, m->count - *length + 1);
    return true;
}

static bool delete_run(mutant *m)
{
    size_t at, length;
    if (!choose_run(m, &at, &length)) {
        return false;
    }
    close_gap(m, at, length);
    return true;
}

/* Copies follow the run itself, where they find what it left; or come anywhere. */
static bool duplicate(mutant *m)
{
    size_t at, length;
    if (m->count == m->most || !choose_run(m, &at, &length)) {
        return false;
    }
    size_t copies = chance(m, 70) ? 1 : 2 + below(m, 7);
    bool is_next = chance(m, 60);
    for (size_t n = 0; n < copies && m->count < m->most; n++) {
        size_t to = is_next ? at + length : at + length + below(m, m->count - at - length + 1);
        size_t made = open_gap(m, to, length); /* behind the run, which stays where it is */
        memcpy(record_at(m, to), record_at(m, at), made * GMD_INPUT_RECORD);
    }
    return true;
}

/* --- records move ------------------------------------------------------------------------ */

static void reverse(mutant *m, size_t from, size_t end)
{
    for (; from + 1 < end; from++, end--) {
        uint8_t kept[GMD_INPUT_RECORD];
        memcpy(kept, record_at(m, from), sizeof kept);
        memcpy(record_at(m, from), record_at(m, end - 1), sizeof kept);
        memcpy(record_at(m, end - 1), kept, sizeof kept);
    }
}

/* Brings what is from `middle` to `end` before what is from `from`. */
static void rotate(mutant *m, size_t from, size_t middle, size_t end)
{
    reverse(m, from, middle);
    reverse(m, middle, end);
    reverse(m, from, end);
}

static bool move_run(mutant *m)
{
    size_t at, length;
    if (!choose_run(m, &at, &length) || length == m->count) {
        return false;
    }
    size_t to = below(m, m->count - length); /* of the places without the run: not its own */
    to += to >= at;
    if (to < at) {
        rotate(m, to, at, at + length);
    } else {
        rotate(m, at, at + length, to + length);
    }
    return true;
}

/* Moves the free past one record, so that both name the blocks that they named. False: it cannot
 * come before the block's own allocation or uses. */
static bool step_free(mutant *m, size_t *at, bool is_later)
{
    size_t other = is_later ? *at + 1 : *at - 1;
    if (is_later ? other >= m->count : *at == 0) {
        return false;
    }
    uint8_t kind = record_kind(m, other);
    uint32_t mine = target_at(m, *at), its = target_at(m, other);
    if (is_alloc(kind)) {
        if (!is_later && !mine) {
            return false;
        }
        mine = is_later ? mine + 1 : mine - 1;
    } else if (names_block(kind) && is_later) {
        its += its >= mine;
        mine -= is_free(kind) && its < mine;
    } else if (names_block(kind)) {
        if (!is_free(kind) && its == mine) {
            return false;
        }
        mine += is_free(kind) && its <= mine;
        its -= its > mine;
    }
    set_target(m, *at, mine);
    if (names_block(kind)) {
        set_target(m, other, its);
    }
    reverse(m, is_later ? *at : other, (is_later ? other : *at) + 1);
    *at = other;
    return true;
}

static bool move_free(mutant *m)
{
    size_t at, moved = 0;
    if (!m->count || !find(m, is_free, &at)) {
        return false;
    }
    bool is_later = chance(m, 50);
    size_t steps = 1 + below(m, chance(m, 70) ? 4 : 64);
    while (moved < steps && step_free(m, &at, is_later)) {
        moved++;
    }
    return moved;
}

/* --- fields change ----------------------------------------------------------------------- */

static bool has_value(uint8_t kind)
{
    return kind_has_any(kind, GMD_BYTES_FIELDS | GMD_DURATION_FIELDS |
                                  GMD_FIELD_BIT(GMD_FIELD_FRACTION) |
                                  GMD_FIELD_BIT(GMD_FIELD_COUNT) | GMD_FIELD_BIT(GMD_FIELD_POOL));
}

static bool has_size(uint8_t kind)
{
    return kind_has_any(kind, GMD_FIELD_BIT(GMD_FIELD_BYTES));
}

static bool names_function(uint8_t kind)
{
    return kind_has_any(kind, GMD_FIELD_BIT(GMD_FIELD_FUNCTION));
}

static bool has_target(uint8_t kind)
{
    return kind_has_any(kind,
                        GMD_FIELD_BIT(GMD_FIELD_BLOCK) | GMD_FIELD_BIT(GMD_FIELD_OTHER_STREAM) |
                            GMD_FIELD_BIT(GMD_FIELD_STREAM_OR_ALL) |
                            GMD_FIELD_BIT(GMD_FIELD_FUNCTION) | GMD_FIELD_BIT(GMD_FIELD_POOL));
}

/* In the bits in which most records have it. */
static bool has_place(uint8_t kind)
{
    return kind < GMD_INPUT_OPS_FURTHER &&
           kind_has_any(kind, GMD_STREAM_FIELDS | GMD_DEVICE_FIELDS |
                                  GMD_FIELD_BIT(GMD_FIELD_EVERY) | GMD_FIELD_BIT(GMD_FIELD_POOL));
}

/* The value of record `i` becomes `value`; false: it was that already. */
static bool set_value(mutant *m, size_t i, uint32_t value)
{
    uint8_t *at = record_at(m, i) + 4;
    bool is_new = gmd_input_get32(at) != value;
    gmd_input_put32(at, value);
    return is_new;
}

static bool to_boundary(mutant *m)
{
    size_t at;
    return m->count && find(m, has_size, &at) && set_value(m, at, mutant_draw_size(m));
}

static bool to_another(mutant *m)
{
    size_t at, from;
    return m->count && find(m, has_size, &at) && find(m, has_size, &from) &&
           set_value(m, at, gmd_input_get32(record_at(m, from) + 4));
}

static bool scale(mutant *m)
{
    static const uint32_t steps[] = {1, 511, 512, (uint32_t)GMD_MIB, 2 * (uint32_t)GMD_MIB};
    size_t at;
    if (!m->count || !find(m, has_value, &at)) {
        return false;
    }
    uint32_t value = gmd_input_get32(record_at(m, at) + 4);
    uint32_t top = value & GMD_INPUT_TOP_BIT, rest = value & ~GMD_INPUT_TOP_BIT;
    uint32_t step = top ? 8U << 4 * below(m, 3) : steps[below(m, 5)]; /* of a code: beside, pick */
    switch (below(m, 4)) {
    case 0:
        rest = top ? rest + step : rest * 2;
        break;
    case 1:
        rest = top ? rest - step : rest / 2;
        break;
    case 2:
        rest += step;
        break;
    default:
        rest -= rest < step ? 0 : step;
        break;
    }
    return set_value(m, at, top | (rest & ~GMD_INPUT_TOP_BIT));
}

static bool retarget(mutant *m)
{
    size_t at;
    if (!m->count || !find(m, has_target, &at)) {
        return false;
    }
    uint32_t target = target_at(m, at), most = names_function(record_kind(m, at))
                                                   ? gmd_input_memory_function_count
                                                   : (uint32_t)(chance(m, 70) ? 4 : 32);
    set_target(m, at, chance(m, 30) ? target ^ 1 : (uint32_t)below(m, most));
    return target_at(m, at) != target;
}

static bool swap_streams(mutant *m)
{
    size_t at = 0, length = m->count;
    if (!m->count || (chance(m, 70) && !choose_run(m, &at, &length))) {
        return false;
    }
    uint8_t a = (uint8_t)below(m, 4), b = (uint8_t)((a + 1 + below(m, 3)) % 4);
    bool is_changed = false;
    for (size_t i = at; i < at + length; i++) {
        uint8_t *place = record_at(m, i) + 1, stream = *place & 31;
        if (has_place(record_kind(m, i)) && (stream == a || stream == b)) {
            *place = (uint8_t)((*place & ~31) | (stream == a ? b : a));
            is_changed = true;
        }
    }
    return is_changed;
}

static bool move_place(mutant *m)
{
    size_t at;
    if (!m->count || !find(m, has_place, &at)) {
        return false;
    }
    uint8_t *record = record_at(m, at), first = record[0], second = record[1];
    switch (below(m, 4)) {
    case 0:
        record[0] = (uint8_t)((first & 15) | below(m, 4) << 4);
        break;
    case 1:
        record[1] = (uint8_t)((second & 31) | below(m, 4) << 5);
        break;
    default:
        record[1] = (uint8_t)((second & ~31) | (int)below(m, 4));
        break;
    }
    return record[0] != first || record[1] != second;
}

static bool change_header(mutant *m)
{
    uint8_t before[GMD_INPUT_HEADER];
    memcpy(before, m->data, sizeof before);
    for (int attempt = 0; attempt < 4 && memcmp(before, m->data, sizeof before) == 0; attempt++) {
        mutant_redraw_header_field(m);
    }
    return memcmp(before, m->data, sizeof before) != 0;
}

#define TURNS_WIDE 16 /* one repeat of so many has more turns than its own record can say */

/* How often, exactly: past 255, 256 and 2^16. */
static uint32_t draw_turns(mutant *m)
{
    uint32_t power = UINT32_C(1) << (chance(m, 80) ? 8 + below(m, 3) : 16);
    return power + 1 + (uint32_t)below(m, 64);
}

/* A repeat before a short run of records. */
static bool insert_repeat(mutant *m)
{
    if (!m->count) {
        return false;
    }
    bool is_wide = below(m, TURNS_WIDE) == 0;
    size_t at = below(m, m->count), needed = 1 + is_wide, left = m->count - at;
    size_t longest = gmd_min(left, 4), length = 1 + below(m, longest);
    if (m->most - m->count < needed) {
        return false;
    }
    open_gap(m, at, needed);
    uint8_t *record = record_at(m, at);
    memset(record, 0, needed * GMD_INPUT_RECORD);
    if (is_wide) {
        record[0] = GMD_RECORD_WIDE;
        record[1] = GMD_WIDE_TARGET;
        gmd_input_put32(record + 4, draw_turns(m));
        record += GMD_INPUT_RECORD;
    }
    record[0] = GMD_RECORD_HEADER;
    record[1] = (uint8_t)(GMD_PART_REPEAT | (length - 1) << 4);
    record[2] = (uint8_t)below(m, 64);
    record[4] = (uint8_t)(chance(m, 60) ? 1U << below(m, 6) : below(m, 64));
    return true;
}

/* One that is there gets another number of turns, or other steps. */
static bool change_repeat(mutant *m)
{
    size_t start = m->count ? below(m, m->count) : 0;
    for (size_t n = 0; n < m->count; n++) {
        uint8_t *record = record_at(m, (start + n) % m->count);
        if (gmd_input_is_repeat(record)) {
            record[2] = (uint8_t)(chance(m, 60) ? below(m, 64) : record[2]);
            record[4] = (uint8_t)(record[4] ^ 1U << below(m, 6));
            return true;
        }
    }
    return false;
}

static bool repeat(mutant *m)
{
    return (chance(m, 50) && change_repeat(m)) || insert_repeat(m);
}

static bool change_bytes(mutant *m)
{
    size_t size = GMD_INPUT_HEADER + m->count * GMD_INPUT_RECORD, changes = 1 + below(m, 4);
    for (size_t i = 0; i < changes; i++) {
        uint8_t *at = &m->data[below(m, size)];
        *at ^= (uint8_t)(chance(m, 50) ? 1U << below(m, 8) : 1 + below(m, 255));
    }
    return true;
}

/* --- the whole --------------------------------------------------------------------------- */

static const struct {
    bool (*change)(mutant *m);
    uint8_t weight;
} mutations[GMD_MUTATION_COUNT] = {[GMD_MUTATE_INSERT] = {insert, 16},
                                   [GMD_MUTATE_IDIOM] = {insert_idiom, 16},
                                   [GMD_MUTATE_FAULT] = {insert_fault, 4},
                                   [GMD_MUTATE_DELETE] = {delete_one, 10},
                                   [GMD_MUTATE_DELETE_RUN] = {delete_run, 4},
                                   [GMD_MUTATE_DUPLICATE] = {duplicate, 6},
                                   [GMD_MUTATE_MOVE] = {move_run, 5},
                                   [GMD_MUTATE_MOVE_FREE] = {move_free, 6},
                                   [GMD_MUTATE_BOUNDARY] = {to_boundary, 8},
                                   [GMD_MUTATE_ALIKE] = {to_another, 5},
                                   [GMD_MUTATE_SCALE] = {scale, 5},
                                   [GMD_MUTATE_RETARGET] = {retarget, 5},
                                   [GMD_MUTATE_SWAP_STREAM] = {swap_streams, 3},
                                   [GMD_MUTATE_PLACE] = {move_place, 4},
                                   [GMD_MUTATE_HEADER] = {change_header, 4},
                                   [GMD_MUTATE_REPEAT] = {repeat, 2},
                                   [GMD_MUTATE_BYTES] = {change_bytes, 2}};

static gmd_mutation choose(mutant *m)
{
    size_t sum = 0;
    for (int i = 0; i < GMD_MUTATION_COUNT; i++) {
        sum += mutations[i].weight;
    }
    size_t at = below(m, sum);
    int kind = 0;
    while (at >= mutations[kind].weight) {
        at -= mutations[kind++].weight;
    }
    return (gmd_mutation)kind;
}

bool mutant_open(mutant *m, uint8_t *data, size_t size, size_t max_size, uint64_t seed)
{
    *m = (mutant){.data = data, .random = {seed}};
    max_size = gmd_min(max_size, GMD_INPUT_BYTES_MAX);
    if (max_size < GMD_INPUT_HEADER) {
        return false;
    }
    m->most = (max_size - GMD_INPUT_HEADER) / GMD_INPUT_RECORD;
    if (!size) {
        mutant_draw_header(m);
    } else if (size < GMD_INPUT_HEADER) {
        memset(data + size, 0, GMD_INPUT_HEADER - size);
    } else {
        m->count = (size - GMD_INPUT_HEADER) / GMD_INPUT_RECORD;
        m->count = gmd_min(m->count, m->most);
    }
    return true;
}

size_t gmd_mutate_once(gmd_mutation kind, uint8_t *data, size_t size, size_t max_size,
                       uint64_t seed)
{
    mutant m;
    if (!mutant_open(&m, data, size, max_size, seed)) {
        return gmd_min(size, max_size);
    }
    mutations[kind].change(&m);
    return mutant_close(&m);
}

size_t gmd_mutate(uint8_t *data, size_t size, size_t max_size, uint64_t seed)
{
    mutant m;
    if (!mutant_open(&m, data, size, max_size, seed)) {
        return gmd_min(size, max_size);
    }
    size_t changes = chance(&m, 45) ? 1 : chance(&m, 60) ? 2 : 3 + below(&m, 4);
    for (size_t done = 0, tries = 0; done < changes && tries < changes + 16; tries++) {
        done += mutations[choose(&m)].change(&m);
    }
    return mutant_close(&m);
}
