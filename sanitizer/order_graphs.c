/* Captures: work that is queued on streams that are captured, and the graphs that become of it. */
#include "gmd_grow.h"
#include "order_state.h"

#include <stdlib.h>

void order_drop_uses(order *o, graph_uses *uses)
{
    if (!uses || --uses->references) {
        return;
    }
    for (uint32_t i = 0; i < uses->count; i++) {
        order_drop_block(o, uses->list[i].block);
    }
    free(uses->list);
    free(uses);
}

static void put_graph(order *o, handle_table *table, uint64_t key, graph_uses *uses)
{
    graph_uses *before = key ? handle_table_remove(table, key) : NULL;
    order_drop_uses(o, before);
    if (!key || !uses) {
        return;
    }
    if (handle_table_set(table, key, uses)) {
        uses->references++;
    } else {
        o->counts.dropped++;
    }
}

static void free_table(order *o, handle_table *table)
{
    for (uint32_t i = 0; i < table->capacity; i++) {
        if (table->rows[i].key) {
            order_drop_uses(o, table->rows[i].value);
        }
    }
    handle_table_free(table);
}

/* --- captures ---------------------------------------------------------------------------- */

static void free_capture(order *o, capture *c)
{
    for (uint32_t i = 0; i < c->count; i++) {
        stream_clocks_end_captured(&o->clocks, c->joined[i]->captured);
        c->joined[i]->captured = NULL;
    }
    order_drop_uses(o, c->uses);
    atomic_fetch_sub(&o->captures_now, 1);
    free(c->joined);
    free(c);
}

stream_clock *order_capture_join(order *o, capture *c, stream_clock *s)
{
    if (s->captured) {
        return s->captured;
    }
    if (!GMD_GROW(&c->joined, &c->capacity, c->count + 1)) {
        return NULL;
    }
    s->captured = stream_clocks_create_captured(&o->clocks, s, c);
    if (s->captured) {
        c->joined[c->count++] = s;
    }
    return s->captured;
}

static capture *create_capture(order *o, stream_clock *origin)
{
    capture *c = calloc(1, sizeof *c);
    if (!c) {
        return NULL;
    }
    c->number = ++o->captures;
    atomic_fetch_add(&o->captures_now, 1);
    c->origin = origin;
    c->uses = calloc(1, sizeof *c->uses);
    if (c->uses) {
        c->uses->references = 1;
    }
    if (!c->uses || !order_capture_join(o, c, origin)) {
        free_capture(o, c);
        return NULL;
    }
    return c;
}

/* Under captures that alternate a block may be listed twice, which does no harm. */
void order_capture_use(order *o, capture *c, order_block *b, bool is_certain, const char *what)
{
    graph_uses *uses = c->uses;
    if (b->used_by_capture == c->number) {
        graph_use *use = &uses->list[b->use_index];
        if (is_certain && !use->is_certain) {
            use->is_certain = true;
            use->what = what;
        }
        return;
    }
    if (!GMD_GROW(&uses->list, &uses->capacity, uses->count + 1)) {
        o->counts.dropped++;
        return;
    }
    b->used_by_capture = c->number;
    b->use_index = uses->count;
    uses->list[uses->count++] =
        (graph_use){.block = order_keep_block(b), .what = what, .is_certain = is_certain};
}

/* --- what order.c locks ------------------------------------------------------------------ */

void order_begin_capture(order *o, order_stream stream)
{
    stream_clock *s = stream_clocks_get(&o->clocks, stream);
    if (!s || s->captured || !create_capture(o, s)) {
        o->counts.dropped += !s || !s->captured;
    }
}

void order_end_capture(order *o, order_stream stream, uint64_t graph)
{
    stream_clock *s = stream_clocks_find(&o->clocks, stream);
    if (!s || !s->captured) {
        return;
    }
    capture *c = s->captured->capture;
    if (c->origin == s || !graph) {
        put_graph(o, &o->graphs, graph, c->uses);
        free_capture(o, c);
    }
}

void order_instantiate(order *o, uint64_t graph, uint64_t exec)
{
    put_graph(o, &o->execs, exec, handle_table_get(&o->graphs, graph));
}

void order_drop_graph(order *o, uint64_t graph)
{
    put_graph(o, &o->graphs, graph, NULL);
}

void order_drop_exec(order *o, uint64_t exec)
{
    put_graph(o, &o->execs, exec, NULL);
}

void order_launch_graph(order *o, uint64_t exec, stream_clock *s, uint64_t place)
{
    const graph_uses *uses = handle_table_get(&o->execs, exec);
    for (uint32_t i = 0; uses && i < uses->count; i++) {
        const graph_use *use = &uses->list[i];
        order_work work = {.what = use->what, .place = place, .number = o->counts.works};
        o->counts.uses++;
        if (use->block->is_freed) {
            order_say_used_after_free(o, s, use->block, use->is_certain, &work);
        } else {
            order_use_block(o, s, use->block, use->is_certain, &work);
        }
    }
}

void order_graphs_free(order *o)
{
    for (uint32_t i = 0; i < o->clocks.count; i++) {
        stream_clock *s = o->clocks.all[i];
        if (s->captured && s->captured->capture->origin == s) {
            free_capture(o, s->captured->capture);
        }
    }
    free_table(o, &o->graphs);
    free_table(o, &o->execs);
}
