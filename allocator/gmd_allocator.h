/* gmd_allocator.h - the reference caching allocator: PyTorch's CUDACachingAllocator algorithm,
 * default settings, written against the CUDA runtime API only, so that the same object runs on the
 * simulated device and on a real one.
 *
 * Source of the algorithm: the behaviour of torch 2.11 (c10/cuda/CUDACachingAllocator.cpp), checked
 * against histories recorded on an H200 (docs/reference-allocator.md). In short: requests are
 * rounded up to 512 B; up to 1 MiB they are served from 2 MiB segments (small pool), above that
 * from segments of 20 MiB or of the request rounded up to 2 MiB (large pool); best fit among the
 * free blocks of the same stream, ties broken by the lower address; blocks split and merge within
 * their segment; when the device or the memory fraction refuses, the cache is given back and the
 * device is asked once more.
 *
 * All sizes are bytes. Thread safety: every function may be called from any thread, except destroy.
 */
#ifndef GMD_ALLOCATOR_H
#define GMD_ALLOCATOR_H

#include "gmd_abi.h"
#include "gmd_cuda.h"
#include "gmd_error.h"

#include <stdbool.h>

typedef struct gmd_allocator gmd_allocator;

/* `conf` is in PYTORCH_CUDA_ALLOC_CONF syntax, NULL or "" for the defaults; a token that is not
 * supported is GMD_BAD_INPUT and named. Makes no CUDA call. */
gmd_status gmd_allocator_create(gmd_allocator **allocator, int device_count, const char *conf,
                                gmd_error *error);

/* Gives everything back to the device, live blocks included, and frees the allocator. NULL is fine.
 */
void gmd_allocator_destroy(gmd_allocator *allocator);

/* NULL: out of memory, or a device index out of range; the allocator is intact and no CUDA error is
 * left behind. A size of 0 gets a block of 512 B, as in PyTorch's raw interface. The block belongs
 * to `stream`: work queued there may use it with no further call. */
void *gmd_allocator_malloc(gmd_allocator *allocator, size_t size, int device, cudaStream_t stream);

/* Returns a block to its stream's free list. NULL is ignored. False: `ptr` is not a live block of
 * this allocator (a foreign pointer, or freed already); nothing is changed. */
bool gmd_allocator_free(gmd_allocator *allocator, void *ptr);

/* Gives every segment that is wholly free back to the device. */
void gmd_allocator_empty_cache(gmd_allocator *allocator);

/* Caps reserved memory of `device` at `fraction` (0..1) of its total memory. False: out of range,
 * or the device did not tell its total; nothing is changed. */
bool gmd_allocator_set_memory_fraction(gmd_allocator *allocator, double fraction, int device);

/* What is asked of the device for a request of `size` bytes that no cached block can serve. */
uint64_t gmd_allocator_device_request(size_t size);

/* Sets the peaks to the current values: torch.cuda.reset_peak_memory_stats(). */
void gmd_allocator_reset_peak_stats(gmd_allocator *allocator, int device);

/* Makes decisions independent of where the device places segments: the k-th segment of device 0
 * counts as lying at given[k] for the order of blocks (ties are broken by address) and for
 * gmd_allocator_walk, later ones as lying above all others in the order of their making. `given` is
 * copied; count 0 is fine. For comparing runs on devices that place differently. False: there are
 * segments already, or no host memory; nothing is changed. */
bool gmd_allocator_order_segments(gmd_allocator *allocator, int device, const uint64_t *given,
                                  size_t count);

/* False: device index out of range, or a struct_size that this version does not know. */
bool gmd_allocator_get_stats(gmd_allocator *allocator, int device, gmd_stats *out);
bool gmd_allocator_memory_stats(gmd_allocator *allocator, int device, gmd_stat_fn *emit,
                                void *context);

/* Visits every block in address order, under the allocator's lock: `visit` must not call back.
 * False: device index out of range, or no host memory. */
bool gmd_allocator_walk(gmd_allocator *allocator, int device, gmd_walk_fn *visit, void *context);

#endif
