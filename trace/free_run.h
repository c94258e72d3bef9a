/* free_run.h - a run of events in which a recorded job gave memory back, what is known of it, and
 * all those of a history. */
#ifndef GMD_TRACE_FREE_RUN_H
#define GMD_TRACE_FREE_RUN_H

#include "gmd_trace.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum run_follower {
    FOLLOWED_BY_NOTHING, /* nothing that gives memory back itself */
    FOLLOWED_BY_NEW_MEMORY,
    FOLLOWED_BY_REFUSAL,
} run_follower;

/* What is known of a run of events of one device that give memory back. */
typedef struct run_facts {
    run_follower follower;
    bool knows_calls;       /* whether the recorder noted each empty_cache()... */
    bool is_call;           /* ...and that it did here */
    bool is_between_pages;  /* the request after it had got pages already */
    bool continues;         /* the run before it, right before it, is of a device before its own */
    bool would_have_served; /* a segment of it the request, from the cache */
    bool is_all;            /* exactly what empty_cache() gives back */
    bool knows_retries;     /* whether num_alloc_retries rose with the request... */
    bool has_retried;       /* ...and that it did */
    bool knows_limit;
    bool is_planned;     /* under the limit the request gives back exactly this... */
    bool plan_has_retry; /* ...and all that is cached, and is counted as a retry */
} run_facts;

typedef enum run_verdict {
    RUN_EMPTY_CACHE,
    RUN_OF_REQUEST,
    RUN_EITHER, /* both explain all addresses; they differ in num_alloc_retries */
} run_verdict;

typedef struct free_run {
    size_t first, end; /* events; completed frees may be among them */
    size_t gives;      /* of them that give memory back */
    uint8_t device;
    uint64_t reserved, needed; /* bytes reserved before it, and those of the segment asked for */
    bool is_whole;             /* all that was cached on its device */
    bool is_oversize; /* it may be what a refused request gives back for max_split_size_mb's sake */
    bool has_waited; /* as its request's retry: for the frees that were completed right before it */
    run_facts facts;
    run_verdict verdict; /* in the end never RUN_EITHER */
} free_run;

typedef struct free_runs {
    free_run *items; /* in order */
    size_t count, capacity;
    uint64_t at_least; /* reserved and asked for in a request that was served: within the limit */
    uint64_t below;    /* the same of one that was refused: above it */
    uint64_t ooms[GMD_MAX_DEVICES];
    uint64_t limit_bytes; /* 0: none */
    bool limit_inferred;
    bool of_several_devices;
} free_runs;

#endif
