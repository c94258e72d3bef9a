#include "watch.h"

#include "gmd_clock.h"

#include <poll.h>

#define POLL_MS 20

static double budget_in(const process_watch *w, int stage)
{
    return stage == GMD_STAGE_LOADING && w->loading_budget_s > 0 ? w->loading_budget_s
                                                                 : w->budget_s;
}

watch_end watch_process(const process_watch *w)
{
    uint64_t last_beat = 0;
    int last_stage = -1;
    double start = gmd_clock_s(), since = start;
    for (;;) {
        struct pollfd waiting = {.fd = w->descriptor, .events = POLLIN};
        if (poll(&waiting, 1, POLL_MS) > 0) {
            return WATCH_SPOKE;
        }
        if (w->is_interrupted && *w->is_interrupted) {
            return WATCH_INTERRUPTED;
        }
        double now = gmd_clock_s();
        if (w->show) {
            w->show(w->context, now - start);
        }
        uint64_t beat = atomic_load(&w->shared->beats);
        int stage = atomic_load(&w->shared->stage);
        if (w->deadline_s > 0 && now >= w->deadline_s) {
            return WATCH_OUT_OF_TIME;
        }
        if (w->is_lost && w->is_lost(w->context)) {
            return WATCH_LOST;
        }
        if (beat != last_beat || stage != last_stage) {
            last_beat = beat;
            last_stage = stage;
            since = now;
        } else if (now - since > budget_in(w, stage)) {
            return WATCH_STOOD_STILL;
        }
    }
}
