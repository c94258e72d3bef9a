/* api_misuse - the allocator makes no call that the CUDA API forbids. The simulated device knows
 * its rules; a call that a planted fault answered broke none. */
#include "list.h"

#include <inttypes.h>
#include <stdio.h>

static const char *blind_spot(const gmd_view *view)
{
    return view->figures.now ? NULL : "a real device does not tell which rule a call broke";
}

static void after_request(void *state, const gmd_view *view, gmd_judge *judge)
{
    (void)state;
    for (size_t i = 0; i < view->calls.misuse_count; i++) {
        const gmd_misuse *m = &view->calls.misuses[i];
        char error[12];
        snprintf(error, sizeof error, "%d", m->result);
        gmd_violation_add(
            judge, GMD_KIND(api_misuse, forbidden_call),
            GMD_PARTIES({"function", m->function}, {"error", error}, {"rule", m->rule}),
            "%s(0x%" PRIx64 ", %" PRIu64 " B) returned %d: %s", m->function, m->address, m->size,
            m->result, m->sentence);
    }
}

const gmd_oracle oracle_api_misuse = {
    .entry = ORACLE_ENTRY(api_misuse),
    .blind_spot = blind_spot,
    .after_request = after_request,
    .at_end = after_request,
};
