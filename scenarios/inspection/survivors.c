/* survivors.c - the tensors that are alive and who holds them: rows out of a walk of the heap. */
#include "survivors.h"

#include "gmd_grow.h"
#include "heap_graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOBODY UINT32_MAX

typedef struct entry {
    uint32_t vertex; /* NO_VERTEX: nothing that the walk reached holds the block */
    uint32_t index;  /* in the order of the walk */
    uint32_t owner;  /* index of the entry that has the block; its own */
    uint64_t used;   /* of the owner's block */
    struct tensor *tensor;
    struct live_block *block; /* NULL: a tensor of no elements */
} entry;

typedef struct survey {
    gmd_inspection *out;
    const struct heap_graph *heap;
    entry *entries;
    uint32_t count, capacity;
    uint32_t *places; /* of each entry's row, by the order of the walk */
} survey;

static entry *add_entry(survey *s, uint32_t vertex, struct tensor *tensor, struct live_block *block)
{
    if (!GMD_GROW(&s->entries, &s->capacity, s->count + 1)) {
        s->out->no_memory = true;
        return NULL;
    }
    entry *added = &s->entries[s->count];
    *added = (entry){vertex, s->count, s->count, block ? block->used : 0, tensor, block};
    if (block && block->owner == NOBODY) {
        block->owner = s->count;
    } else if (block) {
        added->owner = block->owner;
    }
    s->count++;
    return added;
}

/* Tensors come first, so that the blocks that remain are those without a tensor. */
static void collect(survey *s, struct live_block *blocks)
{
    for (struct live_block *block = blocks; block; block = block->next) {
        block->owner = NOBODY;
    }
    for (uint32_t i = 0; i < s->heap->reached; i++) {
        const struct vertex *vertex = &s->heap->vertices[s->heap->order[i]];
        const struct thing *thing = vertex->kind == VERTEX_THING ? vertex->what : NULL;
        if (thing && thing->class == &tensor_class) {
            struct tensor *tensor = vertex->what;
            add_entry(s, s->heap->order[i], tensor, tensor->storage->seen);
        }
    }
    for (uint32_t i = 0; i < s->heap->reached; i++) {
        const struct vertex *vertex = &s->heap->vertices[s->heap->order[i]];
        struct storage *storage = vertex->kind == VERTEX_STORAGE ? vertex->what : NULL;
        struct live_block *block = storage ? storage->seen : NULL;
        if (block && block->owner == NOBODY) {
            add_entry(s, s->heap->order[i], NULL, block);
        }
    }
    for (struct live_block *block = blocks; block; block = block->next) {
        if (block->owner == NOBODY) {
            add_entry(s, NO_VERTEX, NULL, block);
        }
    }
}

/* By the size of the block; a block's tensors together, its owner first. */
static int by_block(const void *a, const void *b)
{
    const entry *left = a, *right = b;
    if (left->used != right->used) {
        return left->used < right->used ? 1 : -1;
    }
    if (left->owner != right->owner) {
        return left->owner < right->owner ? -1 : 1;
    }
    return left->index < right->index ? -1 : 1; /* the owner was found first */
}

/* --- paths ------------------------------------------------------------------------------- */

static void add_step(survey *s, gmd_tensor_row *row, gmd_step_kind kind, const char *text)
{
    gmd_inspection *out = s->out;
    if (out->step_count < GMD_INSPECT_STEP_MAX && row->step_count < GMD_INSPECT_PATH_MAX) {
        out->steps[out->step_count++] =
            (gmd_step){(uint32_t)kind, gmd_inspection_add_text(out, text)};
        row->step_count++;
    }
}

static void add_vertex_step(survey *s, gmd_tensor_row *row, const struct vertex *vertex)
{
    char text[96];
    if (vertex->parent == NO_VERTEX) {
        add_step(s, row, GMD_STEP_ROOT, vertex->name ? vertex->name : "?");
    } else if (vertex->reference.form != FORM_NONE) {
        add_step(s, row, vertex->reference.step, reference_text(&vertex->reference, text));
    }
}

/* The number of vertices from the root to `at`. */
static uint32_t length_of(const struct heap_graph *heap, uint32_t at)
{
    uint32_t length = 0;
    for (; at != NO_VERTEX; at = heap->vertices[at].parent) {
        length++;
    }
    return length;
}

/* Long paths keep both ends. */
static void add_path(survey *s, gmd_tensor_row *row, uint32_t vertex)
{
    enum { HEAD = GMD_INSPECT_PATH_MAX / 2, TAIL = GMD_INSPECT_PATH_MAX / 2 - 1 };
    uint32_t length = length_of(s->heap, vertex), chain[HEAD + TAIL];
    bool is_long = length > HEAD + TAIL;
    uint32_t kept = is_long ? HEAD + TAIL : length, position = length;
    for (uint32_t at = vertex; at != NO_VERTEX; at = s->heap->vertices[at].parent) {
        position--;
        if (!is_long || position < HEAD) {
            chain[position] = at;
        } else if (position >= length - TAIL) {
            chain[position - (length - kept)] = at;
        }
    }
    for (uint32_t i = 0; i < kept; i++) {
        if (is_long && i == HEAD) {
            char text[48];
            snprintf(text, sizeof text, "(%u more)", length - kept);
            add_step(s, row, GMD_STEP_SKIPPED, text);
        }
        add_vertex_step(s, row, &s->heap->vertices[chain[i]]);
    }
}

