#include "figures.h"

uint64_t figures_held(const run_figures *f, int device)
{
    const gmd_device_figures *now = &f->now[device], *was = &f->untouched[device];
    if (f->has_stats && f->stats[device].reserved_bytes != GMD_STAT_UNKNOWN) {
        return f->stats[device].reserved_bytes;
    }
    return now->allocated_bytes + now->mapped_bytes - was->allocated_bytes - was->mapped_bytes;
}

void figures_keep_untouched(run_figures *f, int device)
{
    f->untouched[device] = f->now[device];
}

void figures_keep_baseline(run_figures *f, int device)
{
    f->baseline[device] = f->now[device];
    f->reserved_at_start[device] = f->stats[device].reserved_bytes;
    f->held_at_start[device] = figures_held(f, device);
}

void figures_restart_peak(run_figures *f)
{
    f->peak_reserved = f->now[0].physical_bytes;
}

bool figures_hold_more_than_at_start(const run_figures *f, int device)
{
    const gmd_device_figures *now = &f->now[device], *was = &f->baseline[device];
    return figures_held(f, device) > f->held_at_start[device] ||
           now->event_count > was->event_count || now->stream_count > was->stream_count ||
           now->handle_count > was->handle_count || now->reservation_count > was->reservation_count;
}
