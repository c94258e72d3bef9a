/* gmd_probe.h - which refusal of an input the allocator is asked about again. */
#ifndef GMD_PROBE_H
#define GMD_PROBE_H

#include <stdint.h>

#define GMD_LAST_REQUEST UINT64_MAX /* as a probed_refusal: where the last request is refused */
/* As a probed_refusal: of those that may be false, since what was asked for would fit beside what
 * is live, the n-th. */
#define GMD_DOUBTFUL_REFUSAL(n) (UINT64_C(1) << 32 | (uint64_t)(n))

#endif
