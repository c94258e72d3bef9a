#include "contract_duties.h"

#include "blocks.h"
#include "gmd_session_state.h"
#include "notes.h"

#include <inttypes.h>
#include <string.h>

static bool has_live_blocks_of(const gmd_session *s, const gmd_request *destroy)
{
    const session_block *b = NULL;
    for (uint32_t id = 0; (b = live_blocks_next(&s->blocks, &id)) != NULL;) {
        if (b->live.device == destroy->device && b->live.stream == destroy->stream) {
            return true;
        }
    }
    return false;
}

/* A device without memory is nothing that an allocator may be spared: CUDA's error 2, out of
 * memory, of a call that takes some of the device's. */
static bool is_for_device_memory(const gmd_session *s, const gmd_request *fault)
{
    static const char *const calls[] = {"cudaMalloc", "cuMemAlloc", "cuMemCreate"};
    const gmd_trace *t = s->workload->trace;
    if (fault->error != 2 || !t || fault->function >= t->functions.count) {
        return false;
    }
    const char *function = t->functions.items[fault->function];
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (strncmp(function, calls[i], strlen(calls[i])) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_too_large(const gmd_session *s, const gmd_request *r)
{
    return r->bytes > gmd_contract_largest(s->options->judging.contract);
}

/* The stream of a `destroy` that is left out. */
static bool must_live_on(const gmd_session *s, const gmd_request *destroy)
{
    const gmd_contract *c = s->options->judging.contract;
    return gmd_contract_has(c, GMD_CLAUSE_STREAMS, GMD_STREAMS_OUTLIVE_ALLOCATOR) ||
           (gmd_contract_has(c, GMD_CLAUSE_STREAMS, GMD_STREAMS_OUTLIVE_BLOCKS) &&
            has_live_blocks_of(s, destroy));
}

static bool does_clause_forbid(const gmd_session *s, gmd_clause clause, const gmd_request *r)
{
    const gmd_contract *c = s->options->judging.contract;
    switch (clause) {
    case GMD_CLAUSE_ZERO_BYTES:
        return r->op == GMD_OP_ALLOC && r->bytes == 0 &&
               gmd_contract_has(c, clause, GMD_ZERO_OUTSIDE);
    case GMD_CLAUSE_LARGEST:
        return r->op == GMD_OP_ALLOC && is_too_large(s, r);
    case GMD_CLAUSE_STREAMS:
        return r->op == GMD_OP_DESTROY && must_live_on(s, r);
    case GMD_CLAUSE_OTHER_STREAMS: /* the driver orders what is not recorded before the free */
        return r->op == GMD_OP_RECORD && gmd_contract_has(c, clause, GMD_OTHERS_ORDERED);
    case GMD_CLAUSE_DEVICES:
        return r->device > 0 && gmd_contract_has(c, clause, GMD_DEVICES_ONE);
    case GMD_CLAUSE_PENDING_ERRORS:
        return r->op == GMD_OP_LEAVE_ERROR && gmd_contract_has(c, clause, GMD_PENDING_OUTSIDE);
    case GMD_CLAUSE_FAILING_CALLS:
        return r->op == GMD_OP_FAULT && gmd_contract_has(c, clause, GMD_FAILING_OUTSIDE) &&
               !is_for_device_memory(s, r);
    default: /* of no single request */
        return false;
    }
}

bool session_contract_forbids(gmd_session *s, const gmd_request *r)
{
    for (int i = 0; s->options->judging.contract && i < GMD_CLAUSE_COUNT; i++) {
        if (does_clause_forbid(s, (gmd_clause)i, r)) {
            s->left_out.counts[i]++;
            return true;
        }
    }
    return false;
}

void session_note_left_out(gmd_session *s)
{
    const gmd_contract *c = s->options->judging.contract;
    for (int i = 0; c && i < GMD_CLAUSE_COUNT; i++) {
        uint64_t count = s->left_out.counts[i];
        char line[GMD_CONTRACT_LINE];
        if (count) {
            session_note(s, "%" PRIu64 " request%s left out: the profile %s has '%s'", count,
                         count == 1 ? " was" : "s were", c->name,
                         gmd_contract_line(c, (gmd_clause)i, line));
        }
    }
}
