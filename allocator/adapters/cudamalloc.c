/* cudamalloc.c - libgmd_cudamalloc.so: cudaMalloc and cudaFree with the ABI of gmd_abi.h, nothing
 * in between. The baseline of all comparisons: no cache, no waste, slow. A memory fraction could
 * only be pretended, so there is none; cudaFree waits for the device, so there is no stream to
 * record. A block that cudaFree did not take is offered again. Sync: the table's lock. */
#define GMD_ABI_EXPORT __attribute__((visibility("default")))
#include "allocation.h"
#include "calls.h"
#include "gmd_abi.h"
#include "gmd_cuda.h"

static bool offer_again(table_entry *b)
{
    return adapter_served(cudaFree(b->memory));
}

static cudaError_t allocate(void **memory, size_t size, cudaStream_t stream)
{
    (void)stream;
    return cudaMalloc(memory, size);
}

void *gmd_malloc(size_t size, int device, cudaStream_t stream)
{
    static const adapter_source source = {"cudaMalloc", allocate, offer_again};
    return adapter_allocate(&source, size, device, stream);
}

void gmd_free(void *ptr, size_t size, int device, cudaStream_t stream)
{
    (void)size;
    (void)device;
    (void)stream;
    adapter_begin();
    if (!ptr) {
        return;
    }
    block_table_lock();
    table_entry *b = block_table_take(ptr);
    if (!b) {
        adapter_say("gmd_free: a free of what is not allocated (freed before, or never allocated)");
    } else if (adapter_succeeded("cudaFree", cudaFree(ptr))) {
        block_table_given_back(b);
    } else {
        block_table_keep(b);
    }
    block_table_unlock();
}

/* There is no cache, only what cudaFree did not take: anything else that is held after everything
 * was freed is a leak. */
void gmd_empty_cache(void)
{
    adapter_begin();
    block_table_lock();
    for (int device = 0; device < ADAPTER_DEVICES; device++) {
        block_table_retry(device, offer_again);
    }
    block_table_unlock();
}

int gmd_get_stats(int device, gmd_stats *out)
{
    block_table_lock();
    bool is_read = block_table_read(device, out);
    block_table_unlock();
    return is_read ? 0 : -1;
}

void gmd_reset_peak_stats(int device)
{
    block_table_lock();
    block_table_reset_peaks(device);
    block_table_unlock();
}

const char *gmd_last_error(void)
{
    return adapter_error();
}
