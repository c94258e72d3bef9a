/* device_state.h - what a snapshot shows of a device, copied so that it can be written while others
 * work on. */
#ifndef GMD_DEVICE_STATE_H
#define GMD_DEVICE_STATE_H

#include "device_allocator.h"

typedef struct block_state {
    uint64_t address, size, requested_size;
    uint32_t stack; /* of an allocated block's allocation; 0: none */
    int state;      /* as in gmd_block_info */
} block_state;

typedef struct segment_state {
    uint64_t address, total_size, allocated_size, active_size, requested_size;
    cudaStream_t stream;
    uint64_t pool_id[2];
    uint32_t stack; /* of the request that made it */
    bool is_large, is_expandable;
    size_t first_block, block_count;
} segment_state;

typedef struct device_state {
    segment_state *segments; /* in ascending order of addresses, as the blocks are */
    block_state *blocks;
    size_t segment_count, segment_capacity, block_count, block_capacity;
    history_event *events; /* in the order of happening */
    size_t event_count;
    ticks_moment start, end; /* of the recording: they convert the events' times */
} device_state;

/* Takes the device for itself as long as it takes. False: no host memory; to be released all the
 * same. */
bool device_state_copy(device_state *s, device_allocator *d);
void device_state_release(device_state *s);

#endif
