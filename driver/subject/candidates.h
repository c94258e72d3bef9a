/* candidates.h - which functions of a library may be meant, where it has not those that gmd looks
 * for. */
#ifndef CANDIDATES_H
#define CANDIDATES_H

#include <stddef.h>

enum { CANDIDATES_TEXT = 320 };

/* Writes what to do, as the end of a message: the function of one of the two names is C++, or which
 * functions there are, first those whose names say that they allocate or free. "" where the file
 * cannot be read. */
void candidates_tell(const char *path, const char *malloc_name, const char *free_name, char *out,
                     size_t size);

#endif
