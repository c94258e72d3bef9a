/* session_restart.c - the same process for one input after the other: what an input leaves that is
 * no defect is taken back. */
#include "session_internal.h"

#include <string.h>

static void restore_device(gmd_session *s, int device)
{
    if (s->budget_bytes[device] != UINT64_MAX) {
        s->runtime.sim->gmd_sim_budget(device, UINT64_MAX);
        s->budget_bytes[device] = UINT64_MAX;
    }
    bool was_limited = s->limit_bytes[device] != UINT64_MAX || s->limit_is_unknown[device];
    if (was_limited && s->subject.set_memory_fraction) {
        gmd_call_frame frame;
        gmd_session_give_floor(s, &frame);
        s->subject.set_memory_fraction(1, device);
        gmd_session_take_floor(s, &frame);
    }
    s->limit_bytes[device] = UINT64_MAX;
    s->limit_is_unknown[device] = false;
    if (s->subject.reset_peak_stats) {
        s->subject.reset_peak_stats(device);
    }
    s->live_count[device] = s->live_bytes[device] = 0;
}

/* `moment` goes on: what it says of waits of an earlier input is then long ago. */
static void forget_requests(gmd_session *s)
{
    if (s->blocks) {
        memset(s->blocks, 0, s->block_capacity * sizeof *s->blocks);
    }
    gmd_uses_clear(&s->uses);
    s->faults.count = 0;
    s->call_count = s->misuse_count = 0;
    s->peak_allocated = s->peak_reserved = 0;
    s->refusals = s->probes = s->last_probe = 0;
    s->wrong_frees = (gmd_misuses_made){0};
    s->marking_count = 0;
    s->request_index = s->last_refused = 0;
    s->is_over = s->ends_here = false;
}

gmd_status gmd_session_restart(gmd_session *s, gmd_error *error)
{
    gmd_threads_join(&s->threads);
    gmd_judge_close(&s->judge);
    forget_requests(s);
    gmd_session_begin(s);
    for (int device = 0; device < s->device_count; device++) {
        restore_device(s, device);
    }
    s->runtime.cudaSetDevice(0);
    s->runtime.cudaGetLastError();
    s->runtime.sim->gmd_sim_restart_schedule();
    gmd_session_view_open(s);
    return gmd_judge_open(&s->judge, &s->shared->outcome, &s->view, s->options, error);
}
