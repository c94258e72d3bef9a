#include "watch.h"

#include "gmd_clock.h"

#include <poll.h>

#define POLL_MS 20

bool watch_process(const process_watch *w)
{
    uint64_t last_beat = 0;
    int last_stage = -1;
    double start = gmd_clock_s(), since = start;
    for (;;) {
        struct pollfd waiting = {.fd = w->descriptor, .events = POLLIN};
        if (poll(&waiting, 1, POLL_MS) > 0) {
            return true;
        }
        if (w->is_interrupted && *w->is_interrupted) {
            return false;
        }
        double now = gmd_clock_s();
        if (w->show) {
            w->show(w->context, now - start);
        }
        uint64_t beat = atomic_load(&w->shared->beats);
        int stage = atomic_load(&w->shared->stage);
        if (beat != last_beat || stage != last_stage) {
            last_beat = beat;
            last_stage = stage;
            since = now;
        } else if (now - since > w->budget_s) {
            return false;
        }
    }
}
