/* gmd_abi.h - the ABI of an allocator under test: a shared library with the two functions of
 * PyTorch's pluggable allocators
 * (https://pytorch.org/docs/stable/notes/cuda.html#using-custom-memory-allocators-for-cuda) and
 * optional ones, found by name, that let gmd see and check more.
 *
 * GMD_ABI_FUNCTIONS at the end is the list of them all: what each is declared as, what it lets gmd
 * do, and what it means. The declarations below, gmd's binding of a library and the lists in
 * docs/allocators.md are made from it. A library exports what it has; one that includes this header
 * has the compiler check its definitions. It may also be written without this header, which
 * includes no other of gmd's: copy it. C11 or later, or C++.
 *
 * Sizes are bytes. Any thread may call unless a function says otherwise. */
#ifndef GMD_ABI_H
#define GMD_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What stands before each declaration, such as a visibility; may be defined before the inclusion.
 * A library that is compiled with -fvisibility=hidden has to export its definitions. */
#ifndef GMD_ABI_EXPORT
#define GMD_ABI_EXPORT
#endif

typedef struct CUstream_st *cudaStream_t; /* as CUDA's headers have it */

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
    cudaStream_t stream;                    /* the allocation stream */
    int state;                              /* 0 free, 1 allocated, 2 freed but still pending */
    int is_large;                           /* the pool */
    int is_expandable;                      /* the segment is a mapped part of an expandable one */
    uint64_t pool_id[2];                    /* {0, 0}: the default pool */
} gmd_block_info;

/* Whether a stream's requests are meant (gmd_begin_pool; NULL: all are). It may be called with
 * locks of the allocator held, and calls nothing itself. */
typedef bool gmd_stream_filter(void *context, cudaStream_t stream);

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
    GMD_PROMISE_THROWS = 64,     /* out of memory is a C++ exception, std::bad_alloc or one derived
                                    from it, and not null */
} gmd_promise;

/* Whose stacks a history keeps. */
typedef enum gmd_stacks {
    GMD_STACKS_OFF,
    GMD_STACKS_ALLOCATIONS, /* a free is shown with the stack of its allocation */
    GMD_STACKS_ALL,
} gmd_stacks;

/* Tells the current thread's stack: writes a line FILE:LINE:FUNCTION for each frame, or @ADDRESS
 * for a return address (hexadecimal; it is named when a snapshot is written), the innermost first,
 * and gives the bytes written, at most `size` (then its outer frames are cut off); 0: it has none.
 * The text is UTF-8 and not terminated. Called by any thread at the start of a request, with no
 * lock of the allocator held, so that it may take locks of its own, and may even allocate and free:
 * such requests have no stack. It must stay callable until another one is set or the history is
 * switched off: blocks are freed at a process's very end, too, when Python is gone, say. */
typedef size_t gmd_stack_source(void *context, char *text, size_t size);

/* The state of a private pool, as gmd_checkpoint_pool keeps it. */
typedef struct gmd_checkpoint gmd_checkpoint;

/* A block that gmd_restore_pool frees, or (is_live) that is allocated from then on. Called with
 * locks of the allocator held: it calls nothing itself. */
typedef void gmd_restored_fn(void *context, void *ptr, uint64_t size, cudaStream_t stream,
                             int is_live);

/* Where the segments of a private pool come from in place of cudaMalloc. Called with locks of the
 * allocator held, while a stream is captured in relaxed mode; the functions call nothing of it. */
typedef struct gmd_pool_memory {
    void *(*allocate)(void *context, size_t size, int device); /* null: there is none */
    void (*release)(void *context, void *ptr, size_t size, int device);
    void (*done)(void *context); /* the pool is gone; may be null */
    void *context;
} gmd_pool_memory;

/* The functions: X(RETURNS, NAME, (PARAMETERS), UNLOCKS, MEANING), exported as gmd_NAME. The last
 * two are text in Markdown. */

/* The two that every allocator has. They may have other names: `--allocator PATH.so:MALLOC,FREE`.
 */
#define GMD_ABI_REQUIRED(X)                                                                        \
    X(void *, malloc, (size_t size, int device, cudaStream_t stream), "",                          \
      "memory of `device` for work on `stream`; null: out of memory")                              \
    X(void, free, (void *ptr, size_t size, int device, cudaStream_t stream), "",                   \
      "`size`, `device` and `stream` are those of the allocation; where that stream was "          \
      "destroyed "                                                                                 \
      "since, another one")

/* Each may be missing, but for the three of private pools and the three of their checkpoints, which
 * come together. */
