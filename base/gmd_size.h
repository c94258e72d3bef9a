/* gmd_size.h - sizes and durations as people write them: 2560MiB, 4GiB, 512, 100us. */
#ifndef GMD_SIZE_H
#define GMD_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GMD_KIB ((uint64_t)1 << 10)
#define GMD_MIB ((uint64_t)1 << 20)
#define GMD_GIB ((uint64_t)1 << 30)

/* Reads an unsigned number of bytes: digits, optionally with a fraction, then nothing, B, KiB, MiB,
 * GiB or TiB. The whole of `text` must be used. False: malformed, negative, or over UINT64_MAX. */
bool gmd_parse_size(const char *text, uint64_t *bytes);

/* Reads a duration in nanoseconds: digits, then ns, us, ms or s. */
bool gmd_parse_duration(const char *text, uint64_t *ns);

/* Reads a decimal number; the whole of `text` must be used. */
bool gmd_parse_u64(const char *text, uint64_t *value);

/* Writes `bytes` for a person ("512 B", "1.5 MiB", "2.50 GiB") into `text`; returns `text`. */
const char *gmd_format_size(uint64_t bytes, char text[24]);

/* Writes `bytes` so that gmd_parse_size reads the same number back ("2560MiB", "825968"). */
const char *gmd_format_exact_size(uint64_t bytes, char text[24]);

/* The same in a sentence, where a number alone would not say what it counts ("2560MiB", "512 B").
 */
const char *gmd_format_bytes(uint64_t bytes, char text[24]);

#endif
