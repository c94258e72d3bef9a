/* gmd_workspace_use.h - where the sizes of the workspaces came from that a scenario's libraries
 * took. */
#ifndef GMD_WORKSPACE_USE_H
#define GMD_WORKSPACE_USE_H

#include <stdint.h>

typedef struct gmd_workspace_use {
    uint64_t recorded, estimated; /* workspaces */
    /* By which an estimate may be off, going by what its model was on other calls: the most of what
     * the median error makes, and the most of what the worst makes. */
    uint64_t median_error, worst_error;
    /* By how much the peak since the last reset may be lower or higher, where each estimate is
     * where 19 in 20 of its kind were; and the most that one of all estimates may be too large or
     * too small. */
    uint64_t peak_less, peak_more, one_less, one_more;
} gmd_workspace_use;

/* By how much a run's figures may be off where a workspace is off by so much. Each workspace is
 * freed before its call returns, so that what is allocated at the end of a phase knows nothing of
 * it. */
typedef struct gmd_workspace_error {
    uint64_t allocated, max_allocated, reserved, max_reserved;
} gmd_workspace_error;

/* Segments are whole pages of 2 MiB, and one that is needed for a workspace of up to 10 MiB has 20
 * MiB (PyTorch's allocator): so much may hang on a few bytes. */
static inline uint64_t gmd_workspace_reserved_error(uint64_t error)
{
    const uint64_t whole = (uint64_t)2 << 20, segment = (uint64_t)20 << 20;
    return error ? (error + whole - 1) / whole * whole + segment : 0;
}

static inline gmd_workspace_error gmd_workspace_error_of(uint64_t error)
{
    uint64_t reserved = gmd_workspace_reserved_error(error);
    return (gmd_workspace_error){0, error, reserved, reserved};
}

#endif
