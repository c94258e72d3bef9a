/* gmd_categories.h - what a block was for, inferred as torch.profiler's memory profiler does: from
 * when it was allocated and freed, from order, frames and annotations. What does not follow is
 * called unknown. */
#ifndef GMD_CATEGORIES_H
#define GMD_CATEGORIES_H

#include "gmd_iterations.h"
#include "gmd_places.h"
#include "gmd_recording.h"

typedef enum gmd_category {
    GMD_CATEGORY_UNKNOWN,
    GMD_CATEGORY_PARAMETER,
    GMD_CATEGORY_GRADIENT,
    GMD_CATEGORY_OPTIMIZER_STATE,
    GMD_CATEGORY_ACTIVATION,
    GMD_CATEGORY_INPUT,
    GMD_CATEGORY_TEMPORARY,
    GMD_CATEGORY_WORKSPACE,
    GMD_CATEGORY_COUNT,
} gmd_category;

typedef struct gmd_categories {
    uint8_t *of_lifetime; /* gmd_category, by index into gmd_recording.lifetimes */
} gmd_categories;

gmd_status gmd_categories_infer(gmd_categories *categories, const gmd_recording *recording,
                                const gmd_places *places, const gmd_iterations *iterations,
                                gmd_error *error);
void gmd_categories_free(gmd_categories *categories);

/* "parameter", "optimizer state"...: of the names in JSON and on the screen. */
const char *gmd_category_name(gmd_category category);

#endif
