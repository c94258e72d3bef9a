/* streams.h - the streams of a run, and which block is used where: so that the driver can keep a
 * caller's duty to order other streams' work before a free. */
#ifndef GMD_STREAMS_H
#define GMD_STREAMS_H

#include "gmd_error.h"
#include "gmd_runtime.h"
#include "gmd_trace.h"

#include <stdbool.h>

/* Work of streams beyond this many on others' blocks, not recorded before, is ordered at once
 * instead of at the free: always right, only stricter. */
#define GMD_TRACKED_STREAMS 64
/* Up to this many it is known which ones were recorded. Each block has a bit for each. */
#define GMD_RECORDED_STREAMS 128
#define GMD_FAR_WORDS        (GMD_RECORDED_STREAMS / 64 - 1)

/* Uses of a block on streams other than its own that no record_stream has taken over. */
typedef struct stream_uses {
    uint64_t streams;  /* bit s: used on stream s */
    uint64_t recorded; /* bit s: record_stream took over stream s, for as long as the block lives */
    uint64_t recorded_far[GMD_FAR_WORDS]; /* likewise of streams 64 to 127 */
    uint32_t recorded_beyond; /* record_stream of streams from 64 on, or of those that are gone; the
                                 same one may count more than once */
    uint64_t last_use;        /* request index of the latest such use */
} stream_uses;

typedef struct device_streams {
    cudaStream_t *handles; /* by stream index; 0 is the default stream; NULL: destroyed */
    uint32_t count, capacity;
    uint64_t created; /* by the driver: not the allocator's */
    /* Request index of the latest wait of one stream for another, and of the host for a stream. */
    uint64_t waited[GMD_TRACKED_STREAMS][GMD_TRACKED_STREAMS];
    uint64_t synced[GMD_TRACKED_STREAMS];
    /* Likewise of the latest free of a block that the stream used: until the host has waited for
     * the stream, the allocator may have to. */
    uint64_t awaited[GMD_TRACKED_STREAMS];
    bool awaits_untracked; /* such a stream, whose number is too high */
} device_streams;

/* A call of the driver's own that the device has refused. */
typedef struct refused_call {
    const char *call; /* NULL: there was none */
    cudaError_t error;
} refused_call;

typedef struct run_streams {
    const gmd_runtime *runtime;
    refused_call refused;                     /* the first */
    device_streams *devices[GMD_MAX_DEVICES]; /* NULL: none used yet */
} run_streams;

void streams_init(run_streams *streams, const gmd_runtime *runtime);
/* For calls of the driver's own that are made elsewhere: notes one that was refused. */
void streams_note_refusal(run_streams *streams, cudaError_t result, const char *call);
/* For assertions: the sentence that does not hold; NULL: all does. */
const char *run_streams_violation(const run_streams *streams);

/* How many streams the driver itself has made on a device. */
uint64_t streams_created(const run_streams *streams, int device);

/* The index of a handle on `device`; UINT32_MAX: none of the driver's. */
uint32_t streams_index(const run_streams *streams, int device, cudaStream_t handle);

void streams_close(run_streams *streams); /* destroys the streams it made */
/* They are gone: the device was reset. */
void streams_forget(run_streams *streams);

/* Makes `device` current in this thread and gives what streams_leave needs to go back. Events
 * are made on the current device and can only be recorded on its streams. */
gmd_status streams_enter(run_streams *streams, int device, int *previous, gmd_error *error);
gmd_status streams_leave(run_streams *streams, int previous, gmd_error *error);

/* The handle of stream `index` on `device`, made at first use together with all lower ones, so that
 * handles ascend with the index. */
gmd_status streams_get(run_streams *streams, int device, uint32_t index, cudaStream_t *handle,
                       gmd_error *error);

/* The handle of a stream that was used already; false: it was not. */
bool streams_find(const run_streams *streams, int device, uint32_t index, cudaStream_t *handle);

/* Destroys stream `index`, where it was ever made; its next use makes a new one. */
gmd_status streams_destroy(run_streams *streams, int device, uint32_t index, gmd_error *error);

/* `waiter` waits for all that is queued on `waited` now. */
gmd_status streams_wait(run_streams *streams, int device, uint32_t waiter, uint32_t waited,
                        uint64_t request, gmd_error *error);
gmd_status streams_sync(run_streams *streams, int device, uint32_t index, uint64_t request,
                        gmd_error *error); /* GMD_ALL_STREAMS: the device */

/* Notes a use of a block that belongs to stream `owner` on stream `user`. */
gmd_status streams_note_use(run_streams *streams, stream_uses *uses, int device, uint32_t owner,
                            uint32_t user, uint64_t request, gmd_error *error);

/* record_stream takes over what `stream` does with the block. */
void streams_note_record(run_streams *streams, stream_uses *uses, int device, uint32_t stream);
/* The stream is gone; one that is made later under the same number is another one. */
void streams_note_gone(stream_uses *uses, uint32_t stream);

/* A block of stream `owner` is freed, on which work was queued, as on those recorded. */
void streams_note_free(run_streams *streams, const stream_uses *uses, int device, uint32_t owner,
                       uint64_t request);
/* Whether a freed block may have to wait for a stream, and be ready at any moment. */
bool streams_may_free(const run_streams *streams, int device);

/* Before the free: whatever other streams do with the block is ordered before the owner's next
 * work. */
gmd_status streams_settle(run_streams *streams, const stream_uses *uses, int device, uint32_t owner,
                          uint64_t request, gmd_error *error);

#endif
