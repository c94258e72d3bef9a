/* search_repeat.c - rounds of sequences that are run by themselves. What passes is repeated there
 * until it shows whether freed blocks are used again (driver/session/rounds.c), which many
 * sequences in one process leave no time for. Some are repeated for longer: until it shows whether
 * the host's memory, or the device's, grows with every turn (gmd_rounds.h). */
#include "campaign.h"

#include "gmd_rounds.h"
#include "gmd_size.h"

#include <stdlib.h>

#define SEQUENCES 8
#define LONG      3 /* of them are repeated for longer */
/* Blocks asked for in all: at first, and before growth counts. */
#define AT_FIRST UINT64_C(2048)
#define AT_LAST  UINT64_C(8192)
#define ROOM     GMD_GIB /* what is lost shows as growth, for which there must be room */

/* What is repeated is requests only: what would change the device from one time to the next, or
 * plants something, is left out. */
static void make_repeatable(gmd_profile *profile, const gmd_profile_space *space)
{
    for (uint32_t op = 0; op < GMD_OP_COUNT; op++) {
        profile->weights[op] = gmd_op_is(op, GMD_IS_FOR_ALL) ? 0 : profile->weights[op];
    }
    profile->fraction = 1;
    profile->conditions.capacity_bytes =
        !space->capacity_bytes && profile->conditions.capacity_bytes < ROOM
            ? ROOM
            : profile->conditions.capacity_bytes;
    profile->thread_count = 1;
    profile->interleaves = false;
}

/* False: the round is not worth going on with. */
static bool run_alone(campaign *c, const gmd_trace *trace)
{
    const gmd_outcome *outcome;
    gmd_error error;
    gmd_status status = gmd_runner_run(&c->runner, trace, &outcome, &error);
    if (status != GMD_OK) {
        campaign_cannot_run(c, status, error.text);
        return false;
    }
    if (outcome->verdict == GMD_ERROR && !outcome->violation_count) {
        campaign_note_error(c, outcome);
        return false;
    }
    c->sequences++;
    if (outcome->violation_count && !gmd_findings_hit(c->findings, &outcome->violations[0])) {
        campaign_add_finding(c, trace, &outcome->violations[0]);
    }
    return true;
}

/* What grows in as many turns as a gate makes. NULL: nothing, or there was no time for it. */
static const gmd_violation *find_growth(campaign *c, const gmd_trace *trace, gmd_outcome *outcome)
{
    static const uint64_t allocations[] = {AT_FIRST, AT_LAST};
    bool grows = true;
    gmd_error error;
    for (size_t i = 0; i < sizeof allocations / sizeof *allocations && grows; i++) {
        grows = !campaign_is_over(c) &&
                gmd_rounds_run(c->options->run, trace, allocations[i], outcome, &error) == GMD_OK &&
                outcome->violation_count && gmd_rounds_is_growth(&outcome->violations[0]);
    }
    return grows ? &outcome->violations[0] : NULL;
}

static void repeat_for_long(campaign *c, gmd_trace *trace)
{
    gmd_outcome *outcome = calloc(1, sizeof *outcome);
    const gmd_violation *violation = outcome ? find_growth(c, trace, outcome) : NULL;
    if (violation && !gmd_findings_hit(c->findings, violation)) {
        gmd_violation copy = *violation;
        gmd_rounds_minimize(c->options->run, trace, AT_LAST);
        campaign_add_finding(c, trace, &copy);
    }
    free(outcome);
}

bool campaign_repeat(campaign *c, gmd_profile *profile, uint64_t seed)
{
    bool is_limited = c->options->space.fraction > 0; /* by a request of its own, each time */
    if (c->options->run->device.kind != GMD_DEVICE_SIM || is_limited) {
        return false;
    }
    make_repeatable(profile, &c->options->space);
    bool goes_on = true;
    for (uint64_t i = 0; i < SEQUENCES && goes_on && !campaign_is_over(c); i++) {
        gmd_trace trace;
        goes_on = campaign_generate(c, profile, gmd_random_derive(seed, i), &trace) &&
                  run_alone(c, &trace);
        if (goes_on && i < LONG && !campaign_is_over(c)) {
            repeat_for_long(c, &trace);
        }
        gmd_trace_free(&trace);
    }
    campaign_tell(c, "searching");
    return true;
}
