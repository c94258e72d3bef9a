#include "replayer.h"

#include "device_costs.h"

#include "gmd_quirks.h"
#include "gmd_run_options.h"

#include <stdlib.h>
#include <string.h>

gmd_status replayer_open(replayer *r, const job_steps *steps, const gmd_recorded_places *places,
                         const char *lib_directory, gmd_error *error)
{
    const gmd_subject_source source = {.spec = "reference", .lib_directory = lib_directory};
    *r = (replayer){.steps = steps,
                    .places = places,
                    .blocks = calloc(steps->block_count + (size_t)1, sizeof *r->blocks),
                    .streams = calloc(steps->stream_count + (size_t)1, sizeof *r->streams)};
    if (!r->blocks || !r->streams) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for %u blocks", steps->block_count);
    }
    gmd_status status = gmd_runtime_open(&r->runtime, GMD_DEVICE_SIM, lib_directory, error);
    return status == GMD_OK ? gmd_subject_open(&r->subject, &source, error) : status;
}

void replayer_close(replayer *r)
{
    free(r->blocks);
    free(r->streams);
    *r = (replayer){0};
}

/* --- the device and the allocator, as new -------------------------------------------------------
 */

static void note_call(void *context, const gmd_sim_call *call)
{
    trial_result *result = ((const replayer *)context)->result;
    result->device_calls += call->kind != GMD_SIM_CALL_OTHER;
    result->device_ns += device_cost_ns(call);
}

static gmd_status reset_device(replayer *r, const trial_memory *memory, gmd_error *error)
{
    const gmd_sim_api *sim = r->runtime.sim;
    gmd_sim_config config;
    sim->gmd_sim_default_config(&config);
    config.device_count = 1;
    config.capacity_bytes = memory->capacity_bytes;
    config.schedule = GMD_SIM_TIMED;
    config.placement = GMD_SIM_RECORDED;
    config.recorded = r->places->segments;
    config.recorded_count = r->places->segment_count;
    config.recorded_reservations = r->places->reservations;
    config.recorded_reservation_count = r->places->reservation_count;
    if (sim->gmd_sim_reset(&config) != 0) {
        return gmd_fail(error, GMD_FAILED, "the simulated device refuses its configuration");
    }
    sim->gmd_sim_observe(note_call, r);
    return GMD_OK;
}

/* In the order of the recorded handles, which is the one in which a cache is given back. */
static gmd_status make_streams(replayer *r, gmd_error *error)
{
    for (uint32_t i = 1; i < r->steps->stream_count; i++) {
        if (r->runtime.cudaStreamCreateWithFlags(&r->streams[i], cudaStreamNonBlocking) !=
            cudaSuccess) {
            return gmd_fail(error, GMD_FAILED, "the simulated device makes no stream");
        }
    }
    return GMD_OK;
}

static void start_allocator(replayer *r, const trial_memory *memory)
{
    for (size_t i = 0; i < GMD_QUIRK_KINDS; i++) { /* PyTorch has them, and so will the job */
        r->subject.set_quirk(quirk_kinds[i].name, 1);
    }
    r->subject.init(1);
    if (memory->limit_bytes) {
        r->subject.set_memory_fraction(fraction_for(memory->limit_bytes, memory->capacity_bytes),
                                       0);
    }
}

static gmd_status renew(replayer *r, const char *conf, const trial_memory *memory, gmd_error *error)
{
    char message[300] = "";
    if (r->subject.restart(conf, message, sizeof message) != 0) {
        return gmd_fail(error, GMD_BAD_INPUT, "settings '%s': %s", conf, message);
    }
    memset(r->blocks, 0, r->steps->block_count * sizeof *r->blocks);
    gmd_status status = reset_device(r, memory, error);
    r->runtime.sim->gmd_sim_harness(true);
    status = status == GMD_OK ? make_streams(r, error) : status;
    r->runtime.sim->gmd_sim_harness(false);
    if (status == GMD_OK) {
        start_allocator(r, memory);
    }
    return status;
}

/* --- requests ------------------------------------------------------------------------------------
 */

/* False: it was refused. */
static bool serve(replayer *r, const job_step *step)
{
    void *memory = r->subject.malloc((size_t)step->bytes, 0, r->streams[step->stream]);
    bool is_refused = !memory && step->bytes > 0;
    r->blocks[step->block] =
        (replayed_block){.memory = memory, .bytes = step->bytes, .stream = step->stream};
    r->result->refused += is_refused;
    r->result->newly_refused += is_refused && !step->was_refused;
    r->result->newly_served += !is_refused && step->was_refused;
    return !is_refused;
}

static void give_back(replayer *r, replayed_block *b)
{
    r->subject.free(b->memory, (size_t)b->bytes, 0, r->streams[b->stream]);
    b->memory = NULL;
}

static void use(replayer *r, const replayed_block *b, const job_step *step)
{
    const gmd_sim_access access = {(uint64_t)(uintptr_t)b->memory, b->bytes, true};
    r->runtime.sim->gmd_sim_launch(r->streams[step->stream], step->duration_ns, &access, 1);
}

/* What concerns a block that was refused is left out, as a program would. */
static void do_on_block(replayer *r, const job_step *step)
{
    replayed_block *b = &r->blocks[step->block];
    if (!b->memory) {
        return;
    }
    switch (step->op) {
    case GMD_OP_FREE:
        give_back(r, b);
        return;
    case GMD_OP_USE:
        use(r, b, step);
        return;
    default:
        r->subject.record_stream(b->memory, r->streams[step->stream]);
    }
}

static void play(replayer *r, bool stops)
{
    for (size_t i = 0; i < r->steps->count; i++) {
        const job_step *step = &r->steps->items[i];
        switch (step->op) {
        case GMD_OP_ALLOC:
            if (!serve(r, step) && stops) {
                return;
            }
            break;
        case GMD_OP_ADVANCE:
            r->runtime.sim->gmd_sim_advance(step->duration_ns);
            break;
        case GMD_OP_EMPTY_CACHE:
            r->subject.empty_cache();
            break;
        default:
            do_on_block(r, step);
        }
    }
}

gmd_status replayer_run(replayer *r, const char *conf, const trial_memory *memory, bool stops,
                        trial_result *result, gmd_error *error)
{
    gmd_stats stats = {.struct_size = sizeof stats};
    *result = (trial_result){0};
    r->result = result;
    gmd_status status = renew(r, conf, memory, error);
    if (status != GMD_OK) {
        return status;
    }
    play(r, stops);
    r->runtime.sim->gmd_sim_observe(NULL, NULL); /* the next restart gives back what is left */
    if (r->subject.get_stats(0, &stats) != 0) {
        return gmd_fail(error, GMD_FAILED, "the reference allocator tells no statistics");
    }
    result->peak_allocated = stats.allocated_bytes_peak;
    result->peak_reserved = stats.reserved_bytes_peak;
    result->retries = stats.num_alloc_retries;
    return GMD_OK;
}
