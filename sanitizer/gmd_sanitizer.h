/* gmd_sanitizer.h - libgmd_sanitizer.so: between PyTorch's pluggable functions and
 * libgmd_allocator.so. It finds defects of the program that uses the memory: writes out of bounds,
 * writes to what was freed (docs/sanitizer.md).
 *
 * Sizes are bytes. Any thread may call. No function waits for a device but gmd_sanitizer_check and
 * gmd_sanitizer_finish; none leaves a CUDA error behind. */
#ifndef GMD_SANITIZER_H
#define GMD_SANITIZER_H

#include "gmd_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GMD_SANITIZER_EXPORT __attribute__((visibility("default")))

/* "TIER,KEY:VALUE,...", before the first request (docs/sanitizer.md has them); no CUDA call is made
 * before that. 0: accepted; else a message, and nothing is changed. */
GMD_SANITIZER_EXPORT int gmd_sanitizer_start(const char *options, char *message,
                                             size_t message_size);

/* Who tells stacks (gmd_set_stack_source), set with the first request: no CUDA call is made before
 * it, for a process may still be forked. */
GMD_SANITIZER_EXPORT void gmd_sanitizer_set_stack_source(gmd_stack_source *source, void *context);

/* Likewise, who keeps stacks itself: the first function gives the calling thread's a number (0: it
 * has none), the second writes a line FILE:LINE:FUNCTION for each frame of one, the innermost
 * first, and gives the bytes. The sanitizer does not ask the allocator for stacks then. Neither is
 * NULL; both are called from any thread, until the process ends. A stack that has a number keeps
 * its lines, which are the functions' own; `text` belongs to the sanitizer, and is not
 * terminated. */
GMD_SANITIZER_EXPORT void gmd_sanitizer_set_stacks(uint32_t (*keep)(void),
                                                   size_t (*text)(uint32_t stack, char *text,
                                                                  size_t size));

/* In place of the functions of gmd_abi.h. */
GMD_SANITIZER_EXPORT void *gmd_sanitizer_malloc(size_t size, int device, cudaStream_t stream);
GMD_SANITIZER_EXPORT void gmd_sanitizer_free(void *ptr, size_t size, int device,
                                             cudaStream_t stream);
GMD_SANITIZER_EXPORT void gmd_sanitizer_record_stream(void *ptr, cudaStream_t stream);
GMD_SANITIZER_EXPORT void gmd_sanitizer_empty_cache(void); /* what is held back goes back, too */
GMD_SANITIZER_EXPORT uint64_t gmd_sanitizer_block_size(int device, const void *ptr);

/* Requests go to one private pool more (1), or less (-1): a graph may be captured meanwhile. */
GMD_SANITIZER_EXPORT void gmd_sanitizer_pools(int change);

/* Bytes of a device that blocks have in mappings of their own, which are none of the allocator's
 * figures: now and at most, since the peak was reset. */
GMD_SANITIZER_EXPORT uint64_t gmd_sanitizer_mapped_bytes(int device, uint64_t *peak,
                                                         int resets_peak);

/* Whether launches are to return when their work is over (CUDA_LAUNCH_BLOCKING), which is the
 * caller's to see to before CUDA is initialised. */
GMD_SANITIZER_EXPORT int gmd_sanitizer_waits_for_launches(void);

/* Whether operators' uses are to be told, and one that is about to be queued (reads.h). */
GMD_SANITIZER_EXPORT int gmd_sanitizer_wants_reads(void);
GMD_SANITIZER_EXPORT void gmd_sanitizer_watch_use(const void *ptr, size_t size, cudaStream_t stream,
                                                  int is_read, int seeks_fresh);

/* Why requests are refused that memory is there for: the sanitizer could not start, or a finding is
 * to be raised. Gives each once; NULL: no reason. The text is the calling thread's, valid until its
 * next call. */
GMD_SANITIZER_EXPORT const char *gmd_sanitizer_error(void);

/* Verifies all that is live or held back, waits for the devices, and gives the findings so far. */
GMD_SANITIZER_EXPORT uint64_t gmd_sanitizer_check(void);

/* Likewise, and prints a summary. Later requests are the allocator's own. */
GMD_SANITIZER_EXPORT uint64_t gmd_sanitizer_finish(void);

#ifdef __cplusplus
}
#endif

#endif
