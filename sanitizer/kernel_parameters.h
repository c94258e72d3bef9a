/* kernel_parameters.h - which parameters a kernel has: where each lies and how long it is, asked of
 * CUDA once for each kernel. */
#ifndef KERNEL_PARAMETERS_H
#define KERNEL_PARAMETERS_H

#include "handle_table.h"
#include "kernel_trust.h"

#include <pthread.h>

typedef struct kernel_parameter {
    uint32_t offset, bytes;
} kernel_parameter;

typedef struct kernel_info kernel_info;

struct kernel_info { /* immutable; lives as long as the table */
    char *name;
    kernel_info *next;
    bool is_known; /* false: CUDA did not tell */
    kernel_trust trust;
    uint32_t count;
    kernel_parameter parameters[];
};

/* cuFuncGetParamInfo, cuKernelGetParamInfo; the runtime launches with handles of the latter's kind.
 * NULL: CUDA is older than 12.4. */
typedef int (*parameter_query)(void *function, size_t index, size_t *offset, size_t *bytes);

typedef struct kernel_table { /* zero-initialised but for the lock and the queries is empty */
    pthread_mutex_t lock;
    handle_table by_handle;
    kernel_info *first; /* all there are */
    parameter_query of_function, of_kernel;
} kernel_table;

void kernel_table_free(kernel_table *t);

/* `name` is what CUPTI calls the kernel, and copied. To be called below the launch: at a kernel's
 * first one the stack tells which library launches it. Any thread; NULL: the host has no memory. */
const kernel_info *kernel_table_get(kernel_table *t, void *function, const char *name);

/* Code was unloaded: handles may from now on mean other kernels. */
void kernel_table_forget(kernel_table *t);

#endif
