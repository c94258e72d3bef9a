/* gmd_oracle.h - what an oracle is, what it sees, and how it speaks.
 *
 * An oracle judges an allocator from outside: from the requests, the answers, the statistics that
 * the allocator exports and what the device handed out. It knows nothing of the allocator's
 * insides. Adding one: write oracles/NAME.c with one gmd_oracle, and put it in the list of list.c.
 *
 * The driver calls the hooks in the thread that makes the requests; oracles keep their state in
 * what `create` returns and nowhere else. An oracle that cannot see what it needs says so and is
 * reported as skipped. */
#ifndef GMD_ORACLE_H
#define GMD_ORACLE_H

#include "gmd_abi.h"
#include "gmd_error.h"
#include "gmd_trace.h"

#include <stdbool.h>
#include <stdint.h>

/* A live block, as the caller of the allocator knows it. */
typedef struct gmd_live_block {
    uint64_t address;
    uint64_t bytes; /* asked for */
    uint64_t born;  /* index of its request */
    uint32_t id;    /* index into the trace's blocks */
    uint32_t stream;
    int device;
} gmd_live_block;

/* What the device has given out; bytes. */
typedef struct gmd_device_figures {
    uint64_t capacity_bytes;
    uint64_t physical_bytes;  /* whole pages */
    uint64_t allocated_bytes; /* as asked for by cudaMalloc */
    uint64_t allocation_count;
    uint64_t stream_count, event_count; /* without those of the driver */
} gmd_device_figures;

typedef struct gmd_device_range {
    uint64_t address, size;
    int device;
} gmd_device_range;

/* Everything an oracle may look at. Pointers are valid during the hook only. */
typedef struct gmd_view {
    uint64_t request_index;      /* of the request just made; at the end: their number */
    const gmd_request *request;  /* NULL at the end */
    const gmd_live_block *block; /* ALLOC that was served, FREE: the block in question, else NULL */
    bool out_of_memory;          /* ALLOC that was refused */
    /* Where threads are interleaved: other requests are still under way, and statistics and figures
     * are from before them; or some were at some time during this request, so that a difference
     * from before it says nothing of it alone. */
    bool is_busy, is_overlapped;
    int device;                      /* that the request concerned */
    uint64_t live_count, live_bytes; /* on that device: blocks, and bytes asked for */
    /* NULL where the allocator exports no statistics. `before` is from before the request. */
    const gmd_stats *stats, *stats_before;
    uint64_t reserved_at_start; /* reserved_bytes before the first request; GMD_STAT_UNKNOWN */
    bool stats_failed; /* it exports gmd_get_stats, which failed before the first request */
    /* NULL where the device does not tell (a real one). `untouched` is from before the allocator
     * was loaded, `baseline` from before the first request: an allocator may take memory in
     * between. */
    const gmd_device_figures *figures, *untouched, *baseline;
    /* The device allocation that contains `address`; false: none. NULL on a real device.
     * `device_context` is its first argument. */
    bool (*find_range)(const void *device_context, uint64_t address, gmd_device_range *range);
    const void *device_context;
    uint64_t promised_alignment; /* bytes */
    bool can_empty_cache;
} gmd_view;

typedef struct gmd_judge gmd_judge;

/* Reports a violation of the oracle whose hook is running. The message names both parties. */
__attribute__((format(printf, 2, 3))) void gmd_violation_add(gmd_judge *judge, const char *format,
                                                             ...);

typedef struct gmd_oracle {
    const char *name;       /* stable: messages, JSON, documentation */
    const char *holds_when; /* one line */
    bool needs_quiet;       /* judges what only holds between requests: not asked while any is under
                               way (gmd_view.is_busy) */
    /* Why it cannot judge here, or NULL. Asked before the first request (request == NULL). */
    const char *(*blind_spot)(const gmd_view *view);
    /* State for one run; both NULL for an oracle without state. create: NULL is no host memory. */
    void *(*create)(void);
    void (*destroy)(void *state);
    /* Any may be NULL. before_free is called while the block is still live. */
    void (*after_alloc)(void *state, const gmd_view *view, gmd_judge *judge);
    void (*before_free)(void *state, const gmd_view *view, gmd_judge *judge);
    void (*after_request)(void *state, const gmd_view *view, gmd_judge *judge);
    /* The workload called reset_peak_memory_stats: peaks start again from the current values. */
    void (*after_peak_reset)(void *state, const gmd_view *view, gmd_judge *judge);
    /* Everything was freed and the cache emptied. */
    void (*at_end)(void *state, const gmd_view *view, gmd_judge *judge);
} gmd_oracle;

/* All oracles, in the order in which they judge; ends with NULL. */
extern const gmd_oracle *const gmd_oracles[];

#endif
