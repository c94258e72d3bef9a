/* Queued work that touches memory. Whether it may is decided when it runs, not when it is queued:
 * an allocator that gives memory back too early is found by what still ran on it. */
#include "accesses.h"

#include "marked_memory.h"
#include "memory.h"
#include "state.h"

#include <stdlib.h>

bool accesses_keep(access_list *list, const gmd_sim_access *accesses, size_t count)
{
    access_range *ranges = list->few;
    list->more = NULL;
    list->count = 0;
    list->mark = 0;
    if (count > UINT32_MAX) {
        return false;
    }
    if (count > ACCESSES_INLINE) {
        ranges = list->more = malloc(count * sizeof *ranges);
        if (!ranges) {
            return false;
        }
    }
    for (size_t i = 0; i < count; i++) {
        ranges[i] = (access_range){.address = accesses[i].address, .size = accesses[i].size};
    }
    list->count = (uint32_t)count;
    return true;
}

void accesses_drop(access_list *list)
{
    free(list->more);
    list->more = NULL;
}

void accesses_carry_out(const access_list *list, int device)
{
    const access_range *ranges = list->more ? list->more : list->few;
    for (uint32_t i = 0; i < list->count; i++) {
        if (!memory_is_there(ranges[i].address, ranges[i].size, device)) {
            device_break(device);
        }
        if (list->mark) {
            marks_write(ranges[i].address, ranges[i].size, list->mark);
        }
    }
}

/* As a real device: the context is lost, and all that is done with it fails alike. */
void device_break(int device)
{
    sim.devices[device].error = cudaErrorIllegalAddress;
}
