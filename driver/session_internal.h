/* session_internal.h - what the files of the driver share about a session. */
#ifndef GMD_SESSION_INTERNAL_H
#define GMD_SESSION_INTERNAL_H

#include "gmd_session.h"
#include "judge.h"
#include "shared.h"
#include "streams.h"
#include "threads.h"

typedef struct session_block {
    gmd_live_block live; /* address 0: not live */
    gmd_stream_uses uses;
} session_block;

struct gmd_session {
    const gmd_run_options *options;
    const gmd_workload *workload;
    gmd_shared *shared;
    gmd_runtime runtime;
    gmd_subject subject;
    int device_count;

    session_block *blocks; /* by block id */
    uint32_t block_capacity;
    uint64_t live_count[GMD_MAX_DEVICES], live_bytes[GMD_MAX_DEVICES];
    gmd_streams streams;
    gmd_threads threads;

    gmd_view view;
    gmd_judge judge;
    bool has_stats;
    gmd_stats stats[GMD_MAX_DEVICES], stats_before;
    uint64_t reserved_at_start[GMD_MAX_DEVICES];
    gmd_device_figures figures[GMD_MAX_DEVICES], baseline[GMD_MAX_DEVICES];
    gmd_device_figures untouched[GMD_MAX_DEVICES];
    uint64_t peak_allocated, peak_reserved; /* from outside, for allocators without statistics */

    gmd_device_call *calls; /* of the last request */
    size_t call_count, call_capacity;
    uint64_t device_calls;

    uint64_t request_index;
    uint64_t last_refused; /* request index of the latest out-of-memory */
    bool is_over;
};

/* The memory fraction whose product with `total`, cut to whole bytes, is `limit` exactly. */
double gmd_fraction_for(uint64_t limit, uint64_t total);

/* Loads the runtime and the allocator under test and looks at the untouched device. */
gmd_status gmd_session_open(gmd_session *session, const gmd_run_options *options,
                            const gmd_workload *workload, gmd_shared *shared, gmd_error *error);

/* The end of a run: statistics for the report, then everything is freed and the cache emptied, and
 * the oracles judge what is left. */
void gmd_session_finish(gmd_session *session);
void gmd_session_close(gmd_session *session);

#endif
