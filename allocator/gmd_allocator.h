/* gmd_allocator.h - the reference caching allocator: PyTorch's CUDACachingAllocator algorithm with
 * all its settings, written against the CUDA API only, so that the same object runs on the
 * simulated device and on a real one.
 *
 * Source of the algorithm: the behaviour of torch 2.11 (c10/cuda/CUDACachingAllocator.cpp), checked
 * against histories recorded on an H200 and against torch's own library on the simulated device
 * (docs/reference-allocator.md). In short: requests are rounded up to 512 B; up to 1 MiB they are
 * served from 2 MiB segments (small pool), above that from segments of 20 MiB or of the request
 * rounded up to 2 MiB (large pool); best fit among the free blocks of the same stream, ties broken
 * by the lower address; blocks split and merge within their segment; when the device or the memory
 * fraction refuses, pending frees are waited for, the cache is given back and the device is asked
 * once more.
 *
 * All sizes are bytes. Thread safety: every function may be called from any thread, except destroy;
 * requests on different streams do not wait for each other as long as cached blocks serve them. */
#ifndef GMD_ALLOCATOR_H
#define GMD_ALLOCATOR_H

#include "gmd_abi.h"
#include "gmd_allocator_types.h"
#include "gmd_cuda.h"
#include "gmd_error.h"

#include <stdbool.h>

typedef struct gmd_allocator gmd_allocator;

/* `conf` is in PYTORCH_CUDA_ALLOC_CONF syntax, NULL or "" for the defaults; a token that is unknown
 * or malformed is GMD_BAD_INPUT and named. Makes no CUDA call. */
gmd_status gmd_allocator_create(gmd_allocator **allocator, int device_count, const char *conf,
                                gmd_error *error);

/* Other settings from now on; those that `conf` does not name are as settings_parse_later has them.
 * What segments are made by (expandable_segments, max_split_size_mb) changes only while nothing is
 * reserved. GMD_FAILED or GMD_BAD_INPUT: nothing is changed, and the message names the setting. */
gmd_status gmd_allocator_change_settings(gmd_allocator *allocator, const char *conf,
                                         gmd_error *error);

/* Gives everything back to the device, live blocks included, and frees the allocator. NULL is fine.
 */
void gmd_allocator_destroy(gmd_allocator *allocator);

/* NULL: out of memory, or a device index out of range; the allocator is intact and no CUDA error is
 * left behind. A size of 0 gets a block of 512 B, as in PyTorch's raw interface. The block belongs
 * to `stream`: work queued there may use it with no further call. */
void *gmd_allocator_malloc(gmd_allocator *allocator, size_t size, int device, cudaStream_t stream);

/* Returns a block to its stream's free list, or, where it was recorded on other streams, has it
 * wait for what is queued on them now. `stream` is the one that it was allocated on, as far as the
 * caller knows: a wrong one costs time only. NULL is ignored. False: `ptr` is not a live block of
 * this allocator (a foreign pointer, or freed already); nothing is changed. */
bool gmd_allocator_free(gmd_allocator *allocator, void *ptr, int device, cudaStream_t stream);

/* The live block is used by work on `stream`, too, up to its free. False: no live block of this
 * allocator, or no host memory. */
bool gmd_allocator_record_stream(gmd_allocator *allocator, void *ptr, cudaStream_t stream);

/* Bytes of a live block, which may be more than were asked for; 0: it is none of this device. */
uint64_t gmd_allocator_block_size(gmd_allocator *allocator, int device, const void *ptr);

/* To be called before a stream of `device` is destroyed that blocks were allocated or recorded on:
 * waits for its work, so that no block depends on the handle afterwards. CUDA does not say of a
 * handle whether its stream is there (a call with one that is not crashes, and the next stream has
 * the same handle), so nobody else can tell the allocator (pytorch#66936). */
void gmd_allocator_forget_stream(gmd_allocator *allocator, int device, cudaStream_t stream);

/* Waits for pending frees and gives everything that is wholly free back to the device. */
void gmd_allocator_empty_cache(gmd_allocator *allocator);

/* Caps reserved memory of `device` at `fraction` (0..1) of its total memory; 1: no cap, and nothing
 * for garbage_collection_threshold to be a part of, as in torch 2.11. False: out of range,
 * or the device did not tell its total; nothing is changed. */
bool gmd_allocator_set_memory_fraction(gmd_allocator *allocator, double fraction, int device);

