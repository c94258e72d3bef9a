/* gmd_conditions.h - under which conditions requests are run: on how many devices and of which
 * memory, with which settings of the allocator, in which order of the device's addresses, of its
 * work and of the host's threads. A trace's header states some of them, a user's options the rest.
 *
 * Zero-initialised, nothing is stated.
 *
 * Ownership: `conf` and the schedules' choices belong to whoever says so: a trace owns those of its
 * conditions (gmd_conditions_copy, gmd_conditions_free); all others borrow them, and are copied by
 * assignment. Thread safety: none; share them read-only. */
#ifndef GMD_CONDITIONS_H
#define GMD_CONDITIONS_H

#include "gmd_error.h"
#include "gmd_placement.h"
#include "gmd_schedule.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gmd_conditions {
    uint32_t device_count;   /* 0: not stated */
    uint64_t capacity_bytes; /* of each device's memory; 0: not stated */
    uint64_t limit_bytes;    /* of reserved memory, by the memory fraction; 0: none */
    const char *conf;        /* settings, in PYTORCH_CUDA_ALLOC_CONF's syntax; NULL: not stated */
    gmd_placement placement; /* of the simulated device's memory */
    bool reuses_handles;     /* of the simulated device: of destroyed streams and events */
    bool moves_clock;        /* the host's clocks, as the allocator reads them, follow `advance` */
    gmd_schedule schedule;   /* of the simulated device's work; unstated: timed */
    gmd_schedule interleave; /* of the host's threads; unstated: one request after the other */
} gmd_conditions;

/* What is in force where a trace states `stated` and the user gave `given`: what is stated wins.
 * The interleaving is the given one: it concerns neither the device nor the allocator, and a
 * trace's own is only for the trace. It borrows from both. */
gmd_conditions gmd_conditions_in_force(const gmd_conditions *stated, const gmd_conditions *given);

/* Settings that are not stated are the same as empty ones. */
bool gmd_conditions_equal(const gmd_conditions *a, const gmd_conditions *b);

/* Likewise, but for the interleaving: whether a device and an allocator that were opened under the
 * ones serve under the others. */
bool gmd_conditions_same_device(const gmd_conditions *a, const gmd_conditions *b);

/* `to` need not be initialised, and may be `from`, where that borrows; it owns what it is made of.
 * On failure nothing is stated. */
gmd_status gmd_conditions_copy(gmd_conditions *to, const gmd_conditions *from, gmd_error *error);

/* Replaces the settings, which `conditions` must own, by a copy of `conf`, which may be NULL and
 * may be the old settings. On failure the old ones stay. */
gmd_status gmd_conditions_set_conf(gmd_conditions *conditions, const char *conf, gmd_error *error);

/* Releases what they own; nothing is stated then. */
void gmd_conditions_free(gmd_conditions *conditions);

#endif
