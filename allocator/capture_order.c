#include "capture_order.h"

#include "gmd_cuda_scope.h"
#include "heap.h"
#include "pending_queues.h"

#include "gmd_grow.h"

#include <stdlib.h>
#include <string.h>

/* --- what CUDA says of a capture ------------------------------------------------------------- */

typedef struct capture_now {
    unsigned long long id;
    const cudaGraphNode_t *nodes; /* that the stream's next work follows; valid until the next call
                                     about the stream */
    size_t count;
} capture_now;

/* False: the stream is not captured. */
static bool look_at(cudaStream_t stream, capture_now *now)
{
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    return cuda_succeeded(cudaStreamGetCaptureInfo(stream, &status, &now->id, NULL, &now->nodes,
                                                   NULL, &now->count)) &&
           status == cudaStreamCaptureStatusActive;
}

/* --- marks ----------------------------------------------------------------------------------- */

/* False: the stream is not captured, is of another capture, or there is no host memory. */
static bool add_marks(capture_marks **marks, cudaStream_t stream)
{
    capture_now now = {0};
    capture_marks *m = *marks;
    if (!look_at(stream, &now) || (m && m->capture != now.id)) {
        return false;
    }
    size_t count = m ? m->count : 0;
    m = realloc(m, sizeof *m + (count + now.count) * sizeof *m->nodes);
    if (!m) {
        return false;
    }
    if (now.count) {
        memcpy(m->nodes + count, now.nodes, now.count * sizeof *m->nodes);
    }
    m->capture = now.id;
    m->count = count + now.count;
    *marks = m;
    return true;
}

void capture_order_begin(block *b, cudaStream_t own)
{
    capture_now now = {0};
    block_detail_of(b)->capture = look_at(own, &now) ? now.id : 0;
}

void capture_order_mark(capture_order *o, block *b, cudaStream_t own)
{
    capture_marks *m = NULL;
    bool is_marked = add_marks(&m, own) && m->capture == block_detail_of(b)->capture;
    for (const stream_use *u = block_detail_of(b)->uses; u && is_marked; u = u->next) {
        is_marked = add_marks(&m, u->by->stream);
    }
    if (!is_marked) {
        free(m);
        return;
    }
    m->of = b;
    m->next = o->marks;
    o->marks = m;
}

static void drop(capture_marks **link)
{
    capture_marks *m = *link;
    *link = m->next;
    free(m);
}

void capture_order_forget(capture_order *o, const block *b)
{
    capture_marks **link = &o->marks;
    while (*link && (*link)->of != b) {
        link = &(*link)->next;
    }
    if (*link) {
        drop(link);
    }
}

/* --- order ----------------------------------------------------------------------------------- */

static bool is_before(const capture_order *o, cudaGraphNode_t node)
{
    const gmd_interval *found = gmd_intervals_after(&o->before, (uintptr_t)node);
    return found && found->address == (uintptr_t)node;
}

static bool push(capture_order *o, const cudaGraphNode_t *nodes, size_t count)
{
    if (!GMD_GROW(&o->left, &o->left_capacity, o->left_count + count)) {
        return false;
    }
    if (count) {
        memcpy(o->left + o->left_count, nodes, count * sizeof *nodes);
    }
    o->left_count += count;
    return true;
}

/* What the node waits for the end of is to be looked at, too: not what it may overlap, as behind a
 * programmatic edge. Without a place for the edges CUDA fails where there is such a one
 * (cudaErrorLossyQuery), and nothing would be known. */
