/* gmd_spelling.h - names that are spelt like one that is not known. */
#ifndef GMD_SPELLING_H
#define GMD_SPELLING_H

#include <stddef.h>

#define GMD_SPELLING_MAX 64 /* characters of a name; longer ones are like no other */

/* Characters that are to be put in, left out or changed, and neighbours that are to change places,
 * to get from one name to the other. SIZE_MAX: one of them is too long. */
size_t gmd_spelling_distance(const char *a, size_t a_length, const char *b);

/* The names that are most like `name` among those that were offered. */
typedef struct gmd_near {
    const char *name;
    size_t count;
    struct {
        char name[GMD_SPELLING_MAX + 1];
        size_t distance;
    } best[3];
    char text[4 * (GMD_SPELLING_MAX + 1)];
} gmd_near;

void gmd_near_begin(gmd_near *near, const char *name); /* `name` is borrowed */
/* Copies the candidate where it is spelt much like the name, or begins as it does. */
void gmd_near_offer(gmd_near *near, const char *candidate);
/* " (did you mean a, b or c?)", or "" where none is near. */
const char *gmd_near_text(gmd_near *near);

#endif
