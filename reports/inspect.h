/* inspect.h - what was seen inside a run, as tables and as JSON (scenarios/gmd_inspection.h). */
#ifndef GMD_REPORTS_INSPECT_H
#define GMD_REPORTS_INSPECT_H

#include "gmd_inspection.h"
#include "gmd_report.h"
#include "json.h"

/* The key "inspection" of an open object; nothing for NULL. */
void gmd_inspection_json(gmd_json *json, const gmd_inspection *inspection);

/* The tables that were asked for; nothing for NULL. */
void gmd_inspection_terminal(const gmd_inspection *inspection, FILE *out, gmd_terminal terminal);
void gmd_inspect_lines(const gmd_inspection *inspection, FILE *out, gmd_terminal terminal);
void gmd_inspect_timeline(const gmd_inspection *inspection, FILE *out, gmd_terminal terminal);
void gmd_inspect_tensors(const gmd_inspection *inspection, FILE *out, gmd_terminal terminal);
void gmd_inspect_retention(const gmd_inspection *inspection, FILE *out, gmd_terminal terminal);

/* Tensors that are held in the same way. */
typedef struct gmd_way {
    char pattern[512]; /* "losses[*] -> MulBackward -> saved[*]" */
    uint32_t row;      /* the first of them */
    uint32_t holder;   /* gmd_holder */
    uint32_t line; /* of the script, where all of them were allocated; 0: at several, or unknown */
    uint64_t tensors, used;
    uint64_t rounding; /* of `used`: beyond what was asked for */
} gmd_way;

/* The ways, the largest first, for the caller to free; *count 0 and NULL: there are none, or no
 * host memory. `by_shape`: tensors of different shapes and types, or over the blocks of others, are
 * apart. */
gmd_way *gmd_ways_of_holding(const gmd_inspection *inspection, bool by_shape, size_t *count);

/* "losses[*]", or the path itself where it is a single tensor. */
const char *gmd_way_name(const gmd_inspection *inspection, const gmd_way *way, char *text,
                         size_t size);

/* "40.00K", "2.00M", "0.00B": sizes as pytorch_memlab writes them. */
const char *gmd_format_short_size(uint64_t bytes, char text[24]);

/* What the bytes of a holder are, for people. */
const char *gmd_holder_words(uint32_t holder);

#endif
