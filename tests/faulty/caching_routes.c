/* caching_routes.c - private pools of caching_pool.c: a block belongs to the pool that its segment
 * was taken for, and serves requests of that one only. What is free goes back to the device like
 * what the default pool has, held or not. */
#include "caching_pool.h"

#include <stdlib.h>

static private_pool *find_private(pool *p, const uint64_t id[2])
{
    for (size_t i = 0; i < p->private_count; i++) {
        if (p->privates[i].id[0] == id[0] && p->privates[i].id[1] == id[1]) {
            return &p->privates[i];
        }
    }
    return NULL;
}

static private_pool *make_private(pool *p, const uint64_t id[2])
{
    private_pool *grown = realloc(p->privates, (p->private_count + 1) * sizeof *grown);
    if (!grown) {
        return NULL;
    }
    p->privates = grown;
    grown[p->private_count] = (private_pool){.id = {id[0], id[1]}};
    return &grown[p->private_count++];
}

uint32_t owner_for(const pool *p, cudaStream_t stream)
{
    bool is_meant = p->open && (!p->accepts || p->accepts(p->context, stream));
    return is_meant ? p->open : 0;
}

bool is_given_up(const pool *p, uint32_t owner)
{
    return owner && !p->privates[owner - 1].holders;
}

EXPORT int gmd_begin_pool(int device, const uint64_t id[2], gmd_stream_filter *accepts,
                          void *context);
int gmd_begin_pool(int device, const uint64_t id[2], gmd_stream_filter *accepts, void *context)
{
    pool *p = &pools[device];
    pthread_mutex_lock(&lock);
    private_pool *own = p->open ? NULL : find_private(p, id);
    if (!own && !p->open) {
        own = make_private(p, id);
    }
    if (own) {
        own->holders++;
        p->open = (uint32_t)(own - p->privates) + 1;
        p->accepts = accepts;
        p->context = context;
    }
    pthread_mutex_unlock(&lock);
    return own ? 0 : -1;
}

EXPORT int gmd_end_pool(int device, const uint64_t id[2], void **context);
int gmd_end_pool(int device, const uint64_t id[2], void **context)
{
    pool *p = &pools[device];
    pthread_mutex_lock(&lock);
    const private_pool *own = find_private(p, id);
    bool is_open = own && p->open == (uint32_t)(own - p->privates) + 1;
    if (is_open) {
        p->open = 0;
        *context = p->context;
    }
    pthread_mutex_unlock(&lock);
    return is_open ? 0 : -1;
}

EXPORT int gmd_release_pool(int device, const uint64_t id[2]);
int gmd_release_pool(int device, const uint64_t id[2])
{
    pthread_mutex_lock(&lock);
    private_pool *own = find_private(&pools[device], id);
    bool is_held = own && own->holders;
    if (is_held) {
        own->holders--;
    }
    pthread_mutex_unlock(&lock);
    return is_held ? 0 : -1;
}
