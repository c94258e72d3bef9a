/* gmd_fault_error.h - with which error a CUDA function fails where a fault does not say. Pure
 * functions. */
#ifndef GMD_FAULT_ERROR_H
#define GMD_FAULT_ERROR_H

#include <stdbool.h>

/* The error of `function`, in the numbers of its API; 0: it is not made to fail. With `memory_only`
 * only those fail that need memory. */
int gmd_fault_error_of(const char *function, bool memory_only);

/* Whether it makes a stream or the host wait, or records what is waited for. */
bool gmd_fault_is_wait(const char *function);

#endif
