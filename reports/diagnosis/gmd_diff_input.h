/* gmd_diff_input.h - one side of a diff: who holds the memory at one moment, and what else is known
 * of it in figures. */
#ifndef GMD_DIFF_INPUT_H
#define GMD_DIFF_INPUT_H

#include "gmd_diagnosis.h"
#include "gmd_error.h"
#include "gmd_holders.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Names of figures that more than one kind of file has. */
#define GMD_FIGURE_RESERVED "reserved"
#define GMD_FIGURE_OOMS     "out of memory"

typedef struct gmd_diff_figure {
    char *name;
    uint64_t value;
    bool is_bytes;
} gmd_diff_figure;

typedef struct gmd_diff_input { /* zero-initialised is empty */
    const char *name;           /* of the file */
    const gmd_places *places;   /* what lines and stacks are of */
    gmd_holders lines, stacks, categories;
    gmd_diff_figure *figures;
    size_t figure_count, figure_capacity, line_capacity, category_capacity;
    gmd_origins origins; /* of lines that were added one by one */
    gmd_places own_places;
} gmd_diff_input;

/* A diagnosis at its peak or at its end, of the device with the highest peak. It must stay as long
 * as the input. A failure leaves the input empty. */
gmd_status gmd_diff_input_of(gmd_diff_input *input, const gmd_diagnosis *diagnosis, bool is_of_end,
                             gmd_error *error);

/* What was read elsewhere, one by one; then gmd_diff_input_finish. False: no host memory. */
bool gmd_diff_input_add_line(gmd_diff_input *input, const char *file, uint32_t line,
                             const char *function, uint64_t bytes);
bool gmd_diff_input_add_category(gmd_diff_input *input, uint32_t category, uint64_t bytes);
bool gmd_diff_input_add_figure(gmd_diff_input *input, const char *name, uint64_t value,
                               bool is_bytes);
/* `allocated`: all bytes, whether lines are known of them or not. The input stays where it is from
 * here on: its places are its own. */
gmd_status gmd_diff_input_finish(gmd_diff_input *input, uint64_t allocated, gmd_error *error);

void gmd_diff_input_free(gmd_diff_input *input);

#endif
