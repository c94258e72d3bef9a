/* order.h - happens-before for blocks of device memory: which block was freed, or handed on, while
 * work on another stream could still use it. Knows nothing of CUDA; whoever sees the calls tells it
 * (launches.h: from CUPTI).
 *
 * The rules are those of PyTorch's caching allocator. A block is allocated on a stream; work on
 * that stream may use it with no further call. When it is freed, the memory may be handed at once
 * to any later allocation on that stream, whose work on that stream runs after all that is queued
 * there now. So before the free each use on another stream is either recorded (order_record_stream)
 * or ordered before what the allocation stream runs next: by an event, or because the host has
 * waited.
 *
 * What is judged is what may happen in every schedule, not what did happen in this one: the memory
 * need not really be handed on too early. To accuse nobody whose program is right,
 * ORDER_FREED_EARLY is not raised at the free but when somebody comes who could have been given the
 * memory: a block that was allocated on the same stream after the free and before the order, at its
 * first use that does not run after the earlier owner's. A program that lets the stream wait before
 * it uses anything new on it is left in peace.
 *
 * Vector clocks (gmd_past.h): queueing work costs O(1), a wait O(streams with pending work).
 *
 * Thread safety: every function may be called by any thread at any time; an order has one lock.
 * Findings are delivered after it is released, by the thread whose call brought them about: the
 * callback may take stacks and other locks and may call these functions.
 * Errors: where the host has no memory, what would have been noted is dropped and counted
 * (order_statistics.dropped): nothing is accused for want of a note. */
#ifndef ORDER_H
#define ORDER_H

#include "order_types.h"

#include <stddef.h>

/* NULL: the host has no memory. `settings` is copied. */
order *order_create(const order_settings *settings);

/* Blocks that are still referred to are given up, too. No other thread is in a call. NULL: nothing.
 */
void order_destroy(order *o);

void order_statistics_of(order *o, order_statistics *out);

/* --- blocks ------------------------------------------------------------------------------ */

/* A block was handed out on `stream`; `place` is the caller's, passed on in findings. The caller
 * has one reference to what is returned. `is_in_graph_pool`: of a private pool, in which the owner
 * of graphs settles what lives when: a replay that uses it after its free is not accused. A block
 * that is allocated while its stream is captured is such a one without being told. NULL: no host
 * memory (every function takes NULL for a block and does nothing). */
order_block *order_allocated(order *o, uint64_t address, uint64_t bytes, order_stream stream,
                             uint64_t place, bool is_in_graph_pool);

/* Tensor.record_stream: work on `stream`, queued before the free, is waited for by the allocator.
 */
void order_record_stream(order *o, order_block *block, order_stream stream);

/* The user gave the block back; the reference stays. The caller keeps the block findable as long as
 * it is in quarantine: that is how a later use is seen to come after the free. A second free:
 * nothing.
 */
void order_freed(order *o, order_block *block, uint64_t place);

/* One reference more; one less, and with the last one the block is gone. Without the lock: a caller
 * that finds a block under a lock of its own keeps it there. */
order_block *order_block_keep(order_block *block);
void order_block_drop(order *o, order_block *block);

/* The block as it is now; whether it is freed. */
bool order_describe(order *o, const order_block *block, order_subject *out);

/* Whether work on `stream` that uses the block is worth a stack, which `place` of the work then
 * names: the stream is another than the block's own, or the block is freed. Without the lock. */
bool order_is_remarkable(const order_block *block, order_stream stream);

/* All blocks that there ever were lie in [*lowest, *beyond). Without the lock, and cheap: who looks
 * for addresses of blocks need not look closer at others. */
void order_span(const order *o, uint64_t *lowest, uint64_t *beyond);

/* --- work -------------------------------------------------------------------------------- */

/* Work was queued on `stream` that uses these blocks (count may be 0). What the blocks' references
 * are to the caller they stay. On a stream that is captured it does not run: it becomes part of the
 * graph. */
void order_queued(order *o, order_stream stream, const char *what, uint64_t place,
                  const order_use *uses, size_t count);

/* --- who waits for whom ------------------------------------------------------------------ */

/* A stream that nobody announced is taken for one that does not wait for the legacy default stream
 * unless `is_blocking` is told here, at any time. A handle may be created again: it is a new
 * stream. */
void order_stream_created(order *o, order_stream stream, bool is_blocking);
bool order_knows_stream(order *o, order_stream stream);
void order_stream_destroyed(order *o, order_stream stream); /* its queued work still runs */

/* Events by any number that tells them apart (cudaEvent_t). A wait for one that was never recorded
 * is none, as in CUDA. */
void order_event_recorded(order *o, uint64_t event, order_stream stream);
void order_event_waited_for(order *o, uint64_t event, order_stream stream);
void order_event_destroyed(order *o, uint64_t event);

/* The host knows that all is over: it has waited, or asked and was told so. */
void order_event_over(order *o, uint64_t event);
void order_stream_over(order *o, order_stream stream);
void order_device_over(order *o, int device);

/* --- graphs ------------------------------------------------------------------------------ */

/* Work of `stream`, and of every stream that waits for an event of the capture, is captured. Order
 * within the capture is judged as on streams that run. */
void order_capture_begun(order *o, order_stream stream);
bool order_is_capturing(const order *o); /* anything, anywhere. Without the lock */

/* All streams of the capture that began on `stream` go on as before. `graph`: any number that tells
 * graphs apart (cudaGraph_t); 0: the capture failed. */
void order_capture_ended(order *o, order_stream stream, uint64_t graph);

/* `exec` now does what `graph` does, whatever it did before. */
void order_graph_instantiated(order *o, uint64_t graph, uint64_t exec);
void order_graph_destroyed(order *o, uint64_t graph); /* executable graphs made of it stay */
void order_exec_destroyed(order *o, uint64_t exec);

/* A use, on `stream`, of all blocks of the graph that were allocated outside of its capture. */
void order_graph_launched(order *o, uint64_t exec, order_stream stream, uint64_t place);

#endif
