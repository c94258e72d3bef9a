#include "gmd_restart.h"

#include "checkpoints.h"
#include "frames.h"
#include "gmd_assert.h"
#include "pool_sources.h"
#include "validity.h"
#include "view.h"

static void restore_device(gmd_session *s, int device)
{
    if (s->limits.budget[device] != UINT64_MAX) {
        s->runtime.sim->gmd_sim_budget(device, UINT64_MAX);
        limits_set_budget(&s->limits, device, UINT64_MAX);
    }
    if (limits_have_changed(&s->limits, device) && s->subject.set_memory_fraction) {
        uint64_t limit = s->limits.at_start[device];
        double fraction = limit == UINT64_MAX ? 1 : fraction_for(limit, s->limits.total[device]);
        call_frame frame;
        enter_allocator(s, "gmd_set_memory_fraction", &frame);
        s->subject.set_memory_fraction(fraction, device);
        leave_allocator(s, &frame);
    }
    limits_restart(&s->limits, device);
    if (s->subject.reset_peak_stats) {
        s->subject.reset_peak_stats(device);
    }
}

/* `moment` goes on: what it says of waits of an earlier input is then long ago. */
void session_forget(gmd_session *s)
{
    threads_join(&s->threads);
    judge_close(&s->judge);
    live_blocks_clear(&s->blocks);
    if (s->pools.is_used) {
        checkpoints_drop_all(s);
        captures_forget(&s->captures);
        pool_table_clear(&s->pools);
        pool_sources_forget();
    }
    uses_clear(&s->uses);
    s->faults.count = 0;
    call_list_judged(&s->calls);
    s->figures.peak_reserved = 0;
    s->refusals = (refusal_counts){0};
    s->wrong_frees = (wrong_free_counts){0};
    s->left_out = (left_out_counts){0};
    s->marks.asked = 0;
    s->request_index = 0;
    s->report.has_called = false;
    s->streams.refused.call = NULL;
    s->is_over = s->persistent.ends_here = s->has_used = false;
    view_begin(s);
}

gmd_status session_restart(gmd_session *s, gmd_error *error)
{
    for (int device = 0; device < s->device_count; device++) {
        restore_device(s, device);
    }
    session_forget(s);
    s->runtime.cudaSetDevice(0);
    s->runtime.cudaGetLastError();
    if (s->runtime.sim) {
        s->runtime.sim->gmd_sim_restart_schedule();
    }
    view_open(s);
    GMD_ASSERT_VALID(session_state_violation(s));
    return view_open_judge(s, error);
}
