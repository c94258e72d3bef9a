#include "pointer_tables.h"

#include <string.h>

bool pointer_tables_open(pointer_tables *t)
{
    return pthread_mutex_init(&t->lock, NULL) == 0;
}

static void drop(order *o, const pointer_table *table)
{
    for (uint32_t i = 0; i < table->count; i++) {
        order_block_drop(o, table->to[i]);
    }
    order_block_drop(o, table->block);
}

void pointer_tables_close(pointer_tables *t, order *o)
{
    for (size_t i = 0; i < TABLES_MOST; i++) {
        drop(o, &t->tables[i]);
    }
    pthread_mutex_destroy(&t->lock);
}

static pointer_table *find(pointer_tables *t, const order_block *block)
{
    for (size_t i = 0; i < TABLES_MOST; i++) {
        if (t->tables[i].block == block) {
            return &t->tables[i];
        }
    }
    return NULL;
}

/* Under the lock. Gives what was there. */
static pointer_table replace(pointer_tables *t, const pointer_table *table)
{
    pointer_table *at = find(t, table->block), before = {NULL};
    if (!at && table->count) {
        at = &t->tables[t->next++ % TABLES_MOST];
    }
    if (at) {
        before = *at;
        atomic_fetch_add(&t->count, (unsigned)(table->count != 0) - (before.count != 0));
        *at = table->count ? *table : (pointer_table){NULL};
    }
    return before;
}

void pointer_tables_write(pointer_tables *t, order *o, order_block *block, order_block *const *to,
                          uint32_t count)
{
    pointer_table table = {.block = block, .count = count};
    if (count == 0 && atomic_load(&t->count) == 0) {
        return;
    }
    if (count) {
        memcpy(table.to, to, count * sizeof *to);
        order_block_keep(block);
    }
    pthread_mutex_lock(&t->lock);
    pointer_table before = replace(t, &table);
    pthread_mutex_unlock(&t->lock);
    drop(o, &before);
}

uint32_t pointer_tables_read(pointer_tables *t, const order_block *block, order_block **to,
                             uint32_t room)
{
    if (atomic_load_explicit(&t->count, memory_order_relaxed) == 0) {
        return 0;
    }
    pthread_mutex_lock(&t->lock);
    const pointer_table *table = find(t, block);
    uint32_t count = !table ? 0 : table->count < room ? table->count : room;
    for (uint32_t i = 0; i < count; i++) {
        to[i] = order_block_keep(table->to[i]);
    }
    pthread_mutex_unlock(&t->lock);
    return count;
}
