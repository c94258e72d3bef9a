/* allocation.h - gmd_malloc of the adapters for CUDA's own allocators. */
#ifndef GMD_ADAPTER_ALLOCATION_H
#define GMD_ADAPTER_ALLOCATION_H

#include "block_table.h"

typedef struct adapter_source {
    const char *function; /* the name of what allocates */
    cudaError_t (*allocate)(void **memory, size_t size, cudaStream_t stream);
    bool (*free_again)(table_entry *b); /* what the device did not take back before */
} adapter_source;

/* Memory from `source` on `device`. Where it is refused, what is kept of the device is offered to
 * it again, and the request made once more. NULL: out of memory, which is counted, or a failure,
 * which gmd_last_error has. Takes the table's lock. */
void *adapter_allocate(const adapter_source *source, size_t size, int device, cudaStream_t stream);

#endif
