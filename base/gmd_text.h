/* gmd_text.h - text in memory. */
#ifndef GMD_TEXT_H
#define GMD_TEXT_H

#include <stddef.h>

/* A terminated copy of `length` bytes, for the caller to free; NULL: no host memory. Unlike strndup
 * it reads exactly these bytes, so the source may end with its buffer. */
char *gmd_text_copy(const char *text, size_t length);

#endif
