/* session_view.c - what the oracles get to see: the statistics, the device's figures and calls. */
#include "interleave.h"

#include <stdlib.h>
#include <string.h>

static void note_device_call(void *context, const gmd_sim_call *call)
{
    gmd_session *s = context;
    if (s->call_log) {
        gmd_call_log_add(s->call_log, call->function, (uint32_t)s->request_index);
    }
    if (call->kind == GMD_SIM_CALL_OTHER || call->result != 0 || call->size == 0) {
        return;
    }
    s->device_calls++;
    if (s->interleaving) {
        return; /* whose request's they are cannot be told */
    }
    if (s->call_count == s->call_capacity) {
        size_t capacity = s->call_capacity ? s->call_capacity * 2 : 64;
        gmd_device_call *calls = realloc(s->calls, capacity * sizeof *calls);
        if (!calls) {
            return;
        }
        s->calls = calls;
        s->call_capacity = capacity;
    }
    s->calls[s->call_count++] = (gmd_device_call){
        .is_free = call->kind == GMD_SIM_CALL_FREE, .address = call->address, .size = call->size};
}

static void read_figures(gmd_session *s, int device)
{
    gmd_sim_device_state state;
    if (!s->runtime.sim || s->runtime.sim->gmd_sim_device(device, &state) != 0) {
        return;
    }
    s->figures[device] = (gmd_device_figures){
        .capacity_bytes = state.capacity_bytes,
        .physical_bytes = state.physical_bytes,
        .allocated_bytes = state.allocated_bytes,
        .allocation_count = state.allocation_count,
        .stream_count = state.stream_count - gmd_streams_created(&s->streams, device),
        .event_count = state.event_count,
    };
}

static bool read_stats(gmd_session *s, int device)
{
    gmd_stats *stats = &s->stats[device];
    memset(stats, 0xff, sizeof *stats); /* GMD_STAT_UNKNOWN, where the allocator fills nothing in */
    stats->struct_size = sizeof *stats;
    return s->subject.get_stats && s->subject.get_stats(device, stats) == 0;
}

static bool find_range_on_sim(const void *context, uint64_t address, gmd_device_range *range)
{
    const gmd_sim_api *sim = context;
    gmd_sim_range found;
    if (sim->gmd_sim_find(address, &found) != 0) {
        return false;
    }
    *range = (gmd_device_range){found.address, found.size, found.device};
    return true;
}

void gmd_session_view_untouched(gmd_session *s)
{
    for (int device = 0; device < s->device_count; device++) {
        read_figures(s, device);
        s->untouched[device] = s->figures[device];
    }
}

void gmd_session_view_open(gmd_session *s)
{
    s->has_stats = s->subject.get_stats != NULL;
    for (int device = 0; device < s->device_count; device++) {
        s->has_stats = s->has_stats && read_stats(s, device);
        read_figures(s, device);
        s->baseline[device] = s->figures[device];
        s->reserved_at_start[device] = s->stats[device].reserved_bytes;
    }
    s->view = (gmd_view){.promised_alignment = s->subject.promised_alignment,
                         .can_empty_cache = s->subject.empty_cache != NULL,
                         .find_range = s->runtime.sim ? find_range_on_sim : NULL,
                         .device_context = s->runtime.sim,
                         .stats = s->has_stats ? &s->stats[0] : NULL,
                         .stats_before = s->has_stats ? &s->stats_before : NULL,
                         .stats_failed = s->subject.get_stats && !s->has_stats,
                         .figures = s->runtime.sim ? &s->figures[0] : NULL,
                         .untouched = s->runtime.sim ? &s->untouched[0] : NULL,
                         .baseline = s->runtime.sim ? &s->baseline[0] : NULL};
    if (s->runtime.sim) {
        s->runtime.sim->gmd_sim_observe(note_device_call, s);
    }
}

void gmd_session_look_at(gmd_session *s, int device)
{
    s->view.device = device;
    s->view.live_count = s->live_count[device];
    s->view.live_bytes = s->live_bytes[device];
    s->view.block = NULL;
    s->view.out_of_memory = false;
    if (s->has_stats) {
        s->stats_before = s->stats[device];
        s->view.stats = &s->stats[device];
        s->view.reserved_at_start = s->reserved_at_start[device];
    }
    if (s->runtime.sim) {
        s->view.figures = &s->figures[device];
        s->view.untouched = &s->untouched[device];
        s->view.baseline = &s->baseline[device];
    }
}

static void read_device(gmd_session *s, int device)
{
    if (s->has_stats && !read_stats(s, device)) {
        gmd_outcome_violation(&s->shared->outcome, s->options->known, "accounting",
                              s->request_index, "gmd_get_stats failed after it had worked before");
        s->is_over = true;
    }
    read_figures(s, device);
}

void gmd_session_refresh(gmd_session *s)
{
    int device = s->view.device;
    s->view.live_count = s->live_count[device];
    s->view.live_bytes = s->live_bytes[device];
    s->view.is_busy = gmd_interleave_others_inside(s) > 0;
    if (s->view.is_busy) {
        return; /* the allocator may be in the middle of a change, and hold its lock */
    }
    for (int d = 0; s->view.is_overlapped && d < s->device_count; d++) {
        if (d != device) { /* requests on other devices have ended while it was busy */
            read_device(s, d);
        }
    }
    read_device(s, device);
    if (device == 0 && s->figures[0].physical_bytes > s->peak_reserved) {
        s->peak_reserved = s->figures[0].physical_bytes;
    }
}
