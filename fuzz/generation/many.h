/* many.h - many of one kind (gmd_many) in a row, in the middle of a sequence. */
#ifndef MANY_H
#define MANY_H

#include "generator.h"

/* Appends what the generator's profile has many of. It draws how many: a few more than a power of
 * two, where arrays, masks and counters of an allocator end. */
gmd_status many_append(gmd_generator *generator, gmd_trace *trace, gmd_error *error);

#endif
