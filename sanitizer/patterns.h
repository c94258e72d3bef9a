/* patterns.h - what memory is filled with. Each word of 8 bytes reads as NaN in every float type as
 * far as one word can: double, float (signalling in the lower half), both halves of 16 bits
 * (bfloat16 signalling but for the uppermost), float8_e4m3fn in every other byte. No word is one
 * NaN that is signalling in float16 and bfloat16 at once. As an integer each is a number that no
 * index has. */
#ifndef GMD_PATTERNS_H
#define GMD_PATTERNS_H

#include <stdint.h>

#define PATTERN_FREED UINT64_C(0x7ff47fbf7fbf7fbf)
#define PATTERN_ZONE  UINT64_C(0x7ff27fa57fa57fa5) /* red zones */
#define PATTERN_FRESH UINT64_C(0x7ff17f917f917f91) /* never written by the program */

/* "the pattern of freed memory"; NULL: it is none. */
static inline const char *pattern_name(uint64_t word)
{
    return word == PATTERN_FREED   ? "the pattern of freed memory"
           : word == PATTERN_ZONE  ? "the pattern of red zones"
           : word == PATTERN_FRESH ? "the pattern of fresh memory"
                                   : (const char *)0;
}

#endif
