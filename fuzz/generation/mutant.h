/* mutant.h - what the parts of the mutator share. */
#ifndef MUTANT_H
#define MUTANT_H

#include "gmd_assert.h"
#include "gmd_input_format.h"
#include "gmd_random.h"

typedef struct mutant {
    uint8_t *data;
    size_t count, most; /* records: there, and with room */
    gmd_random random;
} mutant;

static inline uint8_t *record_at(const mutant *m, size_t i)
{
    return m->data + GMD_INPUT_HEADER + i * GMD_INPUT_RECORD;
}

/* A gmd_op that has a kind of record of its own, or one of GMD_RECORD_*. */
static inline uint8_t record_kind(const mutant *m, size_t i)
{
    const uint8_t *record = record_at(m, i);
    uint8_t kind = record[0] & 15;
    if (kind == GMD_RECORD_HEADER && gmd_input_further_op(record) < GMD_OP_COUNT) {
        return gmd_input_further_op(record);
    }
    return kind == GMD_RECORD_POOL && !m->data[GMD_INPUT_AT_POOLS] ? GMD_OP_ALLOC : kind;
}

/* The fields of a request of this kind, as bits (gmd_request_table.h); 0: it is none. */
static inline uint32_t kind_fields(uint8_t kind)
{
    if (kind < GMD_INPUT_OPS || (kind >= GMD_INPUT_OPS_FURTHER && kind < GMD_OP_COUNT)) {
        return gmd_request_rows[kind].field_set;
    }
    return kind == GMD_RECORD_POOL ? GMD_FIELD_BIT(GMD_FIELD_POOL) : 0;
}

static inline bool kind_has_any(uint8_t kind, uint32_t field_set)
{
    return kind_fields(kind) & field_set;
}

/* --- mutate.c ---------------------------------------------------------------------------- */

/* False: no room for a header. An input without any bytes gets a drawn header. */
bool mutant_open(mutant *m, uint8_t *data, size_t size, size_t max_size, uint64_t seed);

static inline size_t mutant_size(const mutant *m)
{
    return GMD_INPUT_HEADER + m->count * GMD_INPUT_RECORD;
}

/* It is done: the size of what was made. */
static inline size_t mutant_close(const mutant *m)
{
    GMD_ASSERT_INTERNAL(m->count <= m->most, "a mutant fits into the room that it was given");
    return mutant_size(m);
}

/* --- mutate_draw.c: new records, as a campaign draws requests ---------------------------- */

void mutant_draw_header(mutant *m);
void mutant_redraw_header_field(mutant *m);
uint32_t mutant_draw_size(mutant *m);
void mutant_draw_record(mutant *m, uint8_t *record);
void mutant_draw_fault(mutant *m, uint8_t *record);

/* Requests that go together; how many. */
enum { IDIOM_MAX = 8 };
size_t mutant_draw_idiom(mutant *m, uint8_t records[IDIOM_MAX][GMD_INPUT_RECORD]);

#endif
