/* gmd_repeats.h - runs of requests that are one turn again and again, but for what is numbered: the
 * next block, stream, pool, device or thread in each turn. The text writes such a run as a `repeat`
 * (docs/trace-format.md), and the minimiser looks for the fewest turns.
 *
 * Thread safety: pure functions. */
#ifndef GMD_REPEATS_H
#define GMD_REPEATS_H

#include "gmd_trace.h"

#define GMD_TURN_LENGTH_MAX 8       /* requests of a turn that is looked for */
#define GMD_REPEAT_LINES    1048576 /* that all repeats of a text stand for, at most */
#define GMD_REPEAT_BYTES    67108864

/* What a request's numbers become from one turn to the next: each -1, 0 or 1 more. */
typedef struct gmd_turn_step {
    int8_t block, stream, other, device, thread;
} gmd_turn_step;

typedef struct gmd_repeat {
    uint32_t length; /* requests of a turn */
    size_t turns;    /* 1: nothing is repeated */
    gmd_turn_step steps[GMD_TURN_LENGTH_MAX];
} gmd_repeat;

/* Which number the entries of a trace's lists count as, each list with one for each entry: they are
 * compared instead of the entries' places. */
typedef struct gmd_numbering {
    const uint32_t *blocks, *streams, *threads, *pools;
    uint32_t stream_count; /* GMD_ALL_STREAMS is none */
} gmd_numbering;

/* Whether request `now` can be told as what `first` is in that turn, 0 being the first. */
typedef bool gmd_turn_check(void *context, const gmd_request *first, const gmd_request *now,
                            const gmd_turn_step *step, size_t turn);

/* Which runs are looked for; zero-initialised, of two turns or more, by the entries' places. */
typedef struct gmd_repeat_search {
    size_t least;                   /* turns */
    const gmd_numbering *numbering; /* NULL: by their places */
    gmd_turn_check *check;          /* NULL: any will do */
    void *context;
} gmd_repeat_search;

/* The run that begins at request `at` and covers most. */
gmd_repeat gmd_repeat_at(const gmd_trace *trace, size_t at, const gmd_repeat_search *search);

#endif