#define GMD_ABI_OPTIONAL(X)                                                                        \
    X(void, init, (int device_count), "", "called once, before the first request")                 \
    X(void, empty_cache, (void),                                                                   \
      "`empty_cache` in traces, `leak`, more of `oom_retry` and `progress`",                       \
      "memory in which no block lies goes back to the device")                                     \
    X(void, record_stream, (void *ptr, cudaStream_t stream),                                       \
      "`record` in traces, and what `stream_order` judges of it",                                  \
      "work on `stream` uses the block, too: after its free it is reused only when that work is "  \
      "over")                                                                                      \
    X(void, forget_stream, (int device, cudaStream_t stream), "",                                  \
      "called before a stream is destroyed that blocks were allocated or recorded on")             \
    X(void, set_memory_fraction, (double fraction, int device),                                    \
      "`--limit`, `fraction` in traces, and what `peak_bound` judges of them",                     \
      "reserved memory stays below this part of the device's")                                     \
    X(int, get_stats, (int device, gmd_stats *out),                                                \
      "`accounting`, the figures of reports and, on real devices, `size`, `peak_bound` and "       \
      "`leak`",                                                                                    \
      "fills in `out`. 0: done")                                                                   \
    X(int, memory_stats, (int device, gmd_stat_fn *emit, void *context),                           \
      "the final statistics in `gmd replay --check`", "emits every figure. 0: done")               \
    X(void, reset_peak_stats, (int device), "peaks that begin with the workload",                  \
      "the peaks become the current values")                                                       \
    X(int, configure, (const char *conf, char *message, size_t message_size),                      \
      "`--conf`, `conf` in traces",                                                                \
      "called before the first request. 0: accepted; else a message")                              \
    X(int, restart, (const char *conf, char *message, size_t message_size),                        \
      "many runs in one process, which makes campaigns faster",                                    \
      "everything goes back to the device and is forgotten, and the next call starts anew with "   \
      "these settings, maybe on another device. 0: done; else a message, and nothing is changed. " \
      "No other thread is in a call meanwhile")                                                    \
    X(int, order_segments, (int device, const uint64_t *given, size_t count),                      \
      "the same choices on real devices as on the simulated one",                                  \
      "with `gmd_place_of`: the order that segments are taken to lie in, whatever their "          \
      "addresses are: first those of `given`, ascending, then later ones as they are made. 0: "    \
      "accepted")                                                                                  \
    X(uint64_t, place_of, (int device, uint64_t address), "",                                      \
      "for `gmd_order_segments`: where `gmd_walk` shows the byte at an address; 0: nowhere")       \
    X(int, walk, (int device, gmd_walk_fn *visit, void *context),                                  \
      "`snapshot`, segments and blocks in reports", "visits every block. 0: done")                 \
    X(uint64_t, device_request, (size_t size), "more of `oom_retry`",                              \
      "bytes that it asks of the device for a request that no cached block serves")                \
    X(int, set_quirk, (const char *name, int is_on),                                               \
      "`gmd replay --check` of histories from older versions",                                     \
      "a deviation of a recorded version (docs/reference-allocator.md) is switched on or off. 0: " \
      "known")                                                                                     \
    X(int64_t, quirk_count, (const char *name), "",                                                \
      "for `gmd_set_quirk`: how often the deviation made a difference; -1: not known")             \
    X(int, begin_pool,                                                                             \
      (int device, const uint64_t id[2], gmd_stream_filter *accepts, void *context),               \
      "`begin_pool` and `begin_capture` in traces, `private_pool`",                                \
      "requests on the streams that `accepts` takes (null: all) go to the pool of that name from " \
      "now on, which is held once more. {0, 0} is the default pool. A stream of the pool may be "  \
      "captured into a graph meanwhile (`cudaStreamIsCapturing`): what the graph works in must "   \
      "stay where it is, freed or not, for as long as the pool is held. 0: done")                  \
    X(int, end_pool, (int device, const uint64_t id[2], void **context), "",                       \
      "requests on those streams no longer go there, and the filter's context is given back. 0: "  \
      "done")                                                                                      \
    X(int, release_pool, (int device, const uint64_t id[2]), "",                                   \
      "one hold on the pool is taken back; with the last one the name is gone for good. 0: done")  \
    X(int, checkpoint_pool,                                                                        \
      (int device, const uint64_t id[2], gmd_checkpoint **made, char *message,                     \
       size_t message_size),                                                                       \
      "`checkpoint_pool` and `restore_pool` in traces, more of `private_pool`",                    \
      "keeps how the segments of a private pool are split, and which blocks are allocated. 0: "    \
      "done")                                                                                      \
    X(int, restore_pool,                                                                           \
      (int device, const gmd_checkpoint *checkpoint, gmd_restored_fn *tell, void *context,         \
       char *message, size_t message_size),                                                        \
      "",                                                                                          \
      "brings the pool back to that: its live blocks are freed, those of the checkpoint are "      \
      "allocated, and `tell` gets each. 0: done; else nothing is changed")                         \
    X(void, drop_checkpoint, (gmd_checkpoint * checkpoint), "",                                    \
      "it is not needed any more; null is fine")                                                   \
    X(int, set_pool_option, (int device, const uint64_t id[2], const char *name, int is_on),       \
      "with `gmd_set_pool_memory`: options of `begin_pool` in traces, more of `private_pool`",     \
      "of a held private pool: `no_split`: its blocks are handed out whole, so that no two "       \
      "lie in one allocation of the device; `use_on_oom`: its free blocks serve requests for "     \
      "the default pool that would be refused, and no others. 0: done")                            \
    X(int, set_pool_memory, (int device, const uint64_t id[2], const gmd_pool_memory *memory), "", \
      "where a private pool that is held and has no segments gets all of them from, and gives "    \
      "them back to. Not with expandable segments. 0: done")                                       \
    X(unsigned, promises, (void),                                                                  \
      "`misuse`, `determinism`, `reference`, more of `alignment`, `snapshot` and `accounting`",    \
      "what it promises beyond this ABI, to be judged by: a set of `gmd_promise`")                 \
    X(const char *, last_error, (void), "the reason in a verdict of `progress`",                   \
      "what went wrong in the thread's last call but being out of memory, or null")

