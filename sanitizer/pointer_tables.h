/* pointer_tables.h - blocks that the host wrote addresses of other blocks into: the arrays of
 * batched kernels. What a kernel is given such a table of, it may use. The latest tables are kept.
 * Thread safety: any thread. */
#ifndef POINTER_TABLES_H
#define POINTER_TABLES_H

#include "order.h"

#include <pthread.h>
#include <stdatomic.h>

enum { TABLES_MOST = 64, TABLE_POINTERS_MOST = 32 };

typedef struct pointer_table {
    order_block *block; /* with a reference, as those that it leads to; NULL: none */
    uint32_t count;
    order_block *to[TABLE_POINTERS_MOST];
} pointer_table;

typedef struct pointer_tables {
    pthread_mutex_t lock;
    atomic_uint count; /* of tables: without any, nothing is looked up */
    uint32_t next;
    pointer_table tables[TABLES_MOST];
} pointer_tables;

/* Zero-initialised is empty, but for the lock. */
bool pointer_tables_open(pointer_tables *t);
void pointer_tables_close(pointer_tables *t, order *o);

/* The host writes to `block`; what it wrote leads to these blocks, maybe none: at most
 * TABLE_POINTERS_MOST, whose references become the table's. */
void pointer_tables_write(pointer_tables *t, order *o, order_block *block, order_block *const *to,
                          uint32_t count);

/* What `block` leads to: at most `room`, each with a reference of the caller's. */
uint32_t pointer_tables_read(pointer_tables *t, const order_block *block, order_block **to,
                             uint32_t room);

#endif
