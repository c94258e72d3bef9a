/* private_pools.h - pools that some streams' requests go to instead of the default one: those of
 * captured graphs, whose addresses must stay, and users' own. The caller has
 * exclusive access to the device.
 *
 * A pool is captured when a request went to it while its stream was being captured. Only then are
 * its segments kept for as long as somebody holds it; any other pool's cache is given back like the
 * default one's (torch 2.11 keeps both, pytorch#175015: GMD_QUIRK_HELD_POOL). */
#ifndef GMD_PRIVATE_POOLS_H
#define GMD_PRIVATE_POOLS_H

#include "device_allocator.h"

/* Where requests on a stream go: the default pool unless a route accepts the stream. */
pool *private_pools_route(device_allocator *d, cudaStream_t stream);

/* False: no host memory, requests go to that pool already, or its memory and expandable segments do
 * not go together. */
bool private_pools_begin(device_allocator *d, const uint64_t id[2], gmd_stream_filter *accepts,
                         void *context);

/* Gives the context of the route that ends; false: there is none. */
bool private_pools_end(device_allocator *d, const uint64_t id[2], void **context);

/* Where its segments come from, and what it is for: gmd_set_pool_memory, gmd_set_pool_option.
 * False: nobody holds such a pool, it has segments, segments are expandable, or there is no such
 * option. */
bool private_pools_set_memory(device_allocator *d, const uint64_t id[2],
                              const gmd_pool_memory *memory);
bool private_pools_set_option(device_allocator *d, const uint64_t id[2], const char *name,
                              bool is_on);

/* One holder less. False: there is no such pool, or nobody holds it. */
bool private_pools_let_go(device_allocator *d, const uint64_t id[2]);

/* NULL: there is none of that name; the default pool has none. */
pool *private_pools_find(device_allocator *d, const uint64_t id[2]);

/* Gives back what is free in pools that may give back, and drops those that nobody needs. */
void private_pools_release_free(device_allocator *d);

/* The same for one of them. */
void private_pools_release_free_of(device_allocator *d, pool *p);

/* Nothing of it is given back now: its addresses are in graphs. */
bool private_pools_keeps_segments(const device_allocator *d, const pool *p);

/* Requests go to a captured pool: a capture may be under way. */
bool private_pools_are_captured(const device_allocator *d);

/* Frees all pools but the default one; their blocks must be gone. */
void private_pools_destroy(device_allocator *d);

#endif
