/* state.h - what the simulated device as a whole is: its configuration, its clock, and what it
 * counts of each of its devices. What else it keeps belongs to one file each.
 *
 * The layers, from the bottom, of which none includes a later one: this state, the lock, threads
 * and the record of a call; memory; streams and what is queued on them; what completes when; what
 * runs after what; pools; checks and resets (validity.h, control.h); and on top the API's
 * functions, each between call_enter and call_leave (calls.h), in the files *_calls.c and a few
 * more.
 *
 * Everything but the API's and the control functions is called with the runtime's lock held. */
#ifndef GMD_SIM_STATE_H
#define GMD_SIM_STATE_H

#include "gmd_min.h"
#include "gmd_random.h"
#include "gmd_sim.h"

#include <stdbool.h>
#include <stdint.h>

struct stream;

enum { LIMIT_COUNT = 3 }; /* stack, printf and malloc heap */

typedef struct sim_device {
    uint64_t physical_bytes, allocated_bytes, allocation_count, stream_count, event_count;
    uint64_t budget_bytes; /* gmd_sim_budget; UINT64_MAX: none */
    uint64_t reservation_count, reservation_bytes, handle_count, mapped_bytes;
    uint64_t next_large, next_small; /* GMD_SIM_ASCENDING: where the next allocation may begin */
    struct stream *legacy;           /* the default stream */
    unsigned flags;                  /* cudaSetDeviceFlags */
    size_t limits[LIMIT_COUNT];
    unsigned context_count;    /* cuDevicePrimaryCtxRetain without release */
    bool is_active;            /* its primary context exists */
    int error;                 /* sticky: every call returns it until a reset */
    bool is_error_noted;       /* some call has said so as misuse */
    uint64_t blocking_entries; /* ever queued on blocking streams other than the default */
} sim_device;

typedef struct sim_state {
    gmd_sim_config config;
    uint64_t epoch;    /* of resets; part of every handle */
    uint64_t now_ns;   /* the virtual clock */
    gmd_random random; /* state of the generator of GMD_SIM_RANDOM */
    uint64_t forced_waits;
    gmd_random schedule_random; /* state of the generator of GMD_SIM_SEEDED */
    size_t choices_used;
    uint64_t buffers; /* ever made, of device and page-locked host memory: their ids */
    uint32_t running; /* host functions, without the lock */
    size_t recorded_next, recorded_next_reservation;
    bool recorded_broken;       /* the recorded list no longer matches */
    bool is_driver_initialized; /* cuInit or any runtime call; stays, like the process's state */
    sim_device devices[GMD_SIM_DEVICE_MAX];
} sim_state;

extern sim_state sim;

static inline bool device_exists(int device)
{
    return device >= 0 && (uint32_t)device < sim.config.device_count;
}

/* Physical memory that the device can still give. */
static inline uint64_t memory_left(int device)
{
    uint64_t most = gmd_min(sim.devices[device].budget_bytes, sim.config.capacity_bytes);
    uint64_t taken = sim.devices[device].physical_bytes;
    return most > taken ? most - taken : 0;
}

/* Handles are numbers that are no addresses, so that following one faults: a kind (4 bits), the
 * reset that they belong to (18 bits) and a serial number (38 bits), so that a stale one is
 * recognised. */
enum {
    HANDLE_STREAM = 5,
    HANDLE_EVENT = 6,
    HANDLE_CONTEXT = 7,
    HANDLE_MEMORY = 8,
    HANDLE_POOL = 9,
    HANDLE_GRAPH = 12,
    HANDLE_GRAPH_NODE = 13,
    HANDLE_GRAPH_EXEC = 14
};
enum { HANDLE_SERIAL_BITS = 38 };

static inline uint64_t handle_make(int kind, uint64_t serial)
{
    return (uint64_t)kind << 60 | (sim.epoch & 0x3FFFF) << 42 | serial << 4;
}

/* The serial number of a handle of this kind and reset; 0: it is none. */
static inline uint64_t handle_serial(uint64_t handle, int kind)
{
    uint64_t rest = handle ^ handle_make(kind, 0);
    return rest >> (HANDLE_SERIAL_BITS + 4) == 0 && (rest & 0xF) == 0 ? rest >> 4 : 0;
}

#endif
