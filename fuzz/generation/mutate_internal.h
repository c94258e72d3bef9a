/* mutate_internal.h - what the parts of the mutator share. */
#ifndef GMD_MUTATE_INTERNAL_H
#define GMD_MUTATE_INTERNAL_H

#include "gmd_input_format.h"
#include "gmd_mutate.h"
#include "gmd_random.h"

typedef struct gmd_mutant {
    uint8_t *data;
    size_t count, most; /* records: there, and with room */
    gmd_random random;
} gmd_mutant;

static inline uint8_t *gmd_record_at(const gmd_mutant *m, size_t i)
{
    return m->data + GMD_INPUT_HEADER + i * GMD_INPUT_RECORD;
}

/* A gmd_op up to GMD_OP_BUDGET, or one of GMD_RECORD_*. */
static inline uint8_t gmd_record_op(const gmd_mutant *m, size_t i)
{
    uint8_t op = gmd_record_at(m, i)[0] & 15;
    return op == GMD_RECORD_POOL && !m->data[GMD_INPUT_AT_POOLS] ? GMD_OP_ALLOC : op;
}

/* --- mutate.c ---------------------------------------------------------------------------- */

/* False: no room for a header. An input without any bytes gets a drawn header. */
bool gmd_mutant_open(gmd_mutant *m, uint8_t *data, size_t size, size_t max_size, uint64_t seed);

static inline size_t gmd_mutant_size(const gmd_mutant *m)
{
    return GMD_INPUT_HEADER + m->count * GMD_INPUT_RECORD;
}

/* --- mutate_draw.c: new records, as a campaign draws requests ---------------------------- */

void gmd_draw_header(gmd_mutant *m);
void gmd_redraw_header_field(gmd_mutant *m);
uint32_t gmd_draw_size(gmd_mutant *m);
void gmd_draw_record(gmd_mutant *m, uint8_t *record);
void gmd_draw_fault(gmd_mutant *m, uint8_t *record);

/* Requests that go together; how many. */
enum { GMD_IDIOM_MAX = 8 };
size_t gmd_draw_idiom(gmd_mutant *m, uint8_t records[GMD_IDIOM_MAX][GMD_INPUT_RECORD]);

#endif