/* What is asked of the device for a request of `size` bytes that no cached block can serve. */
uint64_t gmd_allocator_device_request(const gmd_allocator *allocator, size_t size);

/* Called when no cached block serves a request, before memory is asked of the device: it may free
 * blocks, of this allocator too, and says whether it did. Callbacks stay for good, and are called
 * in the reverse order of their adding, by the thread whose request it is. False: no host memory.
 */
bool gmd_allocator_on_low_memory(gmd_allocator *allocator, gmd_free_memory_callback *release,
                                 void *context);

/* --- lending ----------------------------------------------------------------------------- */

/* Lends the device's memory to other processes: live blocks are copied to the host, all memory goes
 * back to the device, and the addresses stay reserved. Needs the setting expandable_segments:True
 * and, on the host, as much memory as live blocks have. Refused while work is pending on any stream
 * of the device, a stream is being captured, or requests go to a private pool; nothing is changed
 * then, but free memory may have been given back. No work may be queued that uses the blocks before
 * restore; the device is waited for by other threads' requests until this returns.
 *
 * While memory is lent, malloc gives NULL, blocks may be freed and are not brought back then, and
 * the figures are those of the blocks: reserved bytes are what restore will ask for. */
gmd_status gmd_allocator_yield_memory(gmd_allocator *allocator, int device, gmd_error *error);

/* Brings all back at the same addresses with the same bytes. Refused where the device does not have
 * the memory: it is still lent then, and can be restored later. */
gmd_status gmd_allocator_restore_memory(gmd_allocator *allocator, int device, gmd_error *error);
bool gmd_allocator_is_yielded(gmd_allocator *allocator, int device);

/* --- private pools ----------------------------------------------------------------------- */

/* From now on requests on the streams that `accepts` (NULL: all) go to the pool of that name, which
 * is made where there is none, and held once more. Where several accept a stream, the latest has
 * it, as in torch 2.11. False: they do already, no host memory, or no
 * such device. `context` is the caller's until gmd_allocator_end_pool gives it back. */
bool gmd_allocator_begin_pool(gmd_allocator *allocator, int device, const uint64_t id[2],
                              gmd_stream_filter *accepts, void *context);
bool gmd_allocator_end_pool(gmd_allocator *allocator, int device, const uint64_t id[2],
                            void **context);

/* Where a held pool without segments gets them from; copied. Not with expandable segments. False:
 * it is refused, and nothing is changed. */
bool gmd_allocator_set_pool_memory(gmd_allocator *allocator, int device, const uint64_t id[2],
                                   const gmd_pool_memory *memory);

/* "no_split": blocks of the held pool are handed out whole; "use_on_oom": its free blocks serve
 * requests for the default pool that would be refused. False: no such pool or option. */
bool gmd_allocator_set_pool_option(gmd_allocator *allocator, int device, const uint64_t id[2],
                                   const char *name, bool is_on);

/* Waits for pending frees and gives back what is free in this pool, and in no other, unless graphs
 * hold its addresses. False: there is no such pool. */
bool gmd_allocator_empty_pool(gmd_allocator *allocator, int device, const uint64_t id[2]);

/* Takes back one begin's hold: once nobody holds the pool, its memory is given back when it is free
 * and the cache is emptied. False: nobody holds it. */
bool gmd_allocator_release_pool(gmd_allocator *allocator, int device, const uint64_t id[2]);

/* Keeps the state of a pool, which gmd_allocator_restore_pool brings back later: how its segments
 * are split, and which blocks are allocated. GMD_FAILED: there is no such pool or device, or a
 * freed block waits for other streams. gmd_allocator_drop_checkpoint frees what is made. */
gmd_status gmd_allocator_checkpoint_pool(gmd_allocator *allocator, int device, const uint64_t id[2],
                                         gmd_checkpoint **made, gmd_error *error);

/* All live blocks of the pool are freed and those of the checkpoint allocated, at their addresses;
 * `tell` (NULL: nobody) gets the ones, then the others, with the allocator's lock held. Segments
 * that are newer than the checkpoint are free. GMD_FAILED: a segment of the checkpoint is gone, or
 * a block waits for other streams or was recorded on one; nothing is changed. */
gmd_status gmd_allocator_restore_pool(gmd_allocator *allocator, int device,
                                      const gmd_checkpoint *checkpoint, gmd_restored_fn *tell,
                                      void *context, gmd_error *error);
