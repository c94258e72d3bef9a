#include "contents.h"

enum { FOLLOWED_AT_FIRST = 4096, STRETCH_EVERY = 4096, STRETCH = 128 };

static bool is_followed(gmd_session *s, const session_block *b)
{
    uint64_t n = s->marks.asked++;
    return !s->options->judging.oracles_off && b->live.bytes &&
           (n < FOLLOWED_AT_FIRST || n % STRETCH_EVERY < STRETCH);
}

static bool is_idle(const gmd_session *s, int device, cudaStream_t stream)
{
    gmd_sim_point queued;
    return s->runtime.sim->gmd_sim_point_of(device, stream, &queued) == 0 &&
           s->runtime.sim->gmd_sim_is_complete(queued);
}

void session_mark(gmd_session *s, session_block *b, cudaStream_t stream)
{
    if (!s->runtime.sim || b->is_for_graph || !is_followed(s, b)) {
        return;
    }
    b->mark = ++s->marks.last;
    if (is_idle(s, b->live.device, stream)) {
        s->runtime.sim->gmd_sim_mark(b->live.address, b->live.bytes, b->mark);
        b->is_marked = true;
    }
}

static const gmd_live_block *find_marked(const gmd_session *s, uint64_t mark)
{
    const session_block *b = NULL;
    for (uint32_t id = 0; mark && (b = live_blocks_next(&s->blocks, &id)) != NULL;) {
        if (b->mark == mark) {
            return &b->live;
        }
    }
    return NULL;
}

/* Work on the block's own stream writes all of it, after whatever an earlier owner does. Work on
 * another stream need not come after that: it is the caller's duty to see to it, and no allocator's
 * fault. */
static bool is_own_work_over(const gmd_session *s, const gmd_live_block *b)
{
    for (size_t i = 0; i < s->view.uses.count; i++) {
        const gmd_use *use = &s->view.uses.list[i];
        if (use->stream == b->stream && s->runtime.sim->gmd_sim_is_complete((gmd_sim_point){
                                            .stream = use->place, .ticket = use->ticket})) {
            return true;
        }
    }
    return false;
}

bool session_read_contents(const void *session, const gmd_live_block *block, gmd_contents *contents)
{
    const gmd_session *s = session;
    const session_block *b = live_blocks_find(&s->blocks, block->id);
    gmd_sim_marked found;
    if (!b || !b->mark ||
        s->runtime.sim->gmd_sim_find_mark(block->address, block->bytes, b->mark, &found) != 0) {
        return false;
    }
    *contents = (gmd_contents){.marked_bytes = found.marked_bytes,
                               .other_bytes = found.other_bytes,
                               .other_address = found.other_address};
    if (found.other_bytes) {
        contents->is_written = b->is_marked || is_own_work_over(s, block);
        contents->other = find_marked(s, found.other_mark);
    }
    return true;
}
