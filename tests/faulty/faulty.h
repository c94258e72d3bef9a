/* faulty.h - what the allocators in this folder share.
 *
 * Each is a small allocator in the design of a real one, correct as it stands, into which defects
 * that real allocators had can be switched by name: by the environment variable GMD_DEFECT or by
 * the setting `defect:NAME` (gmd_configure, `--conf`). They are the proof that gmd finds such
 * defects from the outside, and that it finds nothing where there is nothing. */
#ifndef FAULTY_H
#define FAULTY_H

#include "gmd_abi.h"
#include "gmd_cuda.h"

#include <stdbool.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))
#ifdef FAULTY_BARE /* built to be looked at from outside only */
#define OPTIONAL
#else
#define OPTIONAL EXPORT
#endif

#define FAULTY_DEVICES 16

/* Each allocator names its defects, in the order of its enum; ends with NULL, at most 64. */
EXPORT extern const char *const faulty_defects[];
extern uint64_t faulty_active; /* bit: the defect is switched on */

static inline bool faulty_is(int defect)
{
    return faulty_active >> defect & 1;
}

/* The ABI under test. */
EXPORT int gmd_configure(const char *conf, char *message, size_t message_size);
EXPORT void *gmd_malloc(size_t size, int device, cudaStream_t stream);
EXPORT void gmd_free(void *pointer, size_t size, int device, cudaStream_t stream);
OPTIONAL void gmd_empty_cache(void);
OPTIONAL void gmd_set_memory_fraction(double fraction, int device);
OPTIONAL int gmd_get_stats(int device, gmd_stats *out);

/* The current device is the thread's, and the caller's: made `device` for the time of a call. The
 * default stream means that of the current device, so that streams depend on it, too. */
typedef struct faulty_guard {
    int previous;
    bool is_other;
} faulty_guard;

faulty_guard faulty_enter_device(int device);
void faulty_leave_device(faulty_guard guard);

/* cudaMalloc on the current device; NULL: out of memory, and no error of its own is left. */
void *faulty_take(size_t size);

/* The host waits for the event; where that fails, for the current device. */
void faulty_wait(cudaEvent_t event);

/* How many bytes that fraction of the device's memory is. False: not known. */
bool faulty_limit(double fraction, int device, uint64_t *limit);

/* The figures of one device, counted as blocks and segments come and go. */
void faulty_count_alloc(gmd_stats *s, uint64_t bytes, uint64_t requested);
void faulty_count_free(gmd_stats *s, uint64_t bytes, uint64_t requested);
void faulty_count_segment(gmd_stats *s, uint64_t bytes);
void faulty_count_segment_freed(gmd_stats *s, uint64_t bytes);
/* Copies them out; figures that none of these allocators keeps become unknown. */
int faulty_give_stats(const gmd_stats *s, gmd_stats *out);

#endif
