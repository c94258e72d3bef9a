/* books.h - what the adapters for CUDA's own allocators share: the statistics that can be kept from
 * outside, the thread's current device, and the text of an error. */
#ifndef GMD_BOOKS_H
#define GMD_BOOKS_H

#include "gmd_abi.h"
#include "gmd_cuda.h"

#include <stdbool.h>

enum { ADAPTER_DEVICES = 64 };

/* Each block counts with the size that was asked for, from its allocation to its free. */
void books_alloc(int device, size_t size, bool is_served);
void books_free(int device, size_t size);
void books_reset_peaks(int device);
bool books_read(int device, gmd_stats *out); /* reserved: what is allocated */

/* Makes `device` current where it is not, and back. False: it cannot be; the error is kept. */
bool device_enter(int device, int *previous);
void device_leave(int device, int previous);

/* The text for gmd_last_error of this thread: of its latest call, which begins with either of
 * device_enter and adapter_begin. */
void adapter_begin(void);
void adapter_failed(const char *function, cudaError_t result);
const char *adapter_error(void); /* NULL: none */

#endif
