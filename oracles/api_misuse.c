/* api_misuse - the allocator makes no call that the CUDA API forbids. The simulated device knows
 * its rules; a call that a planted fault answered broke none. */
#include "list.h"

#include <inttypes.h>

static const char *blind_spot(const gmd_view *view)
{
    return view->figures.now ? NULL : "a real device does not tell which rule a call broke";
}

static void after_request(void *state, const gmd_view *view, gmd_judge *judge)
{
    (void)state;
    for (size_t i = 0; i < view->calls.misuse_count; i++) {
        const gmd_misuse *m = &view->calls.misuses[i];
        gmd_violation_add(judge, "%s(0x%" PRIx64 ", %" PRIu64 " B) returned %d: %s", m->function,
                          m->address, m->size, m->result, m->sentence);
    }
}

const gmd_oracle gmd_oracle_api_misuse = {
    .name = "api_misuse",
    .holds_when = "the allocator makes no call that the CUDA API forbids",
    .blind_spot = blind_spot,
    .after_request = after_request,
    .at_end = after_request,
};
