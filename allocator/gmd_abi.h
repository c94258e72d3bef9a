/* gmd_abi.h - the ABI of an allocator under test: a shared library with the two functions of
 * PyTorch's pluggable allocators
 * (https://pytorch.org/docs/stable/notes/cuda.html#using-custom-memory-allocators-for-cuda) and
 * optional ones, found by name, that let gmd see and check more.
 *
 *     void *gmd_malloc(size_t size, int device, cudaStream_t stream);         NULL: out of memory
 *     void  gmd_free(void *ptr, size_t size, int device, cudaStream_t stream);
 *
 * optional, each unlocks oracles:
 *     void gmd_init(int device_count);
 *     void gmd_empty_cache(void);
 *     void gmd_record_stream(void *ptr, cudaStream_t stream);
 *     void gmd_set_memory_fraction(double fraction, int device);
 *     int  gmd_get_stats(int device, gmd_stats *out);                         0: filled in
 *     int  gmd_memory_stats(int device, gmd_stat_fn *emit, void *context);    0: all emitted
 *     void gmd_reset_peak_stats(int device);
 *     int  gmd_configure(const char *conf, char *message, size_t message_size);
 *                                             0: accepted; else a message; before the first request
 *     int  gmd_restart(const char *conf, char *message, size_t message_size);
 *                       0: everything went back to the device and is forgotten, and the next call
 *                       starts anew with these settings, maybe on another device; else a message,
 *                       and nothing is changed. No other thread is in a call
 *     int  gmd_order_segments(int device, const uint64_t *given, size_t count);
 *                                             0: accepted; see gmd_allocator_order_segments
 *     uint64_t gmd_place_of(int device, uint64_t address);
 *                       then: where gmd_walk shows the byte at an address; 0: nowhere
 *     int  gmd_walk(int device, gmd_walk_fn *visit, void *context);           0: all visited
 *     uint64_t gmd_device_request(size_t size);
 *                       bytes that it asks of the device for a request that no cached block serves
 *     void gmd_forget_stream(int device, cudaStream_t stream);
 *                       before a stream is destroyed that blocks were allocated or recorded on
 *     int  gmd_set_quirk(const char *name, int is_on);                        0: known
 *     int64_t gmd_quirk_count(const char *name);                             -1: not known
 *                       deviations of a recorded version; see gmd_quirk in gmd_allocator.h
 *     int  gmd_begin_pool(int device, const uint64_t id[2], gmd_stream_filter *, void *context);
 *     int  gmd_end_pool(int device, const uint64_t id[2], void **context);
 *     int  gmd_release_pool(int device, const uint64_t id[2]);
 *                       0: done. Requests on the streams that the filter accepts go to the pool of
 *                       that name from now on, which is held once more; they no longer do, and the
 *                       filter's context is given back; one hold is taken back, and with the last
 *                       one the name is gone for good. The default pool is
 *                       {0, 0}. A stream of the pool may be captured into a graph meanwhile
 *                       (cudaStreamIsCapturing): what the graph works in must stay where it is,
 *                       freed or not, for as long as the pool is held. See gmd_allocator_begin_pool
 *     int  gmd_record_history(uint64_t max_entries, int stacks, char *message, size_t size);
 *     void gmd_set_stack_source(gmd_stack_source *source, void *context);
 *     int  gmd_dump_snapshot(const char *path, char *message, size_t size);
 *                       0: done; else a message. The history of events, whose stacks (a gmd_stacks)
 *                       it keeps, and the file that torch.cuda._memory_viz reads
 *     int  gmd_yield_memory(int device, char *message, size_t message_size);
 *     int  gmd_restore_memory(int device, char *message, size_t message_size);
 *                       0: done; else a message. See gmd_allocator_yield_memory
 *     unsigned gmd_promises(void);
 *                       what it promises beyond this ABI, to be judged by: a set of gmd_promise
 *     const char *gmd_last_error(void);
 *                       what went wrong in the thread's last call but being out of memory, or NULL
 *
 * This header declares types only, so that a plugin may be written without it. Sizes are bytes. */
#ifndef GMD_ABI_H
#define GMD_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct CUstream_st;

#define GMD_STAT_UNKNOWN UINT64_MAX /* a figure that the allocator does not keep */

/* The meanings are those of torch.cuda.memory_stats(), over all pools of one device. */
typedef struct gmd_stats {
    size_t struct_size; /* set by the caller: sizeof(gmd_stats) */
    uint64_t allocated_bytes, allocated_bytes_peak, reserved_bytes, reserved_bytes_peak;
    uint64_t active_bytes, active_bytes_peak, inactive_split_bytes, requested_bytes;
    uint64_t allocation_count, segment_count, num_alloc_retries, num_ooms;
} gmd_stats;

/* Every figure of torch.cuda.memory_stats() under its name there ("reserved_bytes.all.peak"). */
typedef void gmd_stat_fn(void *context, const char *name, uint64_t value);

/* One block of the allocator, as the snapshot would show it. Blocks come by segment, segments in
 * ascending address order, blocks within a segment likewise. */
typedef struct gmd_block_info {
    uint64_t segment_address, segment_size;
    uint64_t address, size, requested_size; /* requested_size: by its current or last owner */
    struct CUstream_st *stream;             /* the allocation stream */
    int state;                              /* 0 free, 1 allocated, 2 freed but still pending */
    int is_large;                           /* the pool */
    int is_expandable;                      /* the segment is a mapped part of an expandable one */
    uint64_t pool_id[2];                    /* {0, 0}: the default pool */
} gmd_block_info;

/* Whether a stream's requests are meant (gmd_begin_pool; NULL: all are). It may be called with
 * locks of the allocator held, and calls nothing itself. */
typedef bool gmd_stream_filter(void *context, struct CUstream_st *stream);

typedef void gmd_walk_fn(void *context, const gmd_block_info *block);

/* What not every correct allocator does: judged only where it is promised. */
typedef enum gmd_promise {
    GMD_PROMISE_MISUSE = 1, /* a free of no block (again, foreign, null, inside of one) is refused
                               or ignored, and changes nothing */
    GMD_PROMISE_DETERMINISM = 2, /* the same requests on the same device get the same answers */
    GMD_PROMISE_PYTORCH = 4,     /* PyTorch's algorithm: its addresses, refusals and statistics */
    GMD_PROMISE_COALESCING = 8,  /* free neighbours of one stream and pool are merged at once */
    GMD_PROMISE_ALIGN_512 = 16,  /* every pointer is a multiple of 512 B */
    GMD_PROMISE_PROMPT = 32,     /* a freed block is active only until the next allocation after its
                                    streams' work is over */
} gmd_promise;

/* Whose stacks a history keeps. */
typedef enum gmd_stacks {
    GMD_STACKS_OFF,
    GMD_STACKS_ALLOCATIONS, /* a free is shown with the stack of its allocation */
    GMD_STACKS_ALL,
} gmd_stacks;

/* Tells the current thread's stack: writes a line FILE:LINE:FUNCTION for each frame, the innermost
 * first, and gives the bytes written, at most `size` (then its outer frames are cut off); 0: it has
 * none. The text is UTF-8 and not terminated. Called by any thread at the start of a request, with
 * no lock of the allocator held, so that it may take locks of its own, and may even allocate and
 * free: such requests have no stack. It must stay callable until another one is set or the history
 * is switched off: blocks are freed at a process's very end, too, when Python is gone, say. */
typedef size_t gmd_stack_source(void *context, char *text, size_t size);

#endif
