/* gmd_profile.h - what a campaign allows, and what one sequence of requests is like.
 *
 * A profile says what a sequence is like: the device, the settings, how often each request comes,
 * which sizes. It is drawn from a space: what a campaign, the allocator and the device allow.
 *
 * Thread safety: none is needed. */
#ifndef GMD_PROFILE_H
#define GMD_PROFILE_H

#include "gmd_trace.h"

#define GMD_PALETTE_MAX 6

/* What a sequence has many of: more than the tables, masks and counters of an allocator may hold.
 */
typedef enum gmd_many {
    GMD_MANY_NOTHING,
    GMD_MANY_RECORDS,    /* recorded streams of one block: up to 320 */
    GMD_MANY_STREAMS,    /* with blocks of their own: up to 320 */
    GMD_MANY_BLOCKS,     /* live blocks, each in a segment of its own or many in one: up to 1,280 */
    GMD_MANY_DEVICES,    /* 9 to 16 */
    GMD_MANY_THREADS,    /* 5 to 64 */
    GMD_MANY_POOLS,      /* private pools: up to 64 */
    GMD_MANY_CAPTURES,   /* graphs captured into one pool: up to 80 */
    GMD_MANY_OPERATIONS, /* small allocations, each freed again: over 2^16 */
    GMD_MANY_TURNS,      /* turns of a few requests, then others... (turns.h) */
    GMD_MANY_KINDS
} gmd_many;

typedef struct gmd_profile {
    uint32_t request_count;              /* of a sequence */
    uint32_t stream_count, thread_count; /* streams with s0, threads with main */
    gmd_conditions
        conditions;       /* all but the interleaving; its settings are borrowed from the space */
    double fraction;      /* first request: the memory fraction of each device; 1: not asked for */
    uint8_t pool_options; /* gmd_pool_option: what its pools are made with, some of them */
    bool interleaves;     /* threads run between each other's calls, by a seed */
    uint32_t live_max;
    uint64_t palette[GMD_PALETTE_MAX]; /* the sizes that come again and again */
    uint32_t palette_count;
    uint8_t palette_percent;
    bool has_huge_sizes; /* close to 2^64: what comes of one hides what comes of all else */
    uint8_t cap_percent; /* of the other sizes: near what is left of the memory */
    uint16_t weights[GMD_OP_COUNT]; /* how often, relative to each other */
    gmd_many many;      /* somewhere in the sequence, beside its `request_count` requests */
    uint32_t many_room; /* of turns: so many requests at most; 0: as a campaign has them */
} gmd_profile;

#define GMD_FAULT_TARGET_MAX 24

/* A call of the allocator's that can be made to fail, and how (fault_targets.h). */
typedef struct gmd_fault_target {
    char function[48];
    uint32_t error;
} gmd_fault_target;

/* What a campaign allows; zero-initialised, nothing but plain requests on one device. */
typedef struct gmd_profile_space {
    uint32_t device_max;      /* 0 and 1: one */
    uint32_t many_device_max; /* of a sequence with many devices; 0: there is none */
    uint64_t capacity_bytes;  /* 0: drawn */
    double fraction;          /* 0: drawn, where it can be set */
    const char *const *confs; /* one of them, or none, is drawn */
    size_t conf_count;
    bool conf_is_fixed; /* always confs[0] */
    bool has_fraction, has_record_stream, has_pools, has_checkpoints;
    bool has_pool_options;   /* no threads are interleaved where pools have some */
    bool has_captures;       /* where there are pools, and no threads are interleaved */
    bool has_reused_handles; /* of destroyed streams and events */
    bool has_moved_clock;    /* the host's clocks follow `advance`, by seconds to minutes then */
    bool has_seeded_schedules, has_budgets, has_interleaving;
    bool has_accesses;     /* of the library to memory, at which threads can be switched, too */
    bool has_one_thread;   /* no sequence has more */
    bool has_devices_only; /* every sequence has several devices, where device_max allows it */
    bool has_threads_only; /* every sequence has threads, interleaved where that is possible */
    bool has_faults;       /* calls can be made to fail; in sequences, these */
    gmd_fault_target fault_targets[GMD_FAULT_TARGET_MAX];
    uint32_t fault_target_count;
    const gmd_schedule *schedule; /* always this kind; NULL: drawn */
    uint32_t without_ops;         /* bit op: no such request */
    bool has_no_huge_sizes;       /* none close to 2^64 */
    bool has_no_counts;           /* no sequence has many of one kind (gmd_many) */
} gmd_profile_space;

/* Takes what a list such as "fault,huge,threads" names out of the space; it is to be called when
 * the rest of the space is known. False: `unknown` is what it has no name for. */
bool gmd_profile_leave_out(gmd_profile_space *space, const char *list, char unknown[32]);
extern const char gmd_profile_left_out_names[]; /* all, separated by commas */

/* The settings of PyTorch's allocator that gmd tries where none are given. */
extern const char *const gmd_profile_confs[];
extern const size_t gmd_profile_conf_count;

/* Which needs (gmd_request_table.h) the sequences of a profile meet, as bits. */
uint32_t gmd_profile_needs_met(const gmd_profile *profile, const gmd_profile_space *space);

void gmd_profile_draw(gmd_profile *profile, const gmd_profile_space *space, uint64_t seed);

/* Makes a drawn profile into one of short sequences with many of one kind. False: the space has
 * none of that kind, and the profile is as it was. */
bool gmd_profile_take_many(gmd_profile *profile, const gmd_profile_space *space, gmd_many many,
                           uint64_t seed);

/* Makes a drawn profile one of short sequences in which threads meet: two or three threads,
 * interleaved, with few sizes and streams. False: threads are not to be interleaved. */
bool gmd_profile_race(gmd_profile *profile, const gmd_profile_space *space, uint64_t seed);

#endif
