/* quote.h - text from an untrusted file, made fit for a message. */
#ifndef GMD_TRACE_QUOTE_H
#define GMD_TRACE_QUOTE_H

#include <stdbool.h>
#include <stddef.h>

enum { QUOTE_BYTES = 96 };

/* Writes `text` in single quotes into `out`: what is not printable ASCII as \xNN, and what does not
 * fit as "...". Returns `out`. */
const char *quote_text(const char *text, size_t length, char out[QUOTE_BYTES]);

/* The first byte of `text` that is not part of well-formed UTF-8, or `length`. NUL counts as
 * malformed: no file that gmd reads as text may have one. */
size_t utf8_prefix(const char *text, size_t length);

#endif
