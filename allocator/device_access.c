#include "device_access.h"

#include "validity.h"

#include "gmd_assert.h"

/* Heaps that do not share in the peaks were closed when they shared last, and stay it until they do
 * again: there may be thousands. */
void device_enter(device_allocator *d)
{
    pthread_mutex_lock(&d->lock);
    for (heap_statistics *h = d->stats.sharing; h; h = h->next) {
        heap_close(heap_of(h));
    }
    statistics_look(&d->stats);
}

void device_leave(device_allocator *d)
{
    GMD_ASSERT_VALID(device_due_violation(d));
    for (heap_statistics *h = d->stats.sharing; h; h = h->next) {
        heap_leave(heap_of(h));
    }
    pthread_mutex_unlock(&d->lock);
}
