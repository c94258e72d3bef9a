#include "view.h"

#include "bounds.h"
#include "canaries.h"
#include "contents.h"
#include "frames.h"
#include "gmd_names.h"
#include "gmd_promises.h"
#include "notes.h"
#include "pool_sources.h"

#include <stdio.h>
#include <string.h>

static void read_figures(gmd_session *s, int device)
{
    gmd_sim_device_state state;
    if (!s->runtime.sim || s->runtime.sim->gmd_sim_device(device, &state) != 0) {
        return;
    }
    s->figures.now[device] = (gmd_device_figures){
        .capacity_bytes = state.capacity_bytes,
        .physical_bytes = state.physical_bytes,
        .allocated_bytes = state.allocated_bytes,
        .allocation_count = state.allocation_count,
        .stream_count = state.stream_count - streams_created(&s->streams, device),
        .event_count = state.event_count,
        .mapped_bytes = state.mapped_bytes,
        .handle_count = state.handle_count,
        .reservation_count = state.reservation_count,
        .reservation_bytes = state.reservation_bytes,
        .pool_bytes = state.pool_bytes,
    };
}

static bool read_stats(gmd_session *s, int device)
{
    gmd_stats *stats = &s->figures.stats[device];
    memset(stats, 0xff, sizeof *stats); /* GMD_STAT_UNKNOWN, where the allocator fills nothing in */
    stats->struct_size = sizeof *stats;
    enter_for_question(s, "gmd_get_stats");
    bool has_statistics = s->subject.get_stats && s->subject.get_stats(device, stats) == 0;
    leave_question();
    return has_statistics;
}

/* --- questions to the simulated device --------------------------------------------------- */

static const gmd_sim_api *sim_of(const void *session)
{
    return ((const gmd_session *)session)->runtime.sim;
}

static bool find_range(const void *session, uint64_t address, gmd_device_range *range)
{
    gmd_sim_range found;
    if (sim_of(session)->gmd_sim_find(address, &found) != 0) {
        return false;
    }
    *range = (gmd_device_range){found.address, found.size, found.device};
    return true;
}

static bool is_backed(const void *session, uint64_t address, uint64_t size, int device,
                      uint64_t *bad)
{
    return sim_of(session)->gmd_sim_is_backed(address, size, device, bad);
}

static gmd_sim_point point_of(const gmd_use *use)
{
    return (gmd_sim_point){.stream = use->place, .ticket = use->ticket};
}

static bool is_ordered(const void *session, const gmd_use *use, int device, uint32_t stream)
{
    const gmd_session *s = session;
    cudaStream_t handle = NULL;
    return streams_find(&s->streams, device, stream, &handle) &&
           s->runtime.sim->gmd_sim_is_ordered(point_of(use), device, handle);
}

static bool is_known(const void *session, const gmd_use *use)
{
    return sim_of(session)->gmd_sim_is_known(point_of(use));
}

/* --- questions to the allocator ----------------------------------------------------------- */

static int walk(const void *session, int device, gmd_walk_fn *visit, void *context)
{
    enter_for_question(session, "gmd_walk");
    int result = ((const gmd_session *)session)->subject.walk(device, visit, context);
    leave_question();
    return result;
}

static void each_live(const void *session, int device, gmd_live_fn *visit, void *context)
{
    const gmd_session *s = session;
    const session_block *block = NULL;
    for (uint32_t id = 0; (block = live_blocks_next(&s->blocks, &id)) != NULL;) {
        gmd_live_block b = block->live;
        if (b.device == device) {
            b.address = s->is_placed ? s->subject.place_of(device, b.address) : b.address;
            visit(context, &b);
        }
    }
}

static bool block_name(const void *session, uint64_t born, char name[GMD_BLOCK_NAME])
{
    const gmd_trace *t = ((const gmd_session *)session)->workload->trace;
    if (!t || born >= t->count || !gmd_op_has_block(t->requests[born].op)) {
        return false;
    }
    char written[GMD_NAME_BYTES];
    snprintf(name, GMD_BLOCK_NAME, "%s",
             gmd_name_text(&t->blocks, 'b', t->requests[born].block, written));
    return true;
}

