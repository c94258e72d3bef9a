#include "pool_table.h"

void pool_table_clear(pool_table *p)
{
    if (p->is_used) {
        *p = (pool_table){.made = p->made};
    }
}
