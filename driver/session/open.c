#include "gmd_open.h"

#include "allocator_calls.h"
#include "canaries.h"
#include "exceptions.h"
#include "frames.h"
#include "gmd_end.h"
#include "gmd_host_clock.h"
#include "gmd_log.h"
#include "gmd_quirks.h"
#include "gmd_restart.h"
#include "journal_writer.h"
#include "notes.h"
#include "view.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Names the trace's file where what is wrong came from its header. */
static gmd_status blame_header(const gmd_session *s, bool is_from_header, gmd_status status,
                               gmd_error *error)
{
    if (status != GMD_OK && is_from_header) {
        gmd_error_prefix(error, s->workload->name);
    }
    return status;
}

static void choose_schedule(const gmd_session *s, gmd_sim_config *config)
{
    const gmd_schedule *schedule = &s->options->conditions.schedule;
    switch (schedule->kind) {
    case GMD_SCHEDULE_EAGER:
        config->schedule = GMD_SIM_EAGER;
        return;
    case GMD_SCHEDULE_LAZY:
        config->schedule = GMD_SIM_LAZY;
        return;
    case GMD_SCHEDULE_SEEDED:
        config->schedule = GMD_SIM_SEEDED;
        config->schedule_seed = schedule->seed;
        return;
    case GMD_SCHEDULE_EXPLICIT:
        config->schedule = GMD_SIM_EXPLICIT;
        config->choices = schedule->choices;
        config->choice_count = schedule->choice_count;
        return;
    default:
        config->schedule = GMD_SIM_TIMED;
    }
}

/* Recorded addresses are those of a recording whose order the requests follow: they win. */
static void choose_placement(const gmd_session *s, gmd_sim_config *config)
{
    const gmd_run_options *o = s->options;
    config->placement = o->device.placement;
    config->recorded = o->device.recorded;
    config->recorded_count = o->device.recorded_count;
    config->recorded_reservations = o->device.recorded_reservations;
    config->recorded_reservation_count = o->device.recorded_reservation_count;
    if (o->device.placement != GMD_SIM_RECORDED &&
        o->conditions.placement.kind == GMD_PLACEMENT_SEEDED) {
        config->placement = GMD_SIM_RANDOM;
        config->seed = o->conditions.placement.seed;
    }
}

static gmd_status reset_device(gmd_session *s, gmd_error *error)
{
    const gmd_run_options *o = s->options;
    gmd_sim_config config;
    s->runtime.sim->gmd_sim_default_config(&config);
    config.device_count = o->conditions.device_count;
    config.capacity_bytes = o->conditions.capacity_bytes;
    choose_schedule(s, &config);
    choose_placement(s, &config);
    config.reuses_handles = o->conditions.reuses_handles;
    if (s->runtime.sim->gmd_sim_reset(&config) == 0) {
        return GMD_OK;
    }
    const gmd_trace *t = s->workload->trace;
    bool is_from_header =
        t &&
        (t->conditions.capacity_bytes == o->conditions.capacity_bytes ||
         (t->conditions.device_count && t->conditions.device_count == o->conditions.device_count));
    return blame_header(s, is_from_header,
                        gmd_fail(error, GMD_BAD_INPUT,
                                 "the simulated device refuses its configuration: %u devices of "
                                 "%" PRIu64 " B (1 to %d devices of 2 MiB to 16 TiB are possible)",
                                 o->conditions.device_count, o->conditions.capacity_bytes,
                                 GMD_SIM_DEVICE_MAX),
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

/* What the memory fraction is a fraction of. The devices of one machine are taken to be alike. */
static gmd_status measure_devices(gmd_session *s, gmd_error *error)
{
    size_t free_bytes = 0, total = 0;
    cudaError_t result = s->runtime.cudaMemGetInfo(&free_bytes, &total);
    if (result != cudaSuccess) {
        return gmd_fail(error, GMD_FAILED, "cudaMemGetInfo: %s",
                        gmd_runtime_error_text(&s->runtime, result));
    }
    s->figures.free_at_start = free_bytes;
    for (int device = 0; device < s->device_count; device++) {
        limits_open(&s->limits, device, total);
    }
    return GMD_OK;
}

static gmd_status set_limit(gmd_session *s, gmd_error *error)
{
    uint64_t limit = s->options->conditions.limit_bytes;
    if (!limit) {
        return GMD_OK;
    }
    if (!s->subject.set_memory_fraction && s->options->device.limit_is_optional) {
        session_note(s,
                     "the limit of %" PRIu64 " B is not in force: the allocator exports no "
                     "gmd_set_memory_fraction",
                     limit);
        return GMD_OK;
    }
    if (!s->subject.set_memory_fraction) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "--limit: the allocator %s exports no gmd_set_memory_fraction",
                        s->options->subject.allocator);
    }
    uint64_t total = s->limits.total[0];
    if (limit > total) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "--limit: %" PRIu64 " bytes are more than the device has (%" PRIu64 ")",
                        limit, total);
    }
    for (int device = 0; device < s->device_count; device++) {
        s->subject.set_memory_fraction(fraction_for(limit, total), device);
        limits_set(&s->limits, device, limit);
    }
    return GMD_OK;
}

