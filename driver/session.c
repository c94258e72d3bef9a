#include "session_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- opening ----------------------------------------------------------------------------- */

static void note_device_call(void *context, const gmd_sim_call *call)
{
    gmd_session *s = context;
    if (call->kind == GMD_SIM_CALL_OTHER || call->result != 0 || call->size == 0) {
        return;
    }
    s->device_calls++;
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

/* Names the trace's file where what is wrong came from its header. */
static gmd_status blame_header(const gmd_session *s, bool is_from_header, gmd_status status,
                               gmd_error *error)
{
    if (status != GMD_OK && is_from_header) {
        gmd_error_prefix(error, s->workload->name);
    }
    return status;
}

static gmd_status choose_schedule(const gmd_session *s, gmd_sim_config *config, gmd_error *error)
{
    const gmd_schedule *schedule = s->options->schedule;
    const gmd_trace *t = s->workload->trace;
    switch (schedule ? schedule->kind : GMD_SCHEDULE_UNSTATED) {
    case GMD_SCHEDULE_EAGER:
        config->schedule = GMD_SIM_EAGER;
        return GMD_OK;
    case GMD_SCHEDULE_LAZY:
        config->schedule = GMD_SIM_LAZY;
        return GMD_OK;
    case GMD_SCHEDULE_SEEDED:
    case GMD_SCHEDULE_EXPLICIT:
        return blame_header(s, t && schedule == &t->schedule,
                            gmd_fail(error, GMD_BAD_INPUT,
                                     "this version's simulated device has the schedules 'timed', "
                                     "'eager' and 'lazy' only"),
                            error);
    default:
        config->schedule = GMD_SIM_TIMED;
        return GMD_OK;
    }
}

static gmd_status reset_device(gmd_session *s, gmd_error *error)
{
    const gmd_run_options *o = s->options;
    gmd_sim_config config;
    s->runtime.sim->gmd_sim_default_config(&config);
    config.device_count = o->device_count;
    config.capacity_bytes = o->capacity_bytes;
    config.seed = o->seed;
    gmd_status status = choose_schedule(s, &config, error);
    if (status != GMD_OK) {
        return status;
    }
    config.placement = o->placement;
    config.recorded = o->recorded;
    config.recorded_count = o->recorded_count;
    if (s->runtime.sim->gmd_sim_reset(&config) == 0) {
        return GMD_OK;
    }
    const gmd_trace *t = s->workload->trace;
    bool is_from_header = t && (t->capacity_bytes == o->capacity_bytes ||
                                (t->device_count && t->device_count == o->device_count));
    return blame_header(s, is_from_header,
                        gmd_fail(error, GMD_BAD_INPUT,
                                 "the simulated device refuses its configuration: %u devices of "
                                 "%" PRIu64 " B (1 to %d devices of 2 MiB to 16 TiB are possible)",
                                 o->device_count, o->capacity_bytes, GMD_SIM_DEVICE_MAX),
                        error);
}

static gmd_status count_devices(gmd_session *s, gmd_error *error)
{
    int count = 0;
    cudaError_t result = s->runtime.cudaGetDeviceCount(&count);
    if (result != cudaSuccess || count < 1) {
        return gmd_fail(error, GMD_BAD_INPUT, "no CUDA device: %s",
                        gmd_runtime_error_text(&s->runtime, result));
    }
    s->device_count = count < GMD_MAX_DEVICES ? count : GMD_MAX_DEVICES;
    return GMD_OK;
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

double gmd_fraction_for(uint64_t limit, uint64_t total)
{
    double fraction = (double)limit / (double)total;
    while (fraction < 1 && (uint64_t)(fraction * (double)total) < limit) {
        fraction = nextafter(fraction, 1);
    }
    return fraction;
}

static gmd_status set_limit(gmd_session *s, gmd_error *error)
{
    uint64_t limit = s->options->limit_bytes;
    if (!limit) {
        return GMD_OK;
    }
    if (!s->subject.set_memory_fraction && s->options->limit_is_optional) {
        gmd_session_note(s,
                         "the limit of %" PRIu64 " B is not in force: the allocator exports no "
                         "gmd_set_memory_fraction",
                         limit);
        return GMD_OK;
    }
    if (!s->subject.set_memory_fraction) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "--limit: the allocator %s exports no gmd_set_memory_fraction",
                        s->options->allocator);
    }
    size_t free_bytes, total;
    cudaError_t result = s->runtime.cudaMemGetInfo(&free_bytes, &total);
    if (result != cudaSuccess) {
        return gmd_fail(error, GMD_FAILED, "cudaMemGetInfo: %s",
                        gmd_runtime_error_text(&s->runtime, result));
    }
    if (limit > total) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "--limit: %" PRIu64 " bytes are more than the device has (%zu)", limit,
                        total);
    }
    for (int device = 0; device < s->device_count; device++) {
        s->subject.set_memory_fraction(gmd_fraction_for(limit, total), device);
    }
    return GMD_OK;
}

