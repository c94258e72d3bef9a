#include "control.h"

#include "address_map.h"
#include "call_counts.h"
#include "capture.h"
#include "events.h"
#include "graphs.h"
#include "host_memory.h"
#include "lock.h"
#include "marks.h"
#include "memory.h"
#include "pages.h"
#include "placement.h"
#include "pools.h"
#include "queue.h"
#include "streams.h"
#include "validity.h"
#include "virtual_memory.h"

#include "gmd_assert.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CAPACITY_MAX     ((uint64_t)16 << 40)
#define CAPACITY_DEFAULT ((uint64_t)80 << 30)

/* A number from the environment; `fallback` where there is none in [least, most]. */
static uint64_t number_from(const char *variable, uint64_t least, uint64_t most, uint64_t fallback)
{
    const char *text = getenv(variable);
    if (!text) {
        return fallback;
    }
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno || end == text || *end || *text == '-' || value < least || value > most) {
        fprintf(stderr, "gmd: %s=%s is not a number from %llu to %llu; %llu is used\n", variable,
                text, (unsigned long long)least, (unsigned long long)most,
                (unsigned long long)fallback);
        return fallback;
    }
    return value;
}

static gmd_sim_schedule schedule_from(const char *variable)
{
    static const char *const names[] = {
        [GMD_SIM_TIMED] = "timed", [GMD_SIM_EAGER] = "eager", [GMD_SIM_LAZY] = "lazy"};
    const char *text = getenv(variable);
    for (int i = 0; text && i < 3; i++) {
        if (strcmp(text, names[i]) == 0) {
            return (gmd_sim_schedule)i;
        }
    }
    if (text) {
        fprintf(stderr, "gmd: %s=%s is not timed, eager or lazy; timed is used\n", variable, text);
    }
    return GMD_SIM_TIMED;
}

void gmd_sim_default_config(gmd_sim_config *config)
{
    *config = (gmd_sim_config){
        .struct_size = sizeof *config,
        .device_count = (uint32_t)number_from("GMD_SIM_DEVICES", 1, GMD_SIM_DEVICE_MAX, 1),
        .placement = GMD_SIM_ASCENDING,
        .schedule = schedule_from("GMD_SIM_SCHEDULE"),
        .backed = number_from("GMD_SIM_BACKED", 0, 1, 0) != 0};
    uint64_t most = CAPACITY_MAX;
    while (!placement_can_hold(config->device_count, most)) {
        most /= 2;
    }
    config->capacity_bytes =
        number_from("GMD_SIM_CAPACITY", GMD_SIM_PAGE_BYTES, most, CAPACITY_DEFAULT);
}

static bool is_possible(const gmd_sim_config *c)
{
    return c && c->struct_size == sizeof *c && c->device_count >= 1 &&
           c->device_count <= GMD_SIM_DEVICE_MAX && c->capacity_bytes >= GMD_SIM_PAGE_BYTES &&
           c->capacity_bytes <= CAPACITY_MAX &&
           placement_can_hold(c->device_count, c->capacity_bytes) &&
           (unsigned)c->placement <= GMD_SIM_RECORDED &&
           (unsigned)c->schedule <= GMD_SIM_EXPLICIT && (c->recorded || c->recorded_count == 0) &&
           (c->choices || c->choice_count == 0);
}

/* False: the host has no memory for the first tables, and nothing is changed. */
static bool reset(const gmd_sim_config *config)
{
    if (!pages_init() || !map_init() || !streams_init(config->device_count)) {
        return false;
    }
    if (sim.epoch) {
        GMD_ASSERT_VALID(sim.running ? NULL : sim_violation());
        memory_reset();
    }
    virtual_reset();
    host_reset();
    sim = (sim_state){.config = *config,
                      .epoch = sim.epoch + 1,
                      .random = {config->seed},
                      .schedule_random = {config->schedule_seed},
                      .is_driver_initialized = sim.is_driver_initialized};
    for (uint32_t d = 0; d < config->device_count; d++) {
        placement_reset_device((int)d);
    }
    marks_reset();
    counts_reset();
    pools_reset();
    captures_reset();
    graphs_reset();
    events_reset();
    map_reset();
    queues_reset();
    streams_reset();
    return true;
}

void sim_reset_to_default(void)
{
    gmd_sim_config config;
    gmd_sim_default_config(&config);
    if (!reset(&config)) {
        fprintf(stderr, "gmd: the simulated device cannot start: no memory for its tables\n");
        abort();
    }
}

int gmd_sim_reset(const gmd_sim_config *config)
{
    if (!is_possible(config)) {
        return -1;
    }
    sim_lock();
    bool done = reset(config);
    sim_unlock();
    return done ? 0 : -1;
}

void gmd_sim_restart_schedule(void)
{
    sim_lock();
    sim.schedule_random.state = sim.config.schedule_seed;
    sim.choices_used = 0;
    sim_unlock();
}

size_t gmd_sim_recorded_left(void)
{
    sim_lock();
    size_t left = sim.config.recorded_count - sim.recorded_next;
    sim_unlock();
    return left;
}