/* A memory fraction that stands in the settings is a limit like one that is set. */
static void note_limit_of_settings(gmd_session *s, const char *conf)
{
    static const char name[] = "per_process_memory_fraction";
    const char *at = strstr(conf, name);
    at = at ? at + strlen(name) + strspn(at + strlen(name), " \t") : "";
    double fraction = *at == ':' ? strtod(at + 1, NULL) : 1;
    for (int i = 0; fraction >= 0 && fraction < 1 && i < s->device_count; i++) {
        limits_set(&s->limits, i, (uint64_t)(fraction * (double)s->limits.total[i]));
    }
}

static gmd_status configure(gmd_session *s, gmd_error *error)
{
    const char *conf = s->options->conditions.conf;
    if (!conf || !*conf) {
        return GMD_OK;
    }
    gmd_status status = GMD_OK;
    char message[512] = "";
    if (!s->subject.configure) {
        status = gmd_fail(error, GMD_BAD_INPUT,
                          "settings '%s': the allocator %s exports no gmd_configure", conf,
                          s->options->subject.allocator);
    } else if (s->subject.configure(conf, message, sizeof message) != 0) {
        message[sizeof message - 1] = '\0';
        status = gmd_fail(error, GMD_BAD_INPUT, "settings '%s': %s", conf, message);
    }
    if (status == GMD_OK) {
        note_limit_of_settings(s, conf);
    }
    const gmd_trace *t = s->workload->trace;
    return blame_header(s, t && t->conditions.conf == conf, status, error);
}

/* A real device places segments as it likes, and best fit breaks ties by address: an
 * allocator that takes an order of segments gets the one that the simulated device would have, so
 * that both devices give the same statistics. */
static gmd_status order_segments(gmd_session *s, gmd_error *error)
{
    if (s->runtime.sim || !s->subject.order_segments || !s->subject.place_of) {
        return GMD_OK;
    }
    size_t recorded =
        s->options->device.placement == GMD_SIM_RECORDED ? s->options->device.recorded_count : 0;
    uint64_t *given = malloc((recorded + 1) * sizeof *given);
    if (!given) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for %zu segments", recorded);
    }
    bool is_accepted = true;
    for (int device = 0; device < s->device_count && is_accepted; device++) {
        size_t count = 0;
        for (size_t i = 0; i < recorded; i++) {
            if (s->options->device.recorded[i].device == device) {
                given[count++] = s->options->device.recorded[i].address;
            }
        }
        is_accepted = s->subject.order_segments(device, given, count) == 0;
    }
    free(given);
    s->is_placed = is_accepted;
    return is_accepted ? GMD_OK : gmd_fail(error, GMD_FAILED, "gmd_order_segments was refused");
}

