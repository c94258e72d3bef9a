/* gmd_promises.h - what an allocator promises beyond the ABI (gmd_promise of gmd_abi.h): by itself
 * (gmd_promises) or in its user's words (--promise). */
#ifndef GMD_PROMISES_H
#define GMD_PROMISES_H

#include "gmd_error.h"

#include <stdint.h>

/* "misuse,pytorch": adds to `promises`. GMD_BAD_INPUT names what was expected. */
gmd_status gmd_promises_parse(const char *text, unsigned *promises, gmd_error *error);

/* With what they imply: PyTorch's algorithm merges free neighbours, aligns to 512 B and asks all
 * events in each allocation. */
unsigned promises_all(unsigned promises);

/* Bytes; never less than `least`. */
uint64_t promised_alignment(unsigned promises, uint64_t least);

/* The promises one after the other, by their names; NULL: there are no more. */
const char *gmd_promise_at(uint32_t index, unsigned *promise);

/* Which oracle judges it. */
const char *gmd_promise_oracle(unsigned promise);

#endif
