/* gmd_pool_book.h - which private pools are open and held where, after each request: what a program
 * may ask next. One for all who make requests or carry them out.
 *
 * A pool is its name and a device. Of one device at most one pool is open at a time; each begin
 * holds it once more, and a release takes one hold back. An open pool keeps one. */
#ifndef GMD_POOL_BOOK_H
#define GMD_POOL_BOOK_H

#include "gmd_trace.h"

typedef struct gmd_pool_book {     /* zero-initialised: there is none */
    uint8_t open[GMD_MAX_DEVICES]; /* 1 + the pool; 0: none */
    uint32_t holders[GMD_MAX_DEVICES][GMD_MAX_POOLS];
} gmd_pool_book;

/* Notes a BEGIN_POOL, END_POOL or RELEASE_POOL. NULL: done; else what would have to be there
 * instead, and nothing changed. */
const char *gmd_pool_book_note(gmd_pool_book *book, const gmd_request *request);

static inline bool gmd_op_is_on_pool(uint8_t op)
{
    return op >= GMD_OP_BEGIN_POOL && op <= GMD_OP_RELEASE_POOL;
}

#endif