static gmd_status configure(gmd_session *s, gmd_error *error)
{
    const char *conf = s->options->conf;
    if (!conf || !*conf) {
        return GMD_OK;
    }
    gmd_status status = GMD_OK;
    char message[512] = "";
    if (!s->subject.configure) {
        status = gmd_fail(error, GMD_BAD_INPUT,
                          "settings '%s': the allocator %s exports no gmd_configure", conf,
                          s->options->allocator);
    } else if (s->subject.configure(conf, message, sizeof message) != 0) {
        message[sizeof message - 1] = '\0';
        status = gmd_fail(error, GMD_BAD_INPUT, "settings '%s': %s", conf, message);
    }
    const gmd_trace *t = s->workload->trace;
    return blame_header(s, t && t->conf == conf, status, error);
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

/* A real device places segments as it likes, and best fit breaks ties by address: where the
 * allocator can be told an order, it gets the one that the simulated device would have, so that
 * both devices give the same statistics. */
static gmd_status order_segments(gmd_session *s, gmd_error *error)
{
    if (s->runtime.sim || !s->subject.order_segments) {
        return GMD_OK;
    }
    size_t recorded = s->options->placement == GMD_SIM_RECORDED ? s->options->recorded_count : 0;
    uint64_t *given = malloc((recorded + 1) * sizeof *given);
    if (!given) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for %zu segments", recorded);
    }
    bool is_accepted = true;
    for (int device = 0; device < s->device_count && is_accepted; device++) {
        size_t count = 0;
        for (size_t i = 0; i < recorded; i++) {
            if (s->options->recorded[i].device == device) {
                given[count++] = s->options->recorded[i].address;
            }
        }
        is_accepted = s->subject.order_segments(device, given, count) == 0;
    }
    free(given);
    return is_accepted ? GMD_OK : gmd_fail(error, GMD_FAILED, "gmd_order_segments was refused");
}

static void read_untouched(gmd_session *s)
{
    for (int device = 0; device < s->device_count; device++) {
        read_figures(s, device);
        s->untouched[device] = s->figures[device];
    }
}

static void open_view(gmd_session *s)
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
}

gmd_status gmd_session_open(gmd_session *session, const gmd_run_options *options,
                            const gmd_workload *workload, gmd_shared *shared, gmd_error *error)
{
    *session = (gmd_session){.options = options, .workload = workload, .shared = shared};
    gmd_status status =
        gmd_runtime_open(&session->runtime, options->device, options->lib_directory, error);
    if (status == GMD_OK && session->runtime.sim) {
        status = reset_device(session, error);
    }
    if (status == GMD_OK) {
        status = count_devices(session, error);
    }
    if (status != GMD_OK) {
        return status;
    }
    gmd_streams_init(&session->streams, &session->runtime);
    if (!session->runtime.sim) {
        session->runtime.cudaDeviceSynchronize(); /* makes the context, outside of what is timed */
    }
    read_untouched(session); /* the allocator may take memory as soon as it is loaded */
    status = gmd_subject_open(&session->subject, options->allocator, options->lib_directory, error);
    if (status == GMD_OK) {
        status = configure(session, error);
    }
    if (status == GMD_OK && session->subject.init) {
        session->subject.init(session->device_count);
    }
    if (status == GMD_OK) {
        status = order_segments(session, error);
    }
    if (status == GMD_OK) {
        status = set_limit(session, error);
    }
    if (status != GMD_OK) {
        return status;
    }
    open_view(session);
    if (session->runtime.sim) {
        session->runtime.sim->gmd_sim_observe(note_device_call, session);
    }
    return gmd_judge_open(&session->judge, &shared->outcome, &session->view, options->known,
                          options->oracles_off, error);
}

