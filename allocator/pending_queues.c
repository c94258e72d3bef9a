#include "pending_queues.h"

event_queue *pending_next_queue(const pending *p, uint64_t order)
{
    const gmd_interval *next = gmd_intervals_after(&p->waiting, order);
    return next ? (event_queue *)(uintptr_t)next->value : NULL;
}

void pending_each(const pending *p, void (*visit)(void *context, block *b), void *context)
{
    uint64_t order = 0;
    for (const event_queue *q; (q = pending_next_queue(p, order)) != NULL; order = q->order) {
        for (const pending_event *e = q->first; e; e = e->next) {
            visit(context, e->block);
        }
    }
    for (block *b = p->deferred; b; b = b->right) {
        visit(context, b);
    }
}

const char *pending_violation(const pending *p)
{
    uint64_t count = 0, order = 0;
    for (const event_queue *q; (q = pending_next_queue(p, order)) != NULL; order = q->order) {
        if (!q->first) {
            return "a queue that is looked at has events";
        }
        for (const pending_event *e = q->first; e; e = e->next) {
            if (!e->event || !(e->block->set_and_state & BLOCK_PENDING)) {
                return "a queue has events, each of a pending block";
            }
            if (!e->next && e != q->last) {
                return "a queue knows its last event";
            }
            count++;
        }
    }
    for (const block *b = p->deferred; b; b = b->right) {
        if (!(b->set_and_state & BLOCK_PENDING)) {
            return "a deferred block is pending";
        }
    }
    return count == p->event_count ? NULL : "the events of all queues are counted";
}
