/* parameter_sizes.h - how many parameters of which size a model has: what a gradient is known by.
 * Whatever is there before the first iteration and stays is taken for one: data that a program
 * keeps on the device do no harm, and a model that was made in another way than by torch.nn is not
 * missed.
 */
#ifndef GMD_DIAGNOSIS_PARAMETER_SIZES_H
#define GMD_DIAGNOSIS_PARAMETER_SIZES_H

#include "gmd_facts.h"

typedef struct size_count {
    uint64_t requested;
    uint32_t parameters; /* that are there all the time */
    uint32_t seen;       /* of other blocks of that size: for who counts them */
} size_count;

typedef struct parameter_sizes { /* ascending */
    size_count *items;
    size_t count;
    uint64_t bytes; /* of all parameters; in a recording that begins late, of what else was there
                       all the time, too */
} parameter_sizes;

gmd_status parameter_sizes_find(parameter_sizes *sizes, const gmd_facts *facts, gmd_error *error);
void parameter_sizes_free(parameter_sizes *sizes);

/* NULL: no parameter has it. */
size_count *parameter_size(const parameter_sizes *sizes, uint64_t requested);

/* Sets what was seen to none. */
void parameter_sizes_forget(parameter_sizes *sizes);

#endif
