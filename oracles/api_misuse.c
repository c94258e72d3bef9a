/* api_misuse - the allocator makes no call that the CUDA API forbids. The simulated device knows
 * its rules; a call that a planted fault answered broke none. */
#include "gmd_tokens.h"
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
        char error[12], call[GMD_CALL_TEXT];
        snprintf(error, sizeof error, "%d", m->result);
        gmd_violation_add(
            judge, GMD_KIND(api_misuse, forbidden_call),
            GMD_PARTIES({"function", m->function}, {"error", error}, {"rule", m->rule}),
            "%s returned %d: %s", gmd_call_text(m->function, m->address, m->size, call), m->result,
            m->sentence);
    }
}

const gmd_oracle oracle_api_misuse = {
    .entry = ORACLE_ENTRY(api_misuse),
    .blind_spot = blind_spot,
    .after_request = after_request,
    .at_end = after_request,
};
