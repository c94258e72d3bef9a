/* gmd_mutate.h - changes an input (gmd_input.h) as one who knows what allocators do would: records
 * come, go and move, sizes become others that matter, frees move, streams swap, calls fail.
 *
 * Works on the bytes in place: nothing is parsed or allocated. What is made is whole records, and
 * the same for the same bytes and seed. The custom mutators of libFuzzer and AFL++ and gmd's own
 * engine are this one.
 *
 * Where a request is put in or taken out, the blocks that later records name by their age stay the
 * same, mostly; so that a change is a small one, as it is in a text.
 *
 * Thread safety: pure functions. */
#ifndef GMD_MUTATE_H
#define GMD_MUTATE_H

#include <stddef.h>
#include <stdint.h>

typedef enum gmd_mutation {
    GMD_MUTATE_INSERT,      /* a few requests */
    GMD_MUTATE_IDIOM,       /* requests that go together: a free and the same size again... */
    GMD_MUTATE_FAULT,       /* a call that fails, for want of memory mostly */
    GMD_MUTATE_DELETE,      /* a request */
    GMD_MUTATE_DELETE_RUN,  /* some in a row */
    GMD_MUTATE_DUPLICATE,   /* a run, once or several times */
    GMD_MUTATE_MOVE,        /* a run */
    GMD_MUTATE_MOVE_FREE,   /* a free, earlier or later */
    GMD_MUTATE_BOUNDARY,    /* a size becomes one at a boundary */
    GMD_MUTATE_ALIKE,       /* a size becomes that of another block */
    GMD_MUTATE_SCALE,       /* a size or duration doubles, halves, or is one unit off */
    GMD_MUTATE_RETARGET,    /* another block, stream or function */
    GMD_MUTATE_SWAP_STREAM, /* two streams change places, in a run or everywhere */
    GMD_MUTATE_PLACE,       /* another stream, device or thread */
    GMD_MUTATE_HEADER,      /* memory, settings, schedules, how many there are */
    GMD_MUTATE_REPEAT,      /* a run comes many times, or as many times more or less */
    GMD_MUTATE_BYTES,       /* a few bytes, whatever they are */
    GMD_MUTATION_COUNT
} gmd_mutation;

/* Changes the input, of room for `max_size` bytes, in one way or several; its new size. An input
 * that is shorter than a header is filled up first. Below GMD_INPUT_HEADER of room nothing is done.
 */
size_t gmd_mutate(uint8_t *data, size_t size, size_t max_size, uint64_t seed);

/* One change of this kind. Where nothing there can be changed so, the size and the whole records
 * stay as they are. */
size_t gmd_mutate_once(gmd_mutation kind, uint8_t *data, size_t size, size_t max_size,
                       uint64_t seed);

/* An input made of runs of two others; its size. `out` overlaps neither. */
size_t gmd_cross(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size, uint8_t *out,
                 size_t max_size, uint64_t seed);

#endif