/* --- requests ---------------------------------------------------------------------------- */

static void fail_session(gmd_session *s, gmd_status status, const gmd_error *error)
{
    gmd_error placed = *error;
    const gmd_request *r = s->view.request;
    if (r && r->line) { /* of the file that it was read from */
        char place[600];
        snprintf(place, sizeof place, "%.500s:%u", s->workload->name, r->line);
        gmd_error_prefix(&placed, place);
    }
    gmd_outcome_error(&s->shared->outcome, status, &placed);
    s->is_over = true;
}

static session_block *block_at(gmd_session *s, uint32_t id)
{
    if (id >= s->block_capacity) {
        uint32_t capacity = s->block_capacity ? s->block_capacity : 1024;
        while (capacity <= id) {
            capacity *= 2;
        }
        session_block *blocks = realloc(s->blocks, capacity * sizeof *blocks);
        if (!blocks) {
            return NULL;
        }
        memset(blocks + s->block_capacity, 0, (capacity - s->block_capacity) * sizeof *blocks);
        s->blocks = blocks;
        s->block_capacity = capacity;
    }
    return &s->blocks[id];
}

/* Makes `device` the one that the oracles look at, with its statistics from before the request. */
static void look_at(gmd_session *s, int device)
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

static void refresh_view(gmd_session *s)
{
    int device = s->view.device;
    s->view.live_count = s->live_count[device];
    s->view.live_bytes = s->live_bytes[device];
    if (s->has_stats && !read_stats(s, device)) {
        gmd_outcome_violation(&s->shared->outcome, s->options->known, "accounting",
                              s->request_index, "gmd_get_stats failed after it had worked before");
        s->is_over = true;
    }
    read_figures(s, device);
    if (device == 0 && s->figures[0].physical_bytes > s->peak_reserved) {
        s->peak_reserved = s->figures[0].physical_bytes;
    }
}

static void check_expectation(gmd_session *s, const gmd_request *r, bool is_served)
{
    if ((r->expect == GMD_EXPECT_OOM && is_served) ||
        (r->expect == GMD_EXPECT_ALLOC && !is_served)) {
        char message[200];
        snprintf(message, sizeof message, "%" PRIu64 " B were expected to be %s and were %s",
                 r->bytes, is_served ? "refused" : "served", is_served ? "served" : "refused");
        gmd_outcome_violation(&s->shared->outcome, s->options->known, "expect", s->request_index,
                              message);
    }
}

static gmd_status do_alloc(gmd_session *s, const gmd_request *r, gmd_served *served,
                           gmd_error *error)
{
    cudaStream_t stream = NULL;
    gmd_status status = gmd_streams_get(&s->streams, r->device, r->stream, &stream, error);
    session_block *b = block_at(s, r->block);
    if (status != GMD_OK || !b) {
        return b ? status : gmd_fail(error, GMD_NO_MEMORY, "no host memory for block %u", r->block);
    }
    void *memory = s->subject.malloc((size_t)r->bytes, r->device, stream);
    *served = memory || r->bytes == 0 ? GMD_SERVED : GMD_OUT_OF_MEMORY;
    s->view.out_of_memory = *served == GMD_OUT_OF_MEMORY;
    if (s->view.out_of_memory) {
        s->last_refused = s->request_index;
    }
    check_expectation(s, r, *served == GMD_SERVED);
    if (!memory) {
        refresh_view(s);
        return GMD_OK;
    }
    *b = (session_block){.live = {.address = (uint64_t)(uintptr_t)memory,
                                  .bytes = r->bytes,
                                  .born = s->request_index,
                                  .id = r->block,
                                  .stream = r->stream,
                                  .device = r->device}};
    s->live_count[r->device]++;
    s->live_bytes[r->device] += r->bytes;
    if (r->device == 0 && s->live_bytes[0] > s->peak_allocated) {
        s->peak_allocated = s->live_bytes[0];
    }
    s->view.block = &b->live;
    refresh_view(s);
    if (!s->is_over) {
        gmd_judge_ask(&s->judge, GMD_HOOK_AFTER_ALLOC, &s->view);
    }
    return GMD_OK;
}

