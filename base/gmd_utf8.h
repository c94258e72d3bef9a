/* gmd_utf8.h - text of unknown origin, character by character. Thread safety: pure functions. */
#ifndef GMD_UTF8_H
#define GMD_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define GMD_REPLACEMENT_CHARACTER 0xFFFDu

/* Decodes the character at **text and moves past it. Each byte that is not part of a well-formed
 * sequence (overlong forms, surrogates and values over U+10FFFF are not) is U+FFFD of its own. 0:
 * the end. */
uint32_t gmd_utf8_next(const char **text);
void gmd_utf8_put(uint32_t character, FILE *out);

/* Whether a terminal or an editor acts on the character instead of showing it: control characters,
 * line and paragraph separators, marks of the writing direction (Unicode 15, Bidi_Control). Who may
 * write one into a message can forge the lines and words around it. */
bool gmd_utf8_is_control(uint32_t character);

/* Text of unknown origin as a part of one line: a space for each such character, U+FFFD for each
 * byte that is not UTF-8. What does not fit is left out, by whole characters. `to` is terminated;
 * the two do not overlap. */
void gmd_utf8_copy_line(char *to, size_t size, const char *from);
void gmd_utf8_put_line(const char *text, FILE *out); /* likewise, without an end of the line */

/* The text as it is, for who shows control characters as signs: only U+FFFD for each byte that is
 * not UTF-8. Where it does not fit, an ellipsis stands for its middle: the end of a path says most.
 * `size` is 16 or more. */
void gmd_utf8_copy_short(char *to, size_t size, const char *from);

#endif
