/* gmd_autocast.h - mixed precision: inside the block, products and convolutions run in 16 bits, and
 * what needs the range in 32. Copies of parameters in 16 bits are kept until the block ends,
 * however often they are used. */
#ifndef GMD_AUTOCAST_H
#define GMD_AUTOCAST_H

#include "gmd_operations.h"

void autocast_begin(struct engine *engine, enum dtype dtype); /* may be nested */
void autocast_end(struct engine *engine);

/* The type in which products are computed now; `otherwise` outside of all blocks. */
enum dtype autocast_dtype(const struct engine *engine, enum dtype otherwise);

/* What autocast does to the inputs of an operation that are floating numbers of 16 or 32 bits. */
enum autocast_class {
    AUTOCAST_UNCHANGED,   /* nothing: it takes them as they are */
    AUTOCAST_LOWER,       /* they are converted to the block's type */
    AUTOCAST_HALF,        /* to float16, whatever the block's type is: cuDNN's recurrent networks */
    AUTOCAST_WIDE,        /* to 32 bits */
    AUTOCAST_WIDE_RESULT, /* its result has 32 bits; whether it copies its input is its own choice
                           */
    AUTOCAST_WIDEST,      /* to 32 bits where one of them has them, else to the block's type */
    AUTOCAST_PARTS,       /* it consists of operations that have a class of their own */
};

/* The class of a function of scripts by its name, of a module by its full one ("nn.Linear"); false:
 * it has none. */
bool autocast_class_of(const char *name, enum autocast_class *class);

/* A new reference to an argument of the operation, or to its copy in the type in which autocast
 * computes the operation now. NULL gives NULL. */
struct tensor *autocast_argument(struct engine *engine, const char *name, struct tensor *tensor);
bool autocast_converts(struct engine *engine, const char *name, const struct tensor *tensor);
/* The same for an operation of two that takes both in the wider type. */
struct tensor *autocast_widest(struct engine *engine, const char *name, struct tensor *tensor,
                               const struct tensor *other);
/* The type of the operation's result for inputs of type `dtype`, where only the result is
 * converted. */
enum dtype autocast_result(struct engine *engine, const char *name, enum dtype dtype);

#endif
