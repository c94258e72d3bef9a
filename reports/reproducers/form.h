/* form.h - the text of a step: a statement with the step's operands in it. */
#ifndef GMD_REPRODUCERS_FORM_H
#define GMD_REPRODUCERS_FORM_H

#include "plan.h"

/* How a language names blocks and streams. `text` may be used for the answer. */
typedef struct form_names {
    const char *(*block)(const void *context, uint32_t allocation, char text[80]);
    const char *(*stream)(const void *context, uint8_t device, uint32_t stream, char text[80]);
    const void *context;
} form_names;

/* Writes `form` as it stands, but for these: %b block, %s stream, %o other stream, %g other as a
 * number, %d device, %n number, %m number modulo 256 and 2 more (a byte that work sets), %l life of
 * the pool, %p number of the pool, %f fraction. */
void form_put(const char *form, const step *s, const form_names *names, FILE *out);

#endif
