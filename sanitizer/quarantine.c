#include "quarantine.h"

#include <stddef.h>

void quarantine_add(quarantine *q, guarded_block *block)
{
    block->next = NULL;
    if (q->youngest) {
        q->youngest->next = block;
    } else {
        q->oldest = block;
    }
    q->youngest = block;
    q->bytes += block->total;
    q->count++;
}

guarded_block *quarantine_take_beyond(quarantine *q, uint64_t bytes, uint32_t count)
{
    guarded_block *block = q->oldest;
    if (!block || (q->bytes <= bytes && q->count <= count)) {
        return NULL;
    }
    q->oldest = block->next;
    q->youngest = block->next ? q->youngest : NULL;
    q->bytes -= block->total;
    q->count--;
    return block;
}
