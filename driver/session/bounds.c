#include "bounds.h"

#include "notes.h"

bool session_memory(gmd_session *session, gmd_sink_memory *memory)
{
    const gmd_stats *stats = &session->figures.stats[0];
    if (session->figures.has_stats) {
        *memory = (gmd_sink_memory){stats->allocated_bytes, stats->allocated_bytes_peak,
                                    stats->reserved_bytes, stats->reserved_bytes_peak,
                                    stats->active_bytes};
        return true;
    }
    *memory = (gmd_sink_memory){.allocated = session->blocks.bytes[0],
                                .max_allocated = session->blocks.peak_bytes,
                                .active = GMD_STAT_UNKNOWN};
    if (session->runtime.sim) {
        memory->reserved = session->figures.now[0].physical_bytes;
        memory->max_reserved = session->figures.peak_reserved;
    }
    return true;
}

static uint64_t figure_of(gmd_session *s, const gmd_stated_bound *bound)
{
    gmd_sink_memory memory;
    session_memory(s, &memory);
    if (!bound->is_reserved) {
        return memory.allocated == GMD_STAT_UNKNOWN ? s->blocks.bytes[0] : memory.allocated;
    }
    /* a real device does not tell what an allocator without statistics holds */
    return s->figures.has_stats || s->runtime.sim ? memory.reserved : GMD_STAT_UNKNOWN;
}

static void follow(gmd_session *s, gmd_stated_bound *bound)
{
    uint64_t figure = figure_of(s, bound);
    bool had_passed = gmd_stated_bound_is_passed(bound);
    if (figure == GMD_STAT_UNKNOWN || (bound->peak != GMD_STAT_UNKNOWN && figure <= bound->peak)) {
        return;
    }
    bound->peak = figure;
    if (!had_passed && gmd_stated_bound_is_passed(bound)) {
        bound->passed_phase = s->shared->outcome.phase_count;
    }
}

void bounds_add(gmd_session *session, const gmd_bound *bound)
{
    gmd_outcome *o = &session->shared->outcome;
    if (o->bound_count == GMD_BOUND_MAX) {
        gmd_error error;
        session_stop(session,
                     gmd_fail(&error, GMD_BAD_INPUT, "%s: a scenario states at most %d bounds",
                              session->workload->name, GMD_BOUND_MAX),
                     &error);
        return;
    }
    gmd_stated_bound *added = &o->bounds[o->bound_count++];
    *added = (gmd_stated_bound){.is_reserved = bound->is_reserved,
                                .leaks = bound->leaks,
                                .is_told_only =
                                    !(session->view.allocator.promises & GMD_PROMISE_PYTORCH),
                                .bytes = bound->bytes,
                                .peak = GMD_STAT_UNKNOWN};
    follow(session, added);
}

void bounds_follow(gmd_session *session)
{
    gmd_outcome *o = &session->shared->outcome;
    for (uint32_t i = 0; i < o->bound_count; i++) {
        follow(session, &o->bounds[i]);
    }
    session->view.bounds.list = o->bounds;
    session->view.bounds.count = o->bound_count;
}
