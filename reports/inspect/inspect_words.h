/* inspect_words.h - sizes and holders in words, for people. */
#ifndef GMD_REPORTS_INSPECT_WORDS_H
#define GMD_REPORTS_INSPECT_WORDS_H

#include "gmd_inspection.h"

#include <stdint.h>

/* "40.00K", "2.00M", "0.00B": sizes as pytorch_memlab writes them. */
const char *format_short_size(uint64_t bytes, char text[24]);

/* A category as the heading of a column. */
const char *category_heading(uint32_t category);

/* What the bytes of a holder are, for people. */
const char *holder_words(uint32_t holder);

#endif
