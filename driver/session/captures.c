#include "captures.h"

bool gmd_session_has_joined(const gmd_session_captures *c, cudaStream_t stream)
{
    for (uint64_t left = c->joined; left; left &= left - 1) {
        if (c->handles[__builtin_ctzll(left)] == stream) {
            return true;
        }
    }
    return false;
}

bool gmd_session_is_captured(const gmd_session *s, int device, uint32_t stream)
{
    return s->is_capturing && s->captures.device == device &&
           (s->captures.joined & stream_bit(stream));
}

/* A graph works with blocks that were allocated while it was captured, whose memory the pool keeps;
 * other work keeps away from them. */
bool gmd_session_is_of_graph(const gmd_session *s, const gmd_live_block *b)
{
    const gmd_session_captures *c = &s->captures;
    return s->is_capturing && b->pool && b->device == c->device && b->born > c->began &&
           s->pools.book.open[b->device] &&
           b->pool == s->pools.serials[b->device][s->pools.book.open[b->device] - 1];
}

/* A call that was refused because the capture has failed, for which there are good reasons. */
bool gmd_session_is_of_failed_capture(const gmd_session *s, cudaError_t result)
{
    bool is_it = result == cudaErrorStreamCaptureInvalidated;
    if (is_it) {
        s->runtime.cudaGetLastError();
    }
    return is_it;
}

uint32_t gmd_session_count_graphs(const gmd_session *s, int device, uint32_t pool)
{
    const gmd_session_captures *c = &s->captures;
    uint32_t count = 0;
    for (size_t i = 0; i < c->count; i++) {
        count += c->graphs[i].device == device && c->graphs[i].pool == pool;
    }
    return count;
}

bool gmd_session_has_graphs(const gmd_session *s, int device, uint32_t serial)
{
    return serial && s->captures.count &&
           gmd_session_count_graphs(s, device, gmd_pool_number(serial)) > 0;
}