static gmd_status free_block(gmd_session *s, session_block *b, gmd_live_block *freed,
                             gmd_error *error)
{
    cudaStream_t stream = NULL;
    gmd_status status =
        gmd_streams_get(&s->streams, b->live.device, b->live.stream, &stream, error);
    if (status == GMD_OK && b->uses.streams) {
        status = gmd_streams_settle(&s->streams, &b->uses, b->live.device, b->live.stream,
                                    s->request_index, error);
    }
    if (status != GMD_OK) {
        return status;
    }
    *freed = b->live;
    s->view.block = freed;
    gmd_judge_ask(&s->judge, GMD_HOOK_BEFORE_FREE, &s->view);
    b->live.address = 0;
    s->live_count[freed->device]--;
    s->live_bytes[freed->device] -= freed->bytes;
    s->subject.free((void *)(uintptr_t)freed->address, (size_t)freed->bytes, freed->device, stream);
    refresh_view(s);
    return GMD_OK;
}

/* Work that reads and writes the whole block. On a real device it is a memset, and how long it
 * takes is up to the device. */
static cudaError_t queue_work(gmd_session *s, const gmd_live_block *b, cudaStream_t stream,
                              uint64_t duration_ns)
{
    if (s->runtime.sim) {
        gmd_sim_access access = {b->address, b->bytes, true};
        return s->runtime.sim->gmd_sim_launch(stream, duration_ns, &access, 1);
    }
    return s->runtime.cudaMemsetAsync((void *)(uintptr_t)b->address, 0xa5, (size_t)b->bytes,
                                      stream);
}

static gmd_status do_use(gmd_session *s, const gmd_request *r, session_block *b, gmd_error *error)
{
    cudaStream_t stream = NULL;
    int previous;
    gmd_status status = gmd_streams_get(&s->streams, b->live.device, r->stream, &stream, error);
    if (status == GMD_OK) {
        status = gmd_streams_enter(&s->streams, b->live.device, &previous, error);
    }
    if (status != GMD_OK) {
        return status;
    }
    cudaError_t result = queue_work(s, &b->live, stream, r->duration_ns);
    status = gmd_streams_leave(&s->streams, previous, error);
    if (result != cudaSuccess) {
        return gmd_fail(error, GMD_FAILED, "work on block %u could not be queued: %s", r->block,
                        gmd_runtime_error_text(&s->runtime, result));
    }
    return status != GMD_OK
               ? status
               : gmd_streams_note_use(&s->streams, &b->uses, b->live.device, b->live.stream,
                                      r->stream, s->request_index, error);
}

/* An allocator without record_stream leaves the duty with the caller: settled before the free. */
static gmd_status do_record(gmd_session *s, const gmd_request *r, session_block *b,
                            gmd_error *error)
{
    cudaStream_t stream = NULL;
    gmd_status status = gmd_streams_get(&s->streams, b->live.device, r->stream, &stream, error);
    if (status == GMD_OK && s->subject.record_stream) {
        s->subject.record_stream((void *)(uintptr_t)b->live.address, stream);
        if (r->stream < GMD_TRACKED_STREAMS) {
            b->uses.streams &= ~((uint64_t)1 << r->stream);
        }
    }
    return status;
}

static gmd_status do_fault(gmd_session *s, const gmd_request *r, gmd_error *error)
{
    if (!s->runtime.sim) {
        return gmd_fail(error, GMD_BAD_INPUT, "fault: needs the simulated device");
    }
    const gmd_trace *t = s->workload->trace;
    const char *function =
        t && r->function < t->functions.count ? t->functions.items[r->function] : "";
    if (s->runtime.sim->gmd_sim_fault(function, r->count, r->every_later, (int)r->error) != 0) {
        return gmd_fail(
            error, GMD_BAD_INPUT,
            "fault %s %u %u: the simulated device has no such function, or the count or "
            "the error is 0",
            function, r->count, r->error);
    }
    return GMD_OK;
}