/* For programs that the allocator works in, as PyTorch with gmd_torch.py: no oracle needs them.
 * Where there is a message, it is filled in when the answer is not 0. */
#define GMD_ABI_HOSTED(X)                                                                          \
    X(int, record_history, (uint64_t max_entries, int stacks, char *message, size_t message_size), \
      "",                                                                                          \
      "keeps the latest `max_entries` events (0: none) with the stacks of a `gmd_stacks`. 0: "     \
      "done")                                                                                      \
    X(int, change_stacks, (int stacks, char *message, size_t message_size), "",                    \
      "the recording that is under way goes on, with the stacks of a `gmd_stacks` from now on. "   \
      "0: done")                                                                                   \
    X(int, skip_events, (const char *names, char *message, size_t message_size), "",               \
      "histories that are recorded from now on leave these events out: names as in a snapshot, "   \
      "with commas between. 0: done")                                                              \
    X(void, set_metadata, (const char *text), "",                                                  \
      "a text that the events of this thread carry from now on in the history; empty: none")       \
    X(void, set_stack_source, (gmd_stack_source * source, void *context), "",                      \
      "who tells a thread's stack, for the history; null: nobody")                                 \
    X(uint32_t, keep_stack, (void), "",                                                            \
      "keeps the calling thread's stack, as a history would, and gives its number; 0: none")       \
    X(size_t, stack_text, (uint32_t stack, char *text, size_t size), "",                           \
      "a line FILE:LINE:FUNCTION for each frame of such a stack, the innermost first, not "        \
      "terminated; gives the bytes")                                                               \
    X(int, dump_snapshot, (const char *path, char *message, size_t message_size), "",              \
      "writes the file that `torch.cuda._memory_viz` reads. 0: done")                              \
    X(uint64_t, block_size, (int device, const void *ptr), "",                                     \
      "bytes of the live block, which may be more than were asked for; 0: none")                   \
    X(int, empty_pool, (int device, const uint64_t id[2]), "",                                     \
      "the memory of this private pool in which no block lies goes back to the device. 0: done")   \
    X(int, change_settings, (const char *conf, char *message, size_t message_size), "",            \
      "settings while it is in use: of those not named, max_split_size_mb, "                       \
      "roundup_power2_divisions and garbage_collection_threshold fall back to their defaults. 0: " \
      "done")                                                                                      \
    X(int, yield_memory, (int device, char *message, size_t message_size), "",                     \
      "lends the memory to other processes: live blocks are copied to the host, and all of it "    \
      "goes back to the device. 0: done")                                                          \
    X(int, restore_memory, (int device, char *message, size_t message_size), "",                   \
      "ends the loan: the blocks are back, at their addresses. 0: done")

#define GMD_ABI_FUNCTIONS(X) GMD_ABI_REQUIRED(X) GMD_ABI_OPTIONAL(X) GMD_ABI_HOSTED(X)

#ifndef GMD_ABI_TYPES_ONLY /* may be defined: for functions of C++ that are noexcept, say */
#ifdef __cplusplus
extern "C" {
#endif
#define GMD_ABI_DECLARE(returns, name, parameters, unlocks, meaning)                               \
    GMD_ABI_EXPORT returns gmd_##name parameters;
GMD_ABI_FUNCTIONS(GMD_ABI_DECLARE)
#undef GMD_ABI_DECLARE
#ifdef __cplusplus
}
#endif
#endif

#endif
