/* gmd_recording.h - the memory of one device as a snapshot recorded it: each block from its
 * allocation to its end, each range of reserved memory likewise, and how much there was.
 *
 * Events are points in time: what an event does has happened after it. A moment is an event's
 * index; GMD_BEFORE is before the first. Sizes are bytes.
 *
 * Sources: c10/cuda/CUDACachingAllocator.cpp for what the events mean (an event's size is what was
 * asked for; allocated_bytes counts blocks, which are rounded up and may keep a remainder). */
#ifndef GMD_RECORDING_H
#define GMD_RECORDING_H

#include "gmd_error.h"
#include "gmd_reserved.h"
#include "gmd_snapshot.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GMD_NO_LIFETIME UINT32_MAX

/* A block, from the request that it served on. */
typedef struct gmd_lifetime {
    uint64_t address;
    uint64_t requested; /* asked for */
    uint64_t size;      /* what it takes of its segment */
    uint64_t stream;    /* the recorded handle */
    uint32_t born;      /* moment of its allocation; GMD_BEFORE: it was there already */
    uint32_t freed;     /* moment when the program freed it; GMD_NEVER */
    uint32_t released;  /* moment when it could be used again: later, where it waited for streams */
    uint32_t origin;    /* of its allocation; 0: not known */
} gmd_lifetime;

/* A range of reserved memory is taken, or given back. */
typedef struct gmd_reserved_step {
    uint32_t moment;
    uint32_t range; /* index into gmd_recording.reserved */
    bool is_given;
} gmd_reserved_step;

typedef struct gmd_amount {
    uint64_t allocated; /* blocks that the program holds */
    uint64_t active;    /* and those freed that wait for a stream */
    uint64_t reserved;
} gmd_amount;

/* The largest of each, and the first moment when it was reached. */
typedef struct gmd_peak {
    gmd_amount amount;
    uint32_t allocated_at, active_at, reserved_at;
} gmd_peak;

typedef struct gmd_recording {
    const gmd_snapshot *snapshot;
    gmd_lifetime *lifetimes; /* in the order in which the events name them */
    size_t lifetime_count;
    uint32_t *lifetime_of_event; /* of each event of the snapshot; GMD_NO_LIFETIME */
    gmd_reserved *reserved;      /* by the moment when it was taken */
    size_t reserved_count;
    gmd_reserved_step *steps; /* of reserved memory, by moment */
    size_t step_count;
    uint32_t first, last; /* moments of the device's first and last event; 0: it has none */
    gmd_amount at_start, at_end;
    gmd_peak peak;
    uint64_t event_count; /* of the device */
    uint64_t oom_count;
    uint32_t ended_by_oom;   /* moment of the refusal after which the job did no more; 0: none */
    uint64_t contradictions; /* events that cannot be, if all were recorded: left out */
    uint64_t later_blocks; /* of the snapshot, that no event explains and that may be of after it */
    uint8_t device;
    bool begins_late; /* memory was there, or was freed, that no event explains: earlier is unknown
                       */
    bool ends_early;  /* the snapshot's segments are of a later moment than its last event */
} gmd_recording;

/* Reads the events of `device`. The snapshot must stay as long as the recording. On failure (no
 * host memory) it is left empty. */
gmd_status gmd_recording_make(gmd_recording *r, const gmd_snapshot *snapshot, uint8_t device,
                              gmd_error *error);
void gmd_recording_free(gmd_recording *r);

/* Whether a block was allocated, or held memory, after a moment's event. */
static inline bool gmd_is_allocated_at(const gmd_lifetime *l, uint32_t moment)
{
    return l->born <= moment && moment < l->freed;
}
static inline bool gmd_is_active_at(const gmd_lifetime *l, uint32_t moment)
{
    return l->born <= moment && moment < l->released;
}
static inline bool gmd_is_reserved_at(const gmd_reserved *r, uint32_t moment)
{
    return r->taken <= moment && moment < r->given;
}

/* The event that a moment is after; NULL: GMD_BEFORE or GMD_NEVER. */
static inline const gmd_snapshot_event *gmd_event_at(const gmd_recording *r, uint32_t moment)
{
    return moment == GMD_BEFORE || moment == GMD_NEVER ? NULL : &r->snapshot->events[moment - 1];
}

/* The first moment of the recording whose event is later than a time; one behind the last: none. */
uint32_t gmd_moment_after(const gmd_recording *r, uint64_t time_us);

/* How the amounts went, in steps: after each event of the device, in order. */
typedef void gmd_amount_function(void *context, uint32_t moment, const gmd_amount *amount);
void gmd_recording_walk(const gmd_recording *r, gmd_amount_function *function, void *context);

#endif
