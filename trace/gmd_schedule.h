/* gmd_schedule.h - which of the possible orders a run takes: of the device's queued work (the
 * header line `schedule`), and of the host's threads (`interleave`).
 *
 * Ownership: a gmd_schedule owns its choices. Thread safety: none; share it read-only. */
#ifndef GMD_SCHEDULE_H
#define GMD_SCHEDULE_H

#include "gmd_error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef enum gmd_schedule_kind {
    GMD_SCHEDULE_UNSTATED,
    GMD_SCHEDULE_TIMED, /* these three are for the device only */
    GMD_SCHEDULE_EAGER,
    GMD_SCHEDULE_LAZY,
    GMD_SCHEDULE_SEEDED,   /* seed */
    GMD_SCHEDULE_EXPLICIT, /* choices */
    GMD_SCHEDULE_BOUNDED,  /* these two are for threads only: seed, depth, steps */
    GMD_SCHEDULE_PCT,
} gmd_schedule_kind;

enum { GMD_SCHEDULE_DEPTH_MAX = 16 };

typedef struct gmd_schedule { /* zero-initialised: unstated */
    gmd_schedule_kind kind;
    uint64_t seed;
    uint8_t *choices; /* one for each moment at which there is a choice; used up: in order */
    size_t choice_count;
    uint32_t depth; /* 1 to GMD_SCHEDULE_DEPTH_MAX: preemptions; PCT: 1 + changes of a priority */
    uint32_t steps; /* 1 or more: among so many choices of a thread they are */
} gmd_schedule;

/* The choices follow from a seed, and further seeds give further orders. */
static inline bool gmd_schedule_is_seeded(const gmd_schedule *schedule)
{
    return schedule->kind == GMD_SCHEDULE_SEEDED || schedule->kind == GMD_SCHEDULE_BOUNDED ||
           schedule->kind == GMD_SCHEDULE_PCT;
}

static inline bool gmd_schedule_is_stated(const gmd_schedule *schedule)
{
    return schedule->kind != GMD_SCHEDULE_UNSTATED;
}

/* Reads "timed", "eager", "lazy", "seed N" or "explicit C..." (choices from 0 to 255); of the
 * threads, the latter two, "bounded C steps K seed N" or "pct D steps K seed N". On failure the
 * schedule is unstated, and the message says what was expected. */
gmd_status gmd_schedule_parse(gmd_schedule *schedule, const char *text, size_t length,
                              gmd_error *error);
gmd_status gmd_interleave_parse(gmd_schedule *schedule, const char *text, size_t length,
                                gmd_error *error);

/* Writes what the functions above read, without a newline. An unstated one has no text. */
void gmd_schedule_write(const gmd_schedule *schedule, FILE *out);

gmd_status gmd_schedule_copy(gmd_schedule *to, const gmd_schedule *from, gmd_error *error);
void gmd_schedule_free(gmd_schedule *schedule);

#endif