static bool push_parents(capture_order *o, cudaGraphNode_t node)
{
    static const cudaGraphEdgeData whole;
    size_t count = 0;
    if (!cuda_succeeded(cudaGraphNodeGetDependencies(node, NULL, NULL, &count)) ||
        !GMD_GROW(&o->left, &o->left_capacity, o->left_count + count) ||
        !GMD_GROW(&o->edges, &o->edge_capacity, count)) {
        return false;
    }
    if (count && !cuda_succeeded(cudaGraphNodeGetDependencies(node, o->left + o->left_count,
                                                              o->edges, &count))) {
        return false;
    }
    cudaGraphNode_t *parents = o->left + o->left_count;
    for (size_t i = 0; i < count; i++) {
        if (memcmp(&o->edges[i], &whole, sizeof whole) == 0) {
            *parents++ = o->left[o->left_count + i];
        }
    }
    o->left_count = (size_t)(parents - o->left);
    return true;
}

static void start_anew(capture_order *o)
{
    gmd_intervals_free(&o->before);
    o->latest_count = 0;
}

static void note_met(const capture_order *o, cudaGraphNode_t node, bool *met)
{
    for (size_t i = 0; i < o->latest_count; i++) {
        met[i] = met[i] || o->latest[i] == node;
    }
}

/* From the nodes in `left` to the first ones, but for what is known already. `met`: which of
 * `latest` were come upon. */
static bool walk_back(capture_order *o, bool *met)
{
    while (o->left_count) {
        cudaGraphNode_t node = o->left[--o->left_count];
        if (is_before(o, node)) {
            note_met(o, node, met);
            continue;
        }
        bool has_room = gmd_intervals_insert(&o->before, (uintptr_t)node, (uintptr_t)node + 1, 0);
        if (!has_room || !push_parents(o, node)) {
            return false;
        }
    }
    return true;
}

/* The nodes that were known go on to be followed by all: else it is found out anew. */
static bool extend(capture_order *o, const capture_now *now)
{
    bool *met = calloc(o->latest_count + 1, sizeof *met);
    o->left_count = 0;
    bool is_known = met && push(o, now->nodes, now->count) && walk_back(o, met);
    for (size_t i = 0; i < o->latest_count && is_known; i++) {
        is_known = met[i];
    }
    free(met);
    return is_known;
}

static bool keep_latest(capture_order *o, const capture_now *now)
{
    if (!GMD_GROW(&o->latest, &o->latest_capacity, now->count)) {
        return false;
    }
    if (now->count) {
        memcpy(o->latest, now->nodes, now->count * sizeof *now->nodes);
    }
    o->latest_count = now->count;
    return true;
}

/* False: it is not known what the stream's next work follows. */
static bool find_order(capture_order *o, cudaStream_t stream)
{
    capture_now now = {0};
    if (!look_at(stream, &now)) {
        return false;
    }
    if (o->capture != now.id || o->stream != stream) {
        start_anew(o);
        o->capture = now.id;
        o->stream = stream;
    }
    if (!extend(o, &now)) {
        start_anew(o);
        if (!extend(o, &now)) {
            start_anew(o);
            return false;
        }
    }
    if (!keep_latest(o, &now)) {
        start_anew(o);
        return false;
    }
    return true;
}

static bool is_free_now(const capture_order *o, const capture_marks *m)
{
    size_t i = 0;
    while (i < m->count && is_before(o, m->nodes[i])) {
        i++;
    }
    return i == m->count;
}

block *capture_order_take(capture_order *o, cudaStream_t stream)
{
    bool is_known = false;
    for (capture_marks **link = &o->marks; *link; link = &(*link)->next) {
        const capture_marks *m = *link;
        block *b = m->of;
        if (block_set(b)->heap->stream != stream) {
            continue;
        }
        if (!is_known && !(is_known = find_order(o, stream))) {
            return NULL;
        }
        if (m->capture == o->capture && is_free_now(o, m)) {
            drop(link);
            return b;
        }
    }
    return NULL;
}

void capture_order_release(capture_order *o)
{
    while (o->marks) {
        drop(&o->marks);
    }
    gmd_intervals_free(&o->before);
    free(o->latest);
    free(o->left);
    free(o->edges);
    *o = (capture_order){0};
}
