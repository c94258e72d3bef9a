#include "private_pools.h"

#include "history.h"
#include "segments.h"

#include "gmd_assert.h"

#include <stdlib.h>
#include <string.h>

static bool is_same(const uint64_t a[2], const uint64_t b[2])
{
    return a[0] == b[0] && a[1] == b[1];
}

pool *private_pools_find(device_allocator *d, const uint64_t id[2])
{
    pool *p = d->default_pool.next;
    while (p && !is_same(p->id, id)) {
        p = p->next;
    }
    return p;
}

/* The pool of that name, made where there is none; NULL: no host memory. */
static pool *hold_pool(device_allocator *d, const uint64_t id[2])
{
    pool *p = private_pools_find(d, id);
    if (!p && (p = calloc(1, sizeof *p))) {
        *p = (pool){.next = d->default_pool.next, .id = {id[0], id[1]}};
        d->default_pool.next = p;
    }
    if (p) {
        p->holders++;
    }
    return p;
}

pool *private_pools_route(device_allocator *d, cudaStream_t stream)
{
    for (route *r = d->routes; r; r = r->next) {
        if (!r->accepts || r->accepts(r->context, stream)) {
            return r->to;
        }
    }
    return &d->default_pool;
}

bool private_pools_begin(device_allocator *d, const uint64_t id[2], gmd_stream_filter *accepts,
                         void *context)
{
    for (const route *made = d->routes; made; made = made->next) {
        if (is_same(made->to->id, id)) {
            return false;
        }
    }
    const pool *known = private_pools_find(d, id);
    if (known && known->memory.allocate && d->settings->expandable_segments) {
        return false;
    }
    route *r = calloc(1, sizeof *r);
    pool *p = r ? hold_pool(d, id) : NULL;
    if (!p) {
        free(r);
        return false;
    }
    *r = (route){.next = d->routes, .to = p, .accepts = accepts, .context = context};
    d->routes = r; /* the latest is asked first: of nested pools the innermost gets the request */
    device_attend(d, ATTEND_ROUTES, true);
    return true;
}

bool private_pools_end(device_allocator *d, const uint64_t id[2], void **context)
{
    for (route **link = &d->routes; *link; link = &(*link)->next) {
        route *r = *link;
        if (is_same(r->to->id, id)) {
            *link = r->next;
            *context = r->context;
            free(r);
            device_attend(d, ATTEND_ROUTES, d->routes != NULL);
            return true;
        }
    }
    return false;
}

static pool *find_held(device_allocator *d, const uint64_t id[2])
{
    pool *p = private_pools_find(d, id);
    return p && p->holders ? p : NULL;
}

bool private_pools_set_memory(device_allocator *d, const uint64_t id[2],
                              const gmd_pool_memory *memory)
{
    pool *p = find_held(d, id);
    if (!p || p->heap_count || p->memory.allocate || d->settings->expandable_segments) {
        return false;
    }
    p->memory = *memory;
    return true;
}

bool private_pools_set_option(device_allocator *d, const uint64_t id[2], const char *name,
                              bool is_on)
{
    pool *p = find_held(d, id);
    if (p && strcmp(name, "use_on_oom") == 0) {
        p->is_reserve = is_on;
        return true;
    }
    if (!p || strcmp(name, "no_split") != 0) {
        return false;
    }
    p->is_whole = is_on;
    for (size_t i = 0; i < p->heap_count; i++) {
        for (int kind = 0; kind < POOL_KINDS; kind++) {
            p->heaps[i]->sets[kind].is_whole = is_on;
        }
    }
    return true;
}

bool private_pools_are_captured(const device_allocator *d)
{
    for (const route *r = d->routes; r; r = r->next) {
        if (r->to->is_captured) {
            return true;
        }
    }
    return false;
}

bool private_pools_keeps_segments(const device_allocator *d, const pool *p)
{
    return p->holders && (p->is_captured || quirk_is_on(d, GMD_QUIRK_HELD_POOL));
}

/* --- the end of a pool ------------------------------------------------------------------- */

static bool is_empty(const pool *p)
{
    for (size_t i = 0; i < p->heap_count; i++) {
        const heap *h = p->heaps[i];
        if (statistics_is_active(&h->stats)) {
            return false;
        }
        for (int kind = 0; kind < POOL_KINDS; kind++) {
            if (h->sets[kind].block_count || h->sets[kind].unmapped) {
                return false;
            }
        }
    }
    return true;
}

static void drop_heap(device_allocator *d, heap *h)
{
    *(h->previous_of_device ? &h->previous_of_device->next_of_device : &d->heaps) =
        h->next_of_device;
    if (h->next_of_device) {
        h->next_of_device->previous_of_device = h->previous_of_device;
    }
    statistics_remove_heap(&d->stats, &h->stats);
    history_retire(d, h);
    heap_destroy(h);
}

static void drop_pool(device_allocator *d, pool **link)
{
    pool *p = *link;
    *link = p->next;
    for (size_t i = 0; i < p->heap_count; i++) {
        drop_heap(d, p->heaps[i]);
    }
    if (p->memory.done) {
        p->memory.done(p->memory.context);
    }
    free(p->heaps);
    free(p);
}

static bool is_routed_to(const device_allocator *d, const pool *p)
{
    const route *r = d->routes;
    while (r && r->to != p) {
        r = r->next;
    }
    return r;
}

/* A pool that nobody holds, asks or has memory of. */
static bool drop_if_over(device_allocator *d, pool **link)
{
    const pool *p = *link;
    if (p->holders || is_routed_to(d, p) || !is_empty(p)) {
        return false;
    }
    drop_pool(d, link);
    return true;
}

static pool **link_of(device_allocator *d, const pool *p)
{
    pool **link = &d->default_pool.next;
    while (*link && *link != p) {
        link = &(*link)->next;
    }
    return link;
}

bool private_pools_let_go(device_allocator *d, const uint64_t id[2])
{
    pool *p = find_held(d, id);
    if (!p) {
        return false;
    }
    p->holders--;
    drop_if_over(d, link_of(d, p)); /* else with its last memory */
    return true;
}

/* Gives the link to the next pool. */
static pool **release_free_at(device_allocator *d, pool **link)
{
    pool *p = *link;
    if (!private_pools_keeps_segments(d, p)) {
        segments_release_pool(d, p);
    } else if (!p->is_captured) {
        d->quirk_counts[GMD_QUIRK_HELD_POOL]++;
    }
    return drop_if_over(d, link) ? link : &p->next;
}

void private_pools_release_free(device_allocator *d)
{
    for (pool **link = &d->default_pool.next; *link;) {
        link = release_free_at(d, link);
    }
}

void private_pools_release_free_of(device_allocator *d, pool *p)
{
    pool **link = link_of(d, p);
    if (*link) {
        release_free_at(d, link);
    }
}

void private_pools_destroy(device_allocator *d)
{
    for (route *r = d->routes, *next; r; r = next) {
        next = r->next;
        free(r);
    }
    d->routes = NULL;
    while (d->default_pool.next) {
        drop_pool(d, &d->default_pool.next);
    }
}
