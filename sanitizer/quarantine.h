/* quarantine.h - freed blocks of one device that are held back, the oldest first. Sync: the
 * owner's. */
#ifndef GMD_QUARANTINE_H
#define GMD_QUARANTINE_H

#include "guarded_block.h"

/* Zero-initialised is empty. It does not own the blocks. */
typedef struct quarantine {
    guarded_block *oldest, *youngest;
    uint64_t bytes; /* of their memory */
    uint32_t count;
} quarantine;

void quarantine_add(quarantine *q, guarded_block *block);

/* The oldest one, which is in no more, where there are more than these bytes or blocks; NULL: no
 * more than that are there. */
guarded_block *quarantine_take_beyond(quarantine *q, uint64_t bytes, uint32_t count);

#endif