/* The device as it is before the allocator is loaded. */
static gmd_status prepare_device(gmd_session *s, gmd_error *error)
{
    gmd_status status = s->runtime.sim ? reset_device(s, error) : GMD_OK;
    if (status == GMD_OK) {
        frames_watch_waits(s, session_end_stuck);
        watch_allocator(s);
        status = count_devices(s, error);
    }
    if (status == GMD_OK) {
        status = measure_devices(s, error);
    }
    if (status != GMD_OK) {
        return status;
    }
    if (!s->runtime.sim) {
        s->runtime.cudaDeviceSynchronize(); /* makes the context, outside of what is timed */
        status = holds_open(&s->holds, &s->runtime, error);
        status = status == GMD_OK ? session_open_canaries(s, error) : status;
        if (status != GMD_OK) {
            return status;
        }
    }
    view_untouched(s); /* the allocator may take memory as soon as it is loaded */
    return GMD_OK;
}

/* Settings that come at its start but are no settings of its own. */
static gmd_status start_allocator(gmd_session *s, gmd_error *error)
{
    for (size_t i = 0;
         s->options->subject.has_all_quirks && s->subject.set_quirk && i < GMD_QUIRK_KINDS; i++) {
        s->subject.set_quirk(quirk_kinds[i].name, 1);
    }
    if (s->subject.init) {
        s->subject.init(s->device_count);
    }
    gmd_status status = order_segments(s, error);
    return status == GMD_OK ? set_limit(s, error) : status;
}

static gmd_status open_allocator(gmd_session *s, gmd_error *error)
{
    call_frame frame;
    enter_allocator(s, "gmd_init", &frame);
    const gmd_subject_source source = session_source(s->options);
    gmd_status status = gmd_subject_open(&s->subject, &source, error);
    if (status == GMD_OK && s->options->conditions.moves_clock) {
        host_clock_follow();
    }
    if (status == GMD_OK) {
        session_watch_exceptions(s);
        status = configure(s, error);
    }
    if (status == GMD_OK) {
        status = start_allocator(s, error);
    }
    leave_allocator(s, &frame);
    return status;
}

gmd_status session_open(gmd_session *session, const gmd_run_options *options,
                        const gmd_workload *workload, shared_run *shared, gmd_error *error)
{
    *session = (gmd_session){.options = options, .workload = workload, .shared = shared};
    gmd_status status = gmd_runtime_open(&session->runtime, options->device.kind,
                                         options->subject.lib_directory, error);
    streams_init(&session->streams, &session->runtime);
    if (status == GMD_OK) {
        status = prepare_device(session, error);
    }
    if (status == GMD_OK) {
        status = journal_writer_open(session, error);
    }
    if (status == GMD_OK) {
        status = open_allocator(session, error);
    }
    if (status != GMD_OK) {
        return status;
    }
    view_open(session);
    GMD_LOG(SESSION, "opened: %s on %s, device %s, settings '%s'", workload->name,
            options->subject.allocator, session->runtime.sim ? "simulated" : "real",
            options->conditions.conf ? options->conditions.conf : "");
    return view_open_judge(session, error);
}

/* While the allocator gives everything back to the device that goes: nobody judges that. */
static gmd_status restart_allocator(gmd_session *s, const char *conf, gmd_error *error)
{
    char message[512] = "";
    if (s->subject.restart(conf, message, sizeof message) == 0) {
        return GMD_OK;
    }
    message[sizeof message - 1] = '\0';
    return gmd_fail(error, GMD_BAD_INPUT, "settings '%s': %s", conf, message);
}

gmd_status session_renew(gmd_session *s, const gmd_run_options *options, gmd_error *error)
{
    const char *conf = options->conditions.conf ? options->conditions.conf : "";
    gmd_status status = restart_allocator(s, conf, error);
    if (status != GMD_OK) {
        return status;
    }
    session_forget(s);
    streams_forget(&s->streams);
    s->options = options;
    if (options->conditions.moves_clock) {
        host_clock_follow();
    }
    status = prepare_device(s, error);
    if (status != GMD_OK) {
        return status;
    }
    note_limit_of_settings(s, conf);
    call_frame frame;
    enter_allocator(s, "gmd_restart", &frame);
    status = start_allocator(s, error);
    leave_allocator(s, &frame);
    if (status != GMD_OK) {
        return status;
    }
    view_open(s);
    GMD_LOG(SESSION, "renewed: settings '%s'", conf);
    return view_open_judge(s, error);
}
