/* gmd_text.h - text in memory. */
#ifndef GMD_TEXT_H
#define GMD_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* A terminated copy of `length` bytes, for the caller to free; NULL: no host memory. Unlike strndup
 * it reads exactly these bytes, so the source may end with its buffer. */
char *gmd_text_copy(const char *text, size_t length);

/* The last part of a path: what stands behind its last '/', in `path` itself. */
const char *gmd_file_name(const char *path);

/* For a file's name: there must be something before the ending. */
bool gmd_text_ends_with(const char *text, const char *ending);

#endif
