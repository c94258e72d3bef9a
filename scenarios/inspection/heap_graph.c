#include "heap_graph.h"

#include "gmd_collector.h"
#include "gmd_grow.h"
#include "gmd_hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COSTS          3                     /* of a reference: 0, 1, 2 */
#define CYCLE_SEARCHED 4096                  /* objects examined to find one cycle */
#define CYCLE_EFFORT   ((uint64_t)200000000) /* comparisons, to find all of them */

/* --- growing arrays and a table of pointers ---------------------------------------------- */

typedef struct numbers {
    uint32_t *items;
    uint32_t count, capacity;
} numbers;

static bool push(numbers *list, uint32_t number)
{
    if (!GMD_GROW(&list->items, &list->capacity, list->count + 1)) {
        return false;
    }
    list->items[list->count++] = number;
    return true;
}

typedef struct walk {
    struct heap_graph heap; /* first: what is handed out */
    uint32_t capacity;
    uint32_t *slots; /* open addressing: index + 1 of a vertex by its address */
    uint32_t slot_count;
    numbers queues[COSTS]; /* of distance d, d + 1, d + 2, in turn */
    uint32_t from;         /* the vertex whose references are visited */
    numbers order;
    uint64_t effort; /* spent on cycles */
} walk;

static uint32_t slot_of(const walk *w, const void *what)
{
    uint64_t mixed = gmd_hash_pointer(what);
    uint32_t at = (uint32_t)(mixed >> 32) & (w->slot_count - 1);
    while (w->slots[at] && w->heap.vertices[w->slots[at] - 1].what != what) {
        at = (at + 1) & (w->slot_count - 1);
    }
    return at;
}

static bool grow_slots(walk *w)
{
    uint32_t count = w->slot_count ? 2 * w->slot_count : 1024;
    uint32_t *slots = calloc(count, sizeof *slots);
    if (!slots) {
        return false;
    }
    free(w->slots);
    w->slots = slots;
    w->slot_count = count;
    for (uint32_t i = 0; i < w->heap.count; i++) {
        w->slots[slot_of(w, w->heap.vertices[i].what)] = i + 1;
    }
    return true;
}

/* The vertex of `what`, new or known; NO_VERTEX: no memory. */
static uint32_t vertex_of(walk *w, void *what, enum vertex_kind kind)
{
    if (2 * w->heap.count >= w->slot_count && !grow_slots(w)) {
        w->heap.no_memory = true;
        return NO_VERTEX;
    }
    uint32_t slot = slot_of(w, what);
    if (w->slots[slot]) {
        return w->slots[slot] - 1;
    }
    if (!GMD_GROW(&w->heap.vertices, &w->capacity, w->heap.count + 1)) {
        w->heap.no_memory = true;
        return NO_VERTEX;
    }
    w->heap.vertices[w->heap.count] =
        (struct vertex){.what = what, .kind = kind, .parent = NO_VERTEX, .distance = INT32_MAX};
    w->slots[slot] = ++w->heap.count;
    return w->heap.count - 1;
}

static bool is_known(const walk *w, const void *what)
{
    return w->slot_count > 0 && w->slots[slot_of(w, what)] != 0;
}

/* --- breadth first, with references that cost 0, 1 or 2 ---------------------------------- */

static void enqueue(walk *w, uint32_t vertex, int distance)
{
    if (!push(&w->queues[distance % COSTS], vertex)) {
        w->heap.no_memory = true;
    }
}

static void reach(void *context, const struct reference *reference)
{
    walk *w = context;
    uint32_t to = vertex_of(w, reference->to, reference->kind);
    if (to == NO_VERTEX) {
        return;
    }
    int distance = w->heap.vertices[w->from].distance + reference->cost;
    struct vertex *vertex = &w->heap.vertices[to];
    if (!vertex->is_done && distance < vertex->distance) {
        vertex->distance = distance;
        vertex->parent = w->from;
        vertex->reference = *reference;
        enqueue(w, to, distance);
    }
}

/* A vertex may be in two queues; the nearer one counts. A queue grows while it is processed. */
static void spread(walk *w)
{
    int idle = 0;
    for (int distance = 0; idle < COSTS && !w->heap.no_memory; distance++) {
        numbers *queue = &w->queues[distance % COSTS];
        idle = queue->count > 0 ? 0 : idle + 1;
        for (uint32_t i = 0; i < queue->count && !w->heap.no_memory; i++) {
            uint32_t at = queue->items[i];
            struct vertex *vertex = &w->heap.vertices[at];
            if (vertex->is_done || vertex->distance != distance) {
                continue;
            }
            vertex->is_done = true;
            w->from = at;
            w->heap.no_memory |= !push(&w->order, at);
            references_each(vertex->kind, vertex->what, reach, w);
        }
        queue->count = 0;
    }
}

static void add_root(walk *w, void *what, enum vertex_kind kind, enum root_kind root,
                     const char *name, int distance)
{
    uint32_t at = is_known(w, what) ? NO_VERTEX : vertex_of(w, what, kind);
    if (at == NO_VERTEX) {
        return;
    }
    struct vertex *vertex = &w->heap.vertices[at];
    vertex->distance = distance;
    vertex->root = root;
    vertex->name = strdup(name);
    w->heap.no_memory |= !vertex->name;
    enqueue(w, at, distance);
}

