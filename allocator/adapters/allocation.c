#include "allocation.h"
#include "calls.h"

/* On the current device, which is `device`. */
static cudaError_t ask(const adapter_source *source, void **memory, size_t size, int device,
                       cudaStream_t stream)
{
    cudaError_t result = source->allocate(memory, size, stream);
    if (!adapter_served(result) && block_table_retry(device, source->free_again)) {
        result = source->allocate(memory, size, stream);
        adapter_served(result);
    }
    return result;
}

static void *serve(const adapter_source *source, size_t size, int device, cudaStream_t stream)
{
    int previous;
    void *memory = NULL;
    table_entry *b = block_table_prepare(size, device);
    if (!b) {
        adapter_say("gmd_malloc: no such device, or the host has no memory");
        return NULL;
    }
    if (!device_enter(device, &previous)) {
        block_table_drop(b);
        return NULL;
    }
    b->stream = stream;
    cudaError_t result = ask(source, &memory, size, device, stream);
    device_leave(device, previous);
    if (result == cudaSuccess) {
        block_table_enter(b, memory);
        return memory;
    }
    if (result == cudaErrorMemoryAllocation) {
        block_table_refuse(b);
    } else {
        adapter_succeeded(source->function, result);
        block_table_drop(b);
    }
    return NULL;
}

void *adapter_allocate(const adapter_source *source, size_t size, int device, cudaStream_t stream)
{
    adapter_begin();
    if (size == 0) {
        return NULL;
    }
    block_table_lock();
    void *memory = serve(source, size, device, stream);
    block_table_unlock();
    return memory;
}
