#include "device_limit.h"

#include "gmd_cuda_scope.h"

bool device_total_bytes(int device, uint64_t *total_bytes)
{
    size_t free_bytes = 0, total = 0;
    cuda_scope scope;
    if (!cuda_scope_enter(&scope, device)) {
        return false;
    }
    bool is_known = cuda_succeeded(cudaMemGetInfo(&free_bytes, &total));
    cuda_scope_leave(&scope);
    *total_bytes = total;
    return is_known;
}

void device_set_limit(device_allocator *d, uint64_t bytes)
{
    d->limit_bytes = bytes;
    d->is_limit_known = true;
    device_attend(d, ATTEND_AGES, d->settings->gc_threshold > 0 && bytes != UINT64_MAX);
}

void device_resolve_limit(device_allocator *d)
{
    uint64_t total;
    if (d->is_limit_known || !(d->settings->memory_fraction < 1)) {
        return;
    }
    if (device_total_bytes(d->device, &total)) {
        device_set_limit(d, (uint64_t)(d->settings->memory_fraction * (double)total));
    } else {
        d->limit_bytes = 0; /* nothing may be taken while nobody knows how much */
    }
}