/* --- the view ---------------------------------------------------------------------------- */

void view_untouched(gmd_session *s)
{
    for (int device = 0; device < s->device_count; device++) {
        read_figures(s, device);
        figures_keep_untouched(&s->figures, device);
    }
}

static bool has_pool_requests(const gmd_session *s)
{
    const gmd_trace *t = s->workload->trace;
    size_t i = 0;
    while (t && i < t->count && !gmd_op_is_on_pool(t->requests[i].op)) {
        i++;
    }
    return t && i < t->count;
}

unsigned session_promises(const gmd_session *s)
{
    return promises_all((s->subject.promises ? s->subject.promises() : 0) |
                        s->options->subject.promises);
}

void view_open(gmd_session *s)
{
    s->figures.has_stats = s->subject.get_stats != NULL;
    for (int device = 0; device < s->device_count; device++) {
        s->figures.has_stats = s->figures.has_stats && read_stats(s, device);
        read_figures(s, device);
    }
    for (int device = 0; device < s->device_count; device++) {
        figures_keep_baseline(&s->figures, device);
        limits_start(&s->limits, device);
    }
    unsigned promises = session_promises(s);
    s->view = (gmd_view){
        .allocator.promises = promises,
        .allocator.promised_alignment =
            promised_alignment(promises, gmd_contract_alignment(s->options->judging.contract,
                                                                s->subject.promised_alignment)),
        .allocator.is_reference = strcmp(s->options->subject.allocator, "reference") == 0,
        .workload.no_second_run = s->options->process.no_second_run,
        .allocator.exports_pools = s->subject.begin_pool != NULL,
        .workload.knows_requests = s->workload->trace && s->workload->trace->count,
        .workload.has_pool_requests = has_pool_requests(s),
        .ask.walk = s->subject.walk ? walk : NULL,
        .ask.each_live = each_live,
        .ask.block_name = block_name,
        .allocator.can_empty_cache = s->subject.empty_cache != NULL,
        .ask.context = s,
        .stats.now = s->figures.has_stats ? &s->figures.stats[0] : NULL,
        .stats.before = s->figures.has_stats ? &s->figures.before : NULL,
        .stats.has_failed = s->subject.get_stats && !s->figures.has_stats,
        .canaries.are_there = s->canaries.table != NULL,
        .canaries.reason = s->canaries.reason,
        .limits.bytes = s->limits.bytes[0],
        .limits.device_bytes = s->limits.total[0]};
    if (s->runtime.sim) {
        s->view.figures.now = &s->figures.now[0];
        s->view.figures.untouched = &s->figures.untouched[0];
        s->view.figures.baseline = &s->figures.baseline[0];
        s->view.ask.find_range = find_range;
        s->view.ask.is_backed = is_backed;
        s->view.ask.is_ordered = is_ordered;
        s->view.ask.is_known = is_known;
        s->view.ask.read_contents = session_read_contents;
    }
    s->calls.memory_calls = 0; /* what it did while it was loaded is not part of the run */
}

gmd_status view_open_judge(gmd_session *s, gmd_error *error)
{
    const gmd_run_options *o = s->options;
    judge_options options = {o->judging.known, o->conditions.conf, o->judging.left_out,
                             o->judging.oracles_off, o->judging.costs};
    return judge_open(&s->judge, &s->shared->outcome, &s->view, &options, error);
}

void view_begin(gmd_session *s)
{
    call_list_begin(&s->calls);
    s->view.faults.hit = 0;
    memset(s->view.faults.functions, 0, sizeof s->view.faults.functions);
    s->view.thread.before = NULL;
    s->view.thread.after = NULL;
    s->view.thread.error_text = s->view.thread.error_token = NULL;
    s->view.refusal = NULL;
    s->view.pools.failure = s->view.pools.restored = NULL;
    s->view.pools.is_let_go = false;
    s->view.pools.clash = NULL;
    s->view.pools.source = NULL;
    s->view.pools.options = 0;
    s->view.pools.accesses = NULL;
    s->view.pools.access_count = 0;
    s->view.limits.device_request = GMD_STAT_UNKNOWN;
    s->view.limits.room = GMD_STAT_UNKNOWN;
}

