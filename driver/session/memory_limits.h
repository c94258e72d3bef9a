/* memory_limits.h - how much memory the allocator may have of each device. */
#ifndef GMD_MEMORY_LIMITS_H
#define GMD_MEMORY_LIMITS_H

#include "gmd_oracle.h"

typedef struct memory_limits {
    uint64_t bytes[GMD_MAX_DEVICES];    /* of reserved memory; UINT64_MAX: none */
    bool is_unknown[GMD_MAX_DEVICES];   /* a fault may have kept an earlier one in force */
    uint64_t at_start[GMD_MAX_DEVICES]; /* `bytes` before the first request */
    uint64_t total[GMD_MAX_DEVICES];    /* of the device */
    uint64_t budget[GMD_MAX_DEVICES];   /* of physical memory; UINT64_MAX: all of it */
} memory_limits;

/* A device of `total` bytes, without a limit. */
void limits_open(memory_limits *limits, int device, uint64_t total);
/* What is in force now is so before the first request. */
void limits_start(memory_limits *limits, int device);

/* UINT64_MAX: none. */
void limits_set(memory_limits *limits, int device, uint64_t bytes);
void limits_set_unknown(memory_limits *limits, int device);
void limits_set_budget(memory_limits *limits, int device, uint64_t bytes);

/* Whether another limit was set than before the first request; and back to that. */
bool limits_have_changed(const memory_limits *limits, int device);
void limits_restart(memory_limits *limits, int device);

/* What the limit and the device leave, with `held` bytes held; GMD_STAT_UNKNOWN: not known. */
uint64_t limits_room(const memory_limits *limits, int device, const gmd_device_figures *now,
                     uint64_t held);

#endif
