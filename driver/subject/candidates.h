/* candidates.h - which functions of a library may be meant, where it has none of the names that gmd
 * tries. */
#ifndef CANDIDATES_H
#define CANDIDATES_H

#include <stddef.h>

/* Writes what to do, as the end of a message: "it exports gmd_malloc as a C++ name ...", or the
 * functions whose names say that they allocate or free; "" where there are none. */
void candidates_tell(const char *path, char *out, size_t size);

#endif
