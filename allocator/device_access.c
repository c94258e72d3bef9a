#include "device_access.h"

#include "validity.h"

#include "gmd_assert.h"

void device_enter(device_allocator *d)
{
    pthread_mutex_lock(&d->lock);
    for (heap *h = d->heaps; h; h = h->next_of_device) {
        heap_close(h);
    }
}

void device_leave(device_allocator *d)
{
    GMD_ASSERT_VALID(device_due_violation(d));
    for (heap *h = d->heaps; h; h = h->next_of_device) {
        heap_leave(h);
    }
    pthread_mutex_unlock(&d->lock);
}
