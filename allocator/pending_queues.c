#include "pending_queues.h"

void pending_each(const pending *p, void (*visit)(void *context, block *b), void *context)
{
    for (const event_queue *q = p->queues; q; q = q->next) {
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
    uint64_t count = 0;
    for (const event_queue *q = p->queues; q; q = q->next) {
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