static void add_variable(void *context, const char *name, bool is_hold, struct thing *thing)
{
    if (name) {
        add_root(context, thing, VERTEX_THING, ROOT_VARIABLE, name, 0);
    } else if (is_hold) {
        add_root(context, thing, VERTEX_THING, ROOT_VARIABLE, "(hold)", 1);
    } else {
        add_root(context, thing, VERTEX_THING, ROOT_EXPRESSION, "(expression)", 1);
    }
}

/* --- what only cycles keep --------------------------------------------------------------- */

typedef struct step_back { /* how a container was found */
    struct thing *thing;
    uint32_t parent;
    struct reference reference;
} step_back;

typedef struct cycle_search {
    walk *known;
    struct thing *start;
    step_back *found;
    uint32_t count, from;
    bool is_closed;
    struct reference closing;
} cycle_search;

static void look_for_start(void *context, const struct reference *reference)
{
    cycle_search *search = context;
    struct thing *thing = reference->to;
    if (search->is_closed || reference->kind != VERTEX_THING || !thing->class->traverse) {
        return;
    }
    if (thing == search->start) {
        search->is_closed = true;
        search->closing = *reference;
        return;
    }
    search->known->effort += search->count;
    for (uint32_t i = 0; i < search->count; i++) {
        if (search->found[i].thing == thing) {
            return;
        }
    }
    if (search->count < CYCLE_SEARCHED && !is_known(search->known, thing)) {
        search->found[search->count++] = (step_back){thing, search->from, *reference};
    }
}

/* "(cycle object.other.other)": what leads from the object back to itself. */
static void name_cycle(const cycle_search *search, char *name, size_t size)
{
    uint32_t chain[CYCLE_SEARCHED], length = 0;
    char text[96];
    for (uint32_t at = search->from; at != 0; at = search->found[at].parent) {
        chain[length++] = at;
    }
    size_t used = (size_t)snprintf(name, size, "(cycle %s", search->start->class->name);
    while (length > 0 && used + sizeof text + 8 < size) {
        const step_back *step = &search->found[chain[--length]];
        used += (size_t)snprintf(name + used, size - used, "%s",
                                 reference_text(&step->reference, text));
    }
    snprintf(name + used, size - used, "%s%s)", length > 0 ? "..." : "",
             reference_text(&search->closing, text));
}

/* Finds the shortest way from the container back to itself through what is not reached yet. */
static bool find_cycle(walk *w, struct thing *start, char *name, size_t size)
{
    cycle_search search = {.known = w, .start = start};
    search.found = calloc(CYCLE_SEARCHED, sizeof *search.found);
    if (!search.found) {
        return false;
    }
    search.found[search.count++] = (step_back){.thing = start};
    while (search.from < search.count && w->effort < CYCLE_EFFORT) {
        references_each(VERTEX_THING, search.found[search.from].thing, look_for_start, &search);
        if (search.is_closed) {
            name_cycle(&search, name, size);
            break;
        }
        search.from++;
    }
    free(search.found);
    return search.is_closed;
}

static void add_cycle(void *context, struct thing *thing)
{
    walk *w = context;
    char name[512];
    if (!is_known(w, thing) && find_cycle(w, thing, name, sizeof name)) {
        add_root(w, thing, VERTEX_THING, ROOT_CYCLE, name, 0);
        spread(w);
    }
}

/* Held by a cycle that the limited search did not find. */
static void add_left_over(void *context, struct thing *thing)
{
    walk *w = context;
    char name[64];
    if (!is_known(w, thing)) {
        snprintf(name, sizeof name, "(%.40s)", thing->class->name);
        add_root(w, thing, VERTEX_THING, ROOT_CYCLE, name, 0);
        spread(w);
    }
}

/* --- all of it --------------------------------------------------------------------------- */

struct heap_graph *heap_graph_walk(struct binding *binding)
{
    walk *w = calloc(1, sizeof *w);
    if (!w) {
        return NULL;
    }
    binding_roots(binding, add_variable, w);
    spread(w);
    for (struct storage *each = binding->engine->workspaces; each; each = each->next) {
        add_root(w, each, VERTEX_STORAGE, ROOT_LIBRARY, "(workspace of cuBLAS)", 0);
    }
    for (int i = 0; i < 2 && binding->engine->captures.random_state[i]; i++) {
        add_root(w, binding->engine->captures.random_state[i], VERTEX_STORAGE, ROOT_LIBRARY,
                 "(random numbers of CUDA graphs)", 0);
    }
    spread(w);
    collector_each(binding->engine, add_cycle, w);
    collector_each(binding->engine, add_left_over, w);
    for (int i = 0; i < COSTS; i++) {
        free(w->queues[i].items);
    }
    free(w->slots);
    w->heap.order = w->order.items;
    w->heap.reached = w->order.count;
    return &w->heap;
}

void heap_graph_free(struct heap_graph *heap)
{
    if (heap) {
        for (uint32_t i = 0; i < heap->count; i++) {
            free(heap->vertices[i].name);
        }
        free(heap->order);
        free(heap->vertices);
        free(heap);
    }
}
