/* caching_joins.c - blocks of caching_pool.c that were freed while their streams were captured. At
 * the free it is noted which nodes of the graph the next work of each of these streams follows. As
 * soon as the next work of the block's own stream follows all of them, the block is free within the
 * capture. What a capture does not say is known when it is over. */
#include "caching_pool.h"

#include <stdlib.h>
#include <string.h>

typedef struct captured {
    unsigned long long id;
    const cudaGraphNode_t *nodes; /* that the next work of the stream follows */
    size_t count;
} captured;

static bool look(cudaStream_t stream, captured *c)
{
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    *c = (captured){0};
    if (cudaStreamGetCaptureInfo(stream, &status, &c->id, NULL, &c->nodes, NULL, &c->count) !=
        cudaSuccess) {
        cudaGetLastError();
        return false;
    }
    return status == cudaStreamCaptureStatusActive;
}

/* --- marks --------------------------------------------------------------------------------- */

void forget_joins(block *b)
{
    free(b->joins);
    b->joins = NULL;
    b->join_count = 0;
}

static bool add_joins(block *b, cudaStream_t stream)
{
    captured c;
    if (!look(stream, &c) || (b->capture && b->capture != c.id)) {
        return false;
    }
    cudaGraphNode_t *grown = realloc(b->joins, (b->join_count + c.count + 1) * sizeof *grown);
    if (!grown) {
        return false;
    }
    if (c.count) {
        memcpy(grown + b->join_count, c.nodes, c.count * sizeof *grown);
    }
    b->joins = grown;
    b->join_count += c.count;
    b->capture = c.id;
    return true;
}

void note_joins(block *b)
{
    uint32_t count = faulty_is(JOINS_OWN) ? 0 : b->recorded_count;
    b->capture = 0;
    bool is_noted = is_captured(b->stream) && add_joins(b, b->stream);
    for (uint32_t i = 0; i < count && is_noted; i++) {
        is_noted = add_joins(b, b->recorded[i]);
    }
    if (!is_noted) {
        forget_joins(b);
    }
}

/* --- order --------------------------------------------------------------------------------- */

typedef struct nodes {
    cudaGraphNode_t *list; /* each once */
    size_t count, capacity;
} nodes;

static bool has_node(const nodes *n, cudaGraphNode_t node)
{
    size_t i = 0;
    while (i < n->count && n->list[i] != node) {
        i++;
    }
    return i < n->count;
}

static void add_node(nodes *n, cudaGraphNode_t node)
{
    if (n->count == n->capacity) {
        size_t capacity = n->capacity ? n->capacity * 2 : 64;
        cudaGraphNode_t *grown = realloc(n->list, capacity * sizeof *grown);
        if (!grown) {
            return; /* what is not known is not followed */
        }
        n->list = grown;
        n->capacity = capacity;
    }
    if (!has_node(n, node)) {
        n->list[n->count++] = node;
    }
}

static void add_parents(nodes *n, cudaGraphNode_t node)
{
    size_t count = 0;
    if (cudaGraphNodeGetDependencies(node, NULL, NULL, &count) != cudaSuccess) {
        cudaGetLastError();
        return;
    }
    cudaGraphNode_t *parents = calloc(count + 1, sizeof *parents);
    cudaGraphEdgeData *edges = calloc(count + 1, sizeof *edges);
    bool is_known = parents && edges && count;
    if (is_known && cudaGraphNodeGetDependencies(node, parents, edges, &count) != cudaSuccess) {
        cudaGetLastError();
        is_known = false;
    }
    for (size_t i = 0; i < count && is_known; i++) {
        add_node(n, parents[i]);
    }
    free(parents);
    free(edges);
}

static bool is_joined(const block *b, const nodes *before)
{
    size_t i = 0;
    while (i < b->join_count && has_node(before, b->joins[i])) {
        i++;
    }
    return i == b->join_count;
}

/* All that the next work of the stream follows. */
static void find_before(nodes *n, const captured *c)
{
    for (size_t i = 0; i < c->count; i++) {
        add_node(n, c->nodes[i]);
    }
    for (size_t i = 0; i < n->count; i++) {
        add_parents(n, n->list[i]);
    }
}

void look_at_joins(pool *p, cudaStream_t stream)
{
    captured c;
    nodes before = {0};
    if (!p->deferred || !look(stream, &c)) {
        return;
    }
    find_before(&before, &c);
    for (block **link = &p->deferred; *link;) {
        block *b = *link;
        if (b->joins && b->stream == stream && b->capture == c.id && is_joined(b, &before)) {
            *link = b->next;
            b->is_deferred = false;
            forget_joins(b);
            free(b->recorded);
            b->recorded = NULL;
            b->recorded_count = 0;
            give_to_list(b);
        } else {
            link = &b->next;
        }
    }
    free(before.list);
}
