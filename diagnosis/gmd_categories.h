/* gmd_categories.h - what a block was for, inferred as torch.profiler's memory profiler does: from
 * when it was allocated and freed, from order, frames and annotations. What does not follow is
 * called unknown. */
#ifndef GMD_CATEGORIES_H
#define GMD_CATEGORIES_H

#include "gmd_category.h"
#include "gmd_iterations.h"
#include "gmd_places.h"
#include "gmd_recording.h"

typedef struct gmd_categories {
    uint8_t *of_lifetime; /* gmd_category, by index into gmd_recording.lifetimes */
} gmd_categories;

gmd_status gmd_categories_infer(gmd_categories *categories, const gmd_recording *recording,
                                const gmd_places *places, const gmd_iterations *iterations,
                                gmd_error *error);
void gmd_categories_free(gmd_categories *categories);

#endif
