/* turns.h - programs of turns: a few requests that belong together, turn after turn, and then
 * others, whose blocks may be those of the turns before. */
#ifndef TURNS_H
#define TURNS_H

#include "generator.h"

/* What the phases of one sequence have in common. */
typedef struct turns_program {
    uint64_t sizes[2];
    uint8_t device;
    uint32_t streams;     /* how many of them most requests name */
    uint32_t first_block; /* of the phase before this one */
    enum { TURNS_NOTHING, TURNS_GREW, TURNS_SHRANK } before;
    uint32_t turns; /* of the phase before */
    uint32_t left;  /* requests that there is still room for */
} turns_program;

void turns_begin(turns_program *program, gmd_generator *generator);

/* Appends one phase: its requests and how often they come are drawn. */
gmd_status turns_append(turns_program *program, gmd_generator *generator, gmd_trace *trace,
                        gmd_error *error);

#endif
