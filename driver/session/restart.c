#include "gmd_restart.h"

#include "frames.h"
#include "graphs.h"
#include "view.h"

#include <string.h>

static void restore_device(gmd_session *s, int device)
{
    if (s->budget_bytes[device] != UINT64_MAX) {
        s->runtime.sim->gmd_sim_budget(device, UINT64_MAX);
        s->budget_bytes[device] = UINT64_MAX;
    }
    uint64_t limit = s->limit_at_start[device];
    bool was_set = s->limit_bytes[device] != limit || s->limit_is_unknown[device];
    if (was_set && s->subject.set_memory_fraction) {
        double fraction = limit == UINT64_MAX ? 1 : gmd_fraction_for(limit, s->total_bytes[device]);
        gmd_call_frame frame;
        enter_allocator(s, &frame);
        s->subject.set_memory_fraction(fraction, device);
        leave_allocator(s, &frame);
    }
    s->limit_bytes[device] = limit;
    if (s->subject.reset_peak_stats) {
        s->subject.reset_peak_stats(device);
    }
}

/* `moment` goes on: what it says of waits of an earlier input is then long ago. */
void gmd_session_forget(gmd_session *s)
{
    gmd_threads_join(&s->threads);
    gmd_judge_close(&s->judge);
    if (s->blocks) {
        memset(s->blocks, 0, s->block_end * sizeof *s->blocks);
    }
    s->block_end = 0;
    if (s->pools.is_used) {
        gmd_session_forget_graphs(s);
        memset(&s->pools, 0, sizeof s->pools);
    }
    gmd_uses_clear(&s->uses);
    s->faults.count = 0;
    s->call_count = s->misuse_count = 0;
    s->peak_allocated = s->peak_reserved = 0;
    s->refusals = s->doubtful_refusals = s->probes = s->last_probe = 0;
    s->wrong_frees = (gmd_misuses_made){0};
    s->marking_count = 0;
    s->request_index = s->last_refused = 0;
    s->is_over = s->ends_here = s->has_used = false;
    memset(s->limit_is_unknown, 0, sizeof s->limit_is_unknown);
    memset(s->live_count, 0, sizeof s->live_count);
    memset(s->live_bytes, 0, sizeof s->live_bytes);
    gmd_session_begin(s);
}

gmd_status gmd_session_restart(gmd_session *s, gmd_error *error)
{
    for (int device = 0; device < s->device_count; device++) {
        restore_device(s, device);
    }
    gmd_session_forget(s);
    s->runtime.cudaSetDevice(0);
    s->runtime.cudaGetLastError();
    if (s->runtime.sim) {
        s->runtime.sim->gmd_sim_restart_schedule();
    }
    gmd_session_view_open(s);
    return gmd_session_open_judge(s, error);
}
