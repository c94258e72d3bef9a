/* host_growth.h - the host's memory in rounds (gmd_rounds.h): bookkeeping that is never freed grows
 * with every round. A table that doubles and a cache with a bound grow, too, but come to an end:
 * growth is told where it about doubles with each doubling of the number of rounds, three times. */
#ifndef GMD_HOST_GROWTH_H
#define GMD_HOST_GROWTH_H

#include "gmd_host_heap.h"

enum { ROUND_WINDOWS = 4 }; /* each as long as all before it: three doublings */

typedef struct host_function_growth {
    const char *function;
    uint64_t least[ROUND_WINDOWS], most[ROUND_WINDOWS]; /* bytes held after a round of each */
} host_function_growth;

typedef struct host_growth {
    host_function_growth functions[GMD_HOST_FUNCTION_MAX];
    size_t count;
} host_growth;

/* After a round of this window. */
void host_growth_look(host_growth *growth, int window);

/* The function whose memory grows most; NULL: none does. `rounds`: how many there were in all. The
 * text says how much. */
const char *host_growth_tell(const host_growth *growth, uint32_t rounds, char *text, size_t size);

#endif
