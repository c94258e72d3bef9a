#include "memory_limits.h"

#include "gmd_min.h"
#include "gmd_sim.h"

void limits_open(memory_limits *l, int device, uint64_t total)
{
    l->total[device] = total;
    l->bytes[device] = l->budget[device] = UINT64_MAX;
    l->is_unknown[device] = false;
}

void limits_start(memory_limits *l, int device)
{
    l->at_start[device] = l->bytes[device];
}

void limits_set(memory_limits *l, int device, uint64_t bytes)
{
    l->bytes[device] = bytes;
    l->is_unknown[device] = false;
}

void limits_set_unknown(memory_limits *l, int device)
{
    l->bytes[device] = UINT64_MAX;
    l->is_unknown[device] = true;
}

void limits_set_budget(memory_limits *l, int device, uint64_t bytes)
{
    l->budget[device] = bytes;
}

bool limits_have_changed(const memory_limits *l, int device)
{
    return l->is_unknown[device] || l->bytes[device] != l->at_start[device];
}

void limits_restart(memory_limits *l, int device)
{
    limits_set(l, device, l->at_start[device]);
}

static uint64_t left_of(uint64_t bound, uint64_t taken)
{
    return bound > taken ? bound - taken : 0;
}

uint64_t limits_room(const memory_limits *l, int device, const gmd_device_figures *now,
                     uint64_t held)
{
    if (l->is_unknown[device]) {
        return GMD_STAT_UNKNOWN;
    }
    uint64_t memory = gmd_min(now->capacity_bytes, l->budget[device]);
    memory -= memory % GMD_SIM_PAGE_BYTES; /* which the device hands out in whole pages */
    uint64_t by_device = left_of(memory, now->physical_bytes);
    uint64_t by_limit = left_of(l->bytes[device], held);
    return gmd_min(by_limit, by_device);
}