void view_device(gmd_session *s, int device)
{
    s->view.device = device;
    s->view.is_busy = overlap_others_inside(s) > 0;
    s->view.live.count = s->blocks.count[device];
    s->view.live.bytes = s->blocks.bytes[device];
    s->view.live.empty_count = s->blocks.empty_count[device];
    s->view.block = NULL;
    s->view.out_of_memory = false;
    s->view.uses.list = NULL;
    s->view.uses.count = 0;
    s->view.uses.recorded_count = 0;
    s->view.uses.recorded = 0;
    s->view.pools.is_capturing = s->captures.is_under_way;
    s->view.pools.lent = s->pools.lent[device];
    s->view.limits.bytes = s->limits.bytes[device];
    s->view.limits.device_bytes = s->limits.total[device];
    if (s->figures.has_stats) {
        s->figures.before = s->figures.stats[device];
        s->view.stats.now = &s->figures.stats[device];
        s->view.stats.reserved_at_start = s->figures.reserved_at_start[device];
    }
    if (s->runtime.sim) {
        s->view.figures.now = &s->figures.now[device];
        s->view.figures.untouched = &s->figures.untouched[device];
        s->view.figures.baseline = &s->figures.baseline[device];
    }
}

static void read_device(gmd_session *s, int device)
{
    if (s->figures.has_stats && !read_stats(s, device)) {
        session_violation(s, GMD_KIND(accounting, no_statistics), GMD_NO_PARTIES, s->request_index,
                          "gmd_get_stats failed after it had worked before");
        s->is_over = true;
    }
    read_figures(s, device);
}

static void show_calls(gmd_session *s)
{
    s->view.calls.list = s->calls.list;
    s->view.calls.count = s->calls.count;
    s->view.calls.are_all = s->runtime.sim && !s->interleaving.overlap;
    s->view.calls.has_failed = s->calls.has_failed;
}

void view_refresh(gmd_session *s)
{
    show_calls(s);
    int device = s->view.device;
    s->view.live.count = s->blocks.count[device];
    s->view.live.bytes = s->blocks.bytes[device];
    s->view.live.empty_count = s->blocks.empty_count[device];
    s->view.is_busy = overlap_others_inside(s) > 0;
    if (s->view.is_busy) {
        return; /* the allocator may be in the middle of a change, and hold its lock */
    }
    /* Requests on other devices have ended while it was busy; emptying the cache is about all. */
    const gmd_request *r = s->view.request;
    bool concerns_all = s->view.is_overlapped || (r && r->op == GMD_OP_EMPTY_CACHE);
    for (int d = 0; concerns_all && d < s->device_count; d++) {
        if (d != device) {
            read_device(s, d);
        }
    }
    read_device(s, device);
    figures_follow_peak(&s->figures);
    bounds_follow(s);
}

uint64_t view_room(const gmd_session *s, int device)
{
    return s->runtime.sim ? limits_room(&s->limits, device, &s->figures.now[device],
                                        figures_held(&s->figures, device))
                          : GMD_STAT_UNKNOWN;
}

void view_judge(gmd_session *s)
{
    show_calls(s);
    s->view.calls.misuses = s->calls.misuses;
    s->view.calls.misuse_count = s->calls.misuse_count;
    session_judge_canaries(s);
    pool_sources_show(s, s->view.request && s->view.request->op == GMD_OP_ALLOC ? s->view.block
                                                                                : NULL);
    judge_ask(&s->judge, s->view.request ? GMD_HOOK_AFTER_REQUEST : GMD_HOOK_AT_END, &s->view);
    call_list_judged(&s->calls);
    if (s->runtime.sim && s->report.thread_after.last_error && s->view.thread.after) {
        s->runtime.cudaGetLastError(); /* an excused one: the next request begins without it */
    }
}
