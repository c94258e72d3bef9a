/* captures.h - which streams are captured, and which blocks and pools are a graph's. */
#ifndef GMD_CAPTURES_H
#define GMD_CAPTURES_H

#include "gmd_session_state.h"

bool gmd_session_has_joined(const gmd_session_captures *captures, cudaStream_t stream);
bool gmd_session_is_captured(const gmd_session *session, int device, uint32_t stream);
/* Whether the block was allocated for the graph that is being captured. */
bool gmd_session_is_of_graph(const gmd_session *session, const gmd_live_block *block);
/* Whether the call was refused because the capture has failed before; the error is taken back. */
bool gmd_session_is_of_failed_capture(const gmd_session *session, cudaError_t result);
/* How many graphs work in that pool; and whether any do, 0: the default one, where none does. */
uint32_t gmd_session_count_graphs(const gmd_session *session, int device, uint32_t pool);
bool gmd_session_has_graphs(const gmd_session *session, int device, uint32_t pool_serial);

/* Which pool a request on that stream goes to: its serial number (gmd_pool_number); 0: the default
 * one. */
static inline uint32_t gmd_session_pool_of(const gmd_session *s, int device, cudaStream_t stream)
{
    const gmd_session_pools *p = &s->pools;
    if (!p->is_used || !p->book.open[device]) {
        return 0;
    }
    const gmd_session_accepted *a = &p->accepted[device];
    bool is_meant = a->takes_all || a->stream == stream ||
                    (a->captures && gmd_session_has_joined(a->captures, stream));
    return is_meant ? p->serials[device][p->book.open[device] - 1] : 0;
}

/* The bit of a stream in sets of streams; 0: its number is too high. */
static inline uint64_t stream_bit(uint32_t stream)
{
    return stream < GMD_TRACKED_STREAMS ? (uint64_t)1 << stream : 0;
}

#endif
