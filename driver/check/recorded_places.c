#include "gmd_recorded_places.h"

#include "gmd_size.h"

#include <stdlib.h>

/* PyTorch reserves addresses for nine eighths of the device's memory, in pages of up to 20 MiB. */
static uint64_t most_memory(const gmd_history *history)
{
    uint64_t nearest = history->nearest_reservations;
    return nearest > 100 * GMD_MIB
               ? (nearest - 20 * GMD_MIB) / 9 * 8 / (2 * GMD_MIB) * (2 * GMD_MIB)
               : 0;
}

gmd_status gmd_recorded_places_make(gmd_recorded_places *places, const gmd_history *history,
                                    const char *name, gmd_error *error)
{
    *places = (gmd_recorded_places){
        .segments = malloc((history->call_count + 1) * sizeof *places->segments),
        .reservations = malloc((history->call_count + 1) * sizeof *places->reservations),
        .most_memory = most_memory(history)};
    if (!places->segments || !places->reservations) {
        gmd_recorded_places_free(places);
        return gmd_fail(error, GMD_NO_MEMORY, "%s: no host memory", name);
    }
    for (size_t i = 0; i < history->call_count; i++) {
        const gmd_recorded_call *call = &history->calls[i];
        if (!call->is_mapping && !call->is_free) {
            places->segments[places->segment_count++] = (gmd_sim_recorded){
                .address = call->address, .size = call->size, .device = call->device};
        }
        if (call->opens_segment) { /* its reservation is placed where its first pages are */
            places->reservations[places->reservation_count++] = call->address;
        }
    }
    return GMD_OK;
}

void gmd_recorded_places_free(gmd_recorded_places *places)
{
    free(places->segments);
    free(places->reservations);
    *places = (gmd_recorded_places){0};
}
