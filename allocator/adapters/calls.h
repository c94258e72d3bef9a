/* calls.h - what an adapter's CUDA calls leave on the thread: the device that is current, no error
 * of CUDA's, and the text for gmd_last_error. */
#ifndef GMD_ADAPTER_CALLS_H
#define GMD_ADAPTER_CALLS_H

#include "gmd_cuda.h"

#include <stdbool.h>

/* Begins a call of the ABI: nothing has failed yet. */
void adapter_begin(void);

/* A refusal is an answer: the thread's CUDA error is cleared, and nothing noted. */
bool adapter_served(cudaError_t result);

/* Notes a failure for gmd_last_error, the first of a call; the thread's CUDA error is cleared.
 * True when there is none. */
bool adapter_succeeded(const char *function, cudaError_t result);

void adapter_say(const char *text); /* a failure that is none of CUDA's */
const char *adapter_error(void);    /* NULL: none */

/* Makes `device` current where it is not, and back. False: it cannot be. */
bool device_enter(int device, int *previous);
void device_leave(int device, int previous);

#endif
