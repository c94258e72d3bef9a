#include "gmd_pool_book.h"

const char *gmd_pool_book_note(gmd_pool_book *book, const gmd_request *r)
{
    uint8_t *open = &book->open[r->device % GMD_MAX_DEVICES];
    uint32_t pool = r->pool % GMD_MAX_POOLS;
    uint32_t *holders = &book->holders[r->device % GMD_MAX_DEVICES][pool];
    bool is_open = *open == pool + 1;
    switch (r->op) {
    case GMD_OP_BEGIN_POOL:
        if (*open) {
            return "end_pool of the device's open pool before another begin_pool";
        }
        *open = (uint8_t)(pool + 1);
        ++*holders;
        return NULL;
    case GMD_OP_END_POOL:
        if (!is_open) {
            return "the pool that is open on the device";
        }
        *open = 0;
        return NULL;
    default:
        if (*holders <= is_open) {
            return is_open ? "end_pool before the last release_pool of an open pool"
                           : "a pool that was begun on the device and is not released yet";
        }
        --*holders;
        return NULL;
    }
}