/* Work on a destroyed stream can no longer be ordered before a free: a block that is live on it, or
 * used there with nobody told, is waited for first. */
static bool is_stream_in_use(const gmd_session *s, const gmd_request *r)
{
    for (uint32_t i = 0; i < s->block_capacity; i++) {
        const session_block *b = &s->blocks[i];
        if (b->live.address && b->live.device == r->device &&
            (b->live.stream == r->stream || r->stream >= GMD_TRACKED_STREAMS ||
             (b->uses.streams & (uint64_t)1 << r->stream))) {
            return true;
        }
    }
    return false;
}

static gmd_status do_destroy(gmd_session *s, const gmd_request *r, gmd_error *error)
{
    gmd_status status = GMD_OK;
    if (is_stream_in_use(s, r)) {
        status = gmd_streams_sync(&s->streams, r->device, r->stream, s->request_index, error);
    }
    return status == GMD_OK ? gmd_streams_destroy(&s->streams, r->device, r->stream, error)
                            : status;
}

static gmd_status do_device(gmd_session *s, const gmd_request *r, gmd_error *error)
{
    cudaError_t result = s->runtime.cudaSetDevice(r->device);
    return result == cudaSuccess ? GMD_OK
                                 : gmd_fail(error, GMD_FAILED, "device %u: cudaSetDevice: %s",
                                            r->device, gmd_runtime_error_text(&s->runtime, result));
}

static gmd_status do_budget(gmd_session *s, const gmd_request *r, gmd_error *error)
{
    (void)r;
    return gmd_fail(error, GMD_BAD_INPUT,
                    s->runtime.sim ? "budget: this version's simulated device has no byte budgets"
                                   : "budget: needs the simulated device");
}

static gmd_status do_on_block(gmd_session *s, const gmd_request *r, gmd_live_block *freed,
                              gmd_error *error)
{
    session_block *b = block_at(s, r->block);
    if (!b || !b->live.address) {
        return b ? GMD_OK : gmd_fail(error, GMD_NO_MEMORY, "no host memory for block %u", r->block);
    }
    look_at(s, b->live.device);
    switch (r->op) {
    case GMD_OP_FREE:
        return free_block(s, b, freed, error);
    case GMD_OP_USE:
        return do_use(s, r, b, error);
    default:
        return do_record(s, r, b, error);
    }
}

static gmd_status do_elsewhere(gmd_session *s, const gmd_request *r, gmd_error *error)
{
    switch (r->op) {
    case GMD_OP_WAIT:
        return gmd_streams_wait(&s->streams, r->device, r->stream, r->other_stream,
                                s->request_index, error);
    case GMD_OP_SYNC:
        return gmd_streams_sync(&s->streams, r->device, r->stream, s->request_index, error);
    case GMD_OP_ADVANCE:
        if (s->runtime.sim) {
            s->runtime.sim->gmd_sim_advance(r->duration_ns);
        }
        return GMD_OK;
    case GMD_OP_EMPTY_CACHE:
        if (s->subject.empty_cache) {
            s->subject.empty_cache();
        }
        return GMD_OK;
    case GMD_OP_FRACTION:
        if (s->subject.set_memory_fraction) {
            s->subject.set_memory_fraction(r->fraction, r->device);
        }
        return GMD_OK;
    case GMD_OP_FAULT:
        return do_fault(s, r, error);
    case GMD_OP_DEVICE:
        return do_device(s, r, error);
    case GMD_OP_DESTROY:
        return do_destroy(s, r, error);
    case GMD_OP_BUDGET:
        return do_budget(s, r, error);
    default:
        return gmd_fail(error, GMD_FAILED, "request %" PRIu64 ": unknown operation %d",
                        s->request_index, r->op);
    }
}