static gmd_tensor_holder holder_of(const struct heap_graph *heap, uint32_t at)
{
    bool by_graph = false, by_state = false, is_grad = false;
    if (at == NO_VERTEX) {
        return GMD_HELD_INSIDE;
    }
    for (; heap->vertices[at].parent != NO_VERTEX; at = heap->vertices[at].parent) {
        const struct reference *held = &heap->vertices[at].reference;
        by_graph |= held->step == GMD_STEP_NODE || held->step == GMD_STEP_SAVED;
        by_state |= held->form == FORM_STATE;
        is_grad |= held->form == FORM_DOT && strcmp(held->name, "grad") == 0;
    }
    switch (heap->vertices[at].root) {
    case ROOT_CYCLE:
        return GMD_HELD_BY_CYCLE;
    case ROOT_LIBRARY:
        return GMD_HELD_BY_LIBRARY;
    case ROOT_EXPRESSION:
        return GMD_HELD_INSIDE;
    default:
        return by_graph   ? GMD_HELD_BY_GRAPH
               : by_state ? GMD_HELD_BY_STATE
               : is_grad  ? GMD_HELD_AS_GRAD
                          : GMD_HELD_BY_NAME;
    }
}

/* --- rows -------------------------------------------------------------------------------- */

static void count_block(gmd_held *held, const struct live_block *block)
{
    held->blocks++;
    held->asked += block->storage->bytes;
    held->used += block->used;
}

static void count_owner(survey *s, const entry *each, gmd_tensor_holder holder)
{
    const struct live_block *block = each->block;
    if (each->owner != each->index || !block) {
        return;
    }
    count_block(&s->out->held[holder], block);
    if (block->used > block->storage->bytes) {
        bool is_small = block->used - block->storage->bytes < 512;
        count_block(is_small ? &s->out->small : &s->out->large, block);
    }
}

static void describe_elements(survey *s, gmd_tensor_row *row, const entry *each)
{
    char text[128];
    const struct shape *shape = each->tensor ? &each->tensor->shape : &each->block->shape;
    enum dtype dtype = each->tensor ? each->tensor->dtype : each->block->dtype;
    if (each->tensor || each->block->has_shape) {
        row->shape = gmd_inspection_add_text(s->out, shape_text(shape, text));
        row->dtype = gmd_inspection_add_text(s->out, dtype_name(dtype));
        row->element_bytes = shape_count(shape) * dtype_bytes(dtype);
    }
}

static void add_row(survey *s, const entry *each)
{
    gmd_tensor_holder holder = holder_of(s->heap, each->vertex);
    count_owner(s, each, holder);
    if (s->out->tensor_count == GMD_INSPECT_TENSOR_MAX) {
        s->out->tensors_dropped++;
        return;
    }
    gmd_tensor_row row = {.shares = GMD_INSPECT_NONE,
                          .first_step = s->out->step_count,
                          .holder = (uint32_t)holder,
                          .is_tensor = each->tensor != NULL};
    describe_elements(s, &row, each);
    if (each->owner != each->index) {
        row.shares = s->places[each->owner];
    }
    if (each->block) {
        row.line = each->block->line;
        row.category = (uint32_t)each->block->storage->category;
        row.asked = each->block->storage->bytes;
        row.used = each->block->used;
    }
    if (each->vertex == NO_VERTEX) {
        add_step(s, &row, GMD_STEP_ROOT, "(an operation under way)");
    } else {
        add_path(s, &row, each->vertex);
    }
    s->places[each->index] = s->out->tensor_count;
    s->out->tensors[s->out->tensor_count++] = row;
}

void survivors_write(struct binding *binding, struct live_block *blocks, gmd_inspection *out)
{
    struct heap_graph *heap = heap_graph_walk(binding);
    survey s = {.out = out, .heap = heap};
    out->no_memory |= !heap || heap->no_memory;
    if (!heap) {
        return;
    }
    collect(&s, blocks);
    s.places = calloc(s.count ? s.count : 1, sizeof *s.places);
    if (s.places && s.count > 0) {
        qsort(s.entries, s.count, sizeof *s.entries, by_block);
        for (uint32_t i = 0; i < s.count; i++) {
            add_row(&s, &s.entries[i]);
        }
    }
    out->no_memory |= !s.places;
    free(s.places);
    free(s.entries);
    heap_graph_free(heap);
}
