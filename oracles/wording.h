/* wording.h - sizes and blocks in an oracle's sentence: as the case has them, so that a reader
 * finds them in its lines. */
#ifndef GMD_WORDING_H
#define GMD_WORDING_H

#include "gmd_oracle.h"
#include "gmd_size.h"

enum { BLOCK_TEXT = GMD_BLOCK_NAME + 80 };

/* "block a of 10MiB at 0x300000000000"; without the name where the workload gives none. `born`:
 * the block's request. */
const char *block_text(const gmd_view *view, uint64_t born, uint64_t bytes, uint64_t address,
                       char text[BLOCK_TEXT]);

/* For a `%s` of the sentence: the texts live as long as the block of statements around them. */
#define BLOCK(view, b) block_text(view, (b)->born, (b)->bytes, (b)->address, (char[BLOCK_TEXT]){0})
#define BYTES(bytes)   gmd_format_bytes((bytes), (char[24]){0})

#endif
