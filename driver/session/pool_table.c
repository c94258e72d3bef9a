#include "pool_table.h"

void pool_table_clear(pool_table *p)
{
    if (p->is_used) {
        *p = (pool_table){.made = p->made};
    }
}

static const char *serials_violation(const pool_table *p, int device)
{
    for (uint32_t pool = 0; pool < GMD_MAX_POOLS; pool++) {
        uint32_t serial = p->serials[device][pool];
        if (p->state.holders[device][pool] && !serial) {
            return "a pool that is held has a serial number";
        }
        if (serial && (!pool_table_has_made(p, serial) || gmd_pool_number(serial) != pool)) {
            return "a serial number is that of a pool that was made";
        }
    }
    return NULL;
}

const char *pool_table_violation(const pool_table *p)
{
    const char *violation = p->is_used ? gmd_pool_state_violation(&p->state) : NULL;
    for (int device = 0; p->is_used && device < GMD_MAX_DEVICES && !violation; device++) {
        violation = serials_violation(p, device);
    }
    return violation;
}
