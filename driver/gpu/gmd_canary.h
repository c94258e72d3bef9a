/* gmd_canary.h - what blocks hold on a real device: kernels fill a block with its mark, and verify,
 * behind whatever was queued before on the stream that uses it, that the mark is still there. A new
 * owner of the memory that does not wait for such work writes its own mark too early, and is known
 * by it.
 *
 * Thread safety: the driver's one thread at a time. */
#ifndef GMD_CANARY_H
#define GMD_CANARY_H

#include "gmd_error.h"
#include "gmd_runtime.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct canary_kernels canary_kernels;

/* A verification that found something else than the mark. */
typedef struct canary_hit {
    uint64_t ticket; /* of gmd_canary_verify */
    uint64_t offset; /* bytes from the block's start: where it first differs, as far as was seen */
    uint64_t found;  /* the word there */
} canary_hit;

/* The mark of the block that such a word would be of. */
uint64_t canary_mark_of(uint64_t word);

/* Whether a block at `block`, of so many bytes, would have written such a word at `address`: a word
 * holds its place in its block, too. */
bool canary_is_written_at(uint64_t word, uint64_t address, uint64_t block, uint64_t bytes);

/* Loads the kernels and makes them ready on all devices. GMD_BAD_INPUT: not available here, and
 * `error` says why: gmd was built without nvcc, or the driver does not take them. */
gmd_status canaries_open(canary_kernels **canaries, const gmd_runtime *runtime, int device_count,
                         gmd_error *error);
void canaries_close(canary_kernels *canaries); /* no work of theirs may be pending; NULL is fine */

/* Queued on `stream`, whose device is current. Blocks of less than 8 B hold no mark, and of large
 * ones every 64th word does. Marks are from 1 to 2^40 - 1. */
cudaError_t gmd_canary_fill(canary_kernels *canaries, cudaStream_t stream, uint64_t address,
                            uint64_t bytes, uint64_t mark);
cudaError_t gmd_canary_verify(canary_kernels *canaries, cudaStream_t stream, uint64_t address,
                              uint64_t bytes, uint64_t mark, uint64_t ticket);

/* Reads the block and looks for nothing. */
cudaError_t canary_read(canary_kernels *canaries, cudaStream_t stream, uint64_t address,
                        uint64_t bytes);

/* The next finding of work that has run by now; false: none. A verification tells once, however
 * often it runs (in a graph), and of 1024 that found something the first ones are kept. */
bool canary_next(canary_kernels *canaries, canary_hit *finding);
bool canaries_are_full(const canary_kernels *canaries); /* there were more */

/* What was found, read or not; no work may be pending. */
void canaries_forget(canary_kernels *canaries);

#endif