static gmd_status carry_out(gmd_session *s, const gmd_request *r, gmd_served *served,
                            gmd_error *error)
{
    if (r->device >= s->device_count) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "request %" PRIu64 " is for device %d, and there are %d (the first is 0)",
                        s->request_index, r->device, s->device_count);
    }
    gmd_live_block freed;
    look_at(s, r->device);
    gmd_status status;
    switch (r->op) {
    case GMD_OP_ALLOC:
        status = do_alloc(s, r, served, error);
        break;
    case GMD_OP_FREE:
    case GMD_OP_USE:
    case GMD_OP_RECORD:
        status = do_on_block(s, r, &freed, error);
        break;
    default:
        status = do_elsewhere(s, r, error);
        refresh_view(s);
    }
    if (status == GMD_OK && !s->is_over) {
        gmd_judge_ask(&s->judge, GMD_HOOK_AFTER_REQUEST, &s->view);
    }
    return status;
}

static void record_request(gmd_session *s, const gmd_request *r)
{
    gmd_shared *shared = s->shared;
    shared->current = *r;
    if (!s->workload->trace && shared->request_count < GMD_RECORDED_REQUEST_MAX) {
        shared->requests[shared->request_count++] = *r;
    }
    atomic_fetch_add_explicit(&shared->beats, 1, memory_order_release);
}

typedef struct errand { /* one request, for the thread that it belongs to */
    gmd_session *session;
    const gmd_request *request;
    gmd_served served;
    gmd_status status;
    gmd_error error;
} errand;

static void run_errand(void *context)
{
    errand *e = context;
    e->status = carry_out(e->session, e->request, &e->served, &e->error);
}

static gmd_served serve_on_its_thread(gmd_session *s, const gmd_request *r)
{
    errand e = {.session = s, .request = r, .served = GMD_SERVED};
    gmd_status called = GMD_OK;
    if (r->thread == 0) {
        run_errand(&e);
    } else {
        called =
            gmd_threads_call(&s->threads, r->thread % GMD_MAX_THREADS, run_errand, &e, &e.error);
    }
    gmd_status status = called != GMD_OK ? called : e.status;
    if (status != GMD_OK) {
        fail_session(s, status, &e.error);
    }
    return e.served;
}

gmd_served gmd_session_request(gmd_session *session, const gmd_request *request)
{
    if (session->is_over) {
        return GMD_STOP;
    }
    record_request(session, request);
    session->call_count = 0;
    session->view.request = request;
    session->view.request_index = session->request_index;
    atomic_store_explicit(&session->shared->is_in_request, 1, memory_order_relaxed);
    gmd_served served = serve_on_its_thread(session, request);
    atomic_store_explicit(&session->shared->is_in_request, 0, memory_order_relaxed);
    session->request_index++;
    session->shared->outcome.requests = session->request_index;
    session->is_over = session->is_over || session->shared->outcome.violation_count > 0;
    return session->is_over ? GMD_STOP : served;
}

/* --- what others ask of a session -------------------------------------------------------- */

bool gmd_session_memory(gmd_session *session, gmd_sink_memory *memory)
{
    const gmd_stats *stats = &session->stats[0];
    if (session->has_stats) {
        *memory = (gmd_sink_memory){stats->allocated_bytes, stats->allocated_bytes_peak,
                                    stats->reserved_bytes, stats->reserved_bytes_peak};
        return true;
    }
    *memory = (gmd_sink_memory){.allocated = session->live_bytes[0],
                                .max_allocated = session->peak_allocated};
    if (session->runtime.sim) {
        memory->reserved = session->figures[0].physical_bytes;
        memory->max_reserved = session->peak_reserved;
    }
    return true;
}

void gmd_session_phase(gmd_session *session, const char *label)
{
    gmd_outcome *o = &session->shared->outcome;
    if (o->phase_count == GMD_PHASE_MAX) {
        o->phases_dropped++;
        return;
    }
    gmd_sink_memory memory;
    gmd_session_memory(session, &memory);
    gmd_phase *phase = &o->phases[o->phase_count++];
    snprintf(phase->label, sizeof phase->label, "%s", label);
    phase->allocated = memory.allocated;
    phase->max_allocated = memory.max_allocated;
    phase->reserved = memory.reserved;
    phase->max_reserved = memory.max_reserved;
}

