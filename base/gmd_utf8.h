/* gmd_utf8.h - text of unknown origin, character by character. Thread safety: pure functions. */
#ifndef GMD_UTF8_H
#define GMD_UTF8_H

#include <stdint.h>
#include <stdio.h>

#define GMD_REPLACEMENT_CHARACTER 0xFFFDu

/* Decodes the character at **text and moves past it. Each byte that is not part of a well-formed
 * sequence (overlong forms, surrogates and values over U+10FFFF are not) is U+FFFD of its own. 0:
 * the end. */
uint32_t gmd_utf8_next(const char **text);
void gmd_utf8_put(uint32_t character, FILE *out);

#endif