void gmd_allocator_drop_checkpoint(gmd_checkpoint *checkpoint); /* NULL is fine */

/* --- quirks ------------------------------------------------------------------------------ */

/* "spurious_oom" and so on; NULL beyond the last. */
const char *gmd_quirk_name(gmd_quirk which);
void gmd_allocator_set_quirk(gmd_allocator *allocator, gmd_quirk which, bool is_on);

/* How often it made a difference so far, on all devices. */
uint64_t gmd_allocator_quirk_count(gmd_allocator *allocator, gmd_quirk which);

/* --- figures ----------------------------------------------------------------------------- */

/* Sets the peaks to the current values: torch.cuda.reset_peak_memory_stats(). */
void gmd_allocator_reset_peak_stats(gmd_allocator *allocator, int device);

/* Makes decisions independent of where the device places segments: the k-th segment of device 0
 * counts as lying at given[k] for the order of blocks (ties are broken by address) and for
 * gmd_allocator_walk, later ones as lying above all others in the order of their making. `given` is
 * copied; count 0 is fine. For comparing runs on devices that place differently. False: there are
 * segments already, or no host memory; nothing is changed. */
bool gmd_allocator_order_segments(gmd_allocator *allocator, int device, const uint64_t *given,
                                  size_t count);

/* Where that order has the byte at this address, in terms of gmd_allocator_walk; without an order,
 * the address itself. 0: the address is in no segment, or the device index is out of range. */
uint64_t gmd_allocator_place_of(gmd_allocator *allocator, int device, uint64_t address);

/* False: device index out of range, or a struct_size that this version does not know. */
bool gmd_allocator_get_stats(gmd_allocator *allocator, int device, gmd_stats *out);
bool gmd_allocator_memory_stats(gmd_allocator *allocator, int device, gmd_stat_fn *emit,
                                void *context);

/* Visits every block in address order, under the allocator's lock: `visit` must not call back.
 * False: device index out of range, or no host memory. */
bool gmd_allocator_walk(gmd_allocator *allocator, int device, gmd_walk_fn *visit, void *context);

/* --- history ----------------------------------------------------------------------------- */

/* Keeps the latest `max_entries` events of each device from now on, with the stacks that `which`
 * says; 0: none any more. What was recorded before is dropped. GMD_NO_MEMORY: it is off. */
gmd_status gmd_allocator_record_history(gmd_allocator *allocator, uint64_t max_entries,
                                        gmd_stacks which, gmd_error *error);

/* The recording that is under way goes on with other stacks, and with the events that
 * gmd_allocator_skip_events has named by now. GMD_FAILED: nothing is recorded. */
gmd_status gmd_allocator_change_stacks(gmd_allocator *allocator, gmd_stacks which,
                                       gmd_error *error);

/* Events that recordings begun from now on leave out, by their names in snapshots with commas
 * between ("free_requested,snapshot"); "": none. GMD_BAD_INPUT: a name is not one. */
gmd_status gmd_allocator_skip_events(gmd_allocator *allocator, const char *names, gmd_error *error);

/* A text that the events of this thread's requests carry from now on, as user_metadata in
 * snapshots; "": none. */
void gmd_allocator_set_metadata(gmd_allocator *allocator, const char *text);

/* Who tells stacks, in place of the native frames that are taken otherwise; NULL: nobody. */
void gmd_allocator_set_stack_source(gmd_allocator *allocator, gmd_stack_source *source,
                                    void *context);

/* Keeps the calling thread's stack, as a history would, and gives its number; 0: it has none. */
uint32_t gmd_allocator_keep_stack(gmd_allocator *allocator);

/* A line FILE:LINE:FUNCTION for each frame of such a stack, the innermost first; the text is not
 * terminated, and outer frames that do not fit are left out. Gives its bytes. */
size_t gmd_allocator_stack_text(gmd_allocator *allocator, uint32_t stack, char *text, size_t size);

/* Writes all segments, blocks, recorded events and settings as torch.cuda.memory._dump_snapshot()
 * does: a pickle that torch.cuda._memory_viz and pytorch.org/memory_viz open. The file appears when
 * it is whole. Its stacks have the functions' names as the loaded libraries export them.
 * With gmd_allocator_order_segments, addresses are those of the order. GMD_FAILED: it cannot be
 * written, and the message names it. */
gmd_status gmd_allocator_dump_snapshot(gmd_allocator *allocator, const char *path,
                                       gmd_error *error);

#endif