bool gmd_session_reset_peaks(gmd_session *session, int device)
{
    if (!session->subject.reset_peak_stats) {
        return false;
    }
    session->subject.reset_peak_stats(device);
    look_at(session, device);
    refresh_view(session);
    gmd_judge_ask(&session->judge, GMD_HOOK_AFTER_PEAK_RESET, &session->view);
    return true;
}

uint64_t gmd_session_address(const gmd_session *session, uint32_t block)
{
    return block < session->block_capacity ? session->blocks[block].live.address : 0;
}

const gmd_device_call *gmd_session_device_calls(const gmd_session *session, size_t *count)
{
    *count = session->call_count;
    return session->calls;
}

const gmd_subject *gmd_session_subject(const gmd_session *session)
{
    return &session->subject;
}

const gmd_runtime *gmd_session_runtime(const gmd_session *session)
{
    return &session->runtime;
}

gmd_outcome *gmd_session_outcome(gmd_session *session)
{
    return &session->shared->outcome;
}

void gmd_session_fail(gmd_session *session, const char *oracle, uint64_t request,
                      const char *message)
{
    gmd_outcome_violation(&session->shared->outcome, session->options->known, oracle, request,
                          message);
    session->is_over = true;
}

uint64_t gmd_session_last_refused(const gmd_session *session)
{
    return session->last_refused;
}

void gmd_session_note(gmd_session *session, const char *format, ...)
{
    gmd_outcome *o = &session->shared->outcome;
    if (o->note_count < GMD_NOTE_MAX) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(o->notes[o->note_count++], sizeof o->notes[0], format, arguments);
        va_end(arguments);
    }
}

/* --- the end ----------------------------------------------------------------------------- */

static void free_everything(gmd_session *s)
{
    for (uint32_t id = 0; id < s->block_capacity && !s->is_over; id++) {
        if (s->blocks[id].live.address) {
            gmd_live_block freed;
            gmd_error error;
            s->view.request = &(gmd_request){.op = GMD_OP_FREE, .block = id};
            s->view.request_index = s->request_index;
            look_at(s, s->blocks[id].live.device);
            gmd_status status = free_block(s, &s->blocks[id], &freed, &error);
            if (status != GMD_OK) {
                fail_session(s, status, &error);
            } else {
                gmd_judge_ask(&s->judge, GMD_HOOK_AFTER_REQUEST, &s->view);
            }
            atomic_fetch_add_explicit(&s->shared->beats, 1, memory_order_release);
        }
    }
}

static void judge_the_end(gmd_session *s)
{
    s->view.request = NULL;
    s->view.request_index = s->request_index;
    for (int device = 0; device < s->device_count; device++) {
        look_at(s, device);
        refresh_view(s);
        gmd_judge_ask(&s->judge, GMD_HOOK_AT_END, &s->view);
    }
}

void gmd_session_finish(gmd_session *session)
{
    gmd_outcome *o = &session->shared->outcome;
    o->has_stats = session->has_stats;
    o->stats = session->stats[0];
    o->device_calls = session->device_calls;
    if (session->is_over) {
        return; /* after a violation the rest would only be its consequences */
    }
    atomic_store(&session->shared->stage, GMD_STAGE_CLEAN_UP);
    free_everything(session);
    gmd_error error = {""};
    for (int device = 0; device < session->device_count && !session->is_over; device++) {
        gmd_status status = gmd_streams_sync(&session->streams, device, GMD_ALL_STREAMS,
                                             session->request_index, &error);
        if (status != GMD_OK) {
            fail_session(session, status, &error);
        }
    }
    if (session->subject.empty_cache) {
        session->subject.empty_cache();
    }
    if (!session->is_over) {
        judge_the_end(session);
    }
}

void gmd_session_close(gmd_session *session)
{
    if (session->runtime.sim) {
        session->runtime.sim->gmd_sim_observe(NULL, NULL);
    }
    gmd_threads_join(&session->threads);
    gmd_judge_close(&session->judge);
    gmd_streams_close(&session->streams);
    free(session->blocks);
    free(session->calls);
    session->blocks = NULL;
    session->calls = NULL;
}
