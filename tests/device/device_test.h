/* device_test.h - what the tests of the simulated device share: a fresh device for each, and words
 * that shorten them. */
#ifndef DEVICE_TEST_H
#define DEVICE_TEST_H

#include "gmd_sim.h"
#include "gmd_test.h"

#define MIB  ((uint64_t)1 << 20)
#define GIB  ((uint64_t)1 << 30)
#define PAGE GMD_SIM_PAGE_BYTES

#define assert_success(call) assert_int_equal(call, cudaSuccess)

static inline gmd_sim_config device_config(void)
{
    gmd_sim_config config;
    gmd_sim_default_config(&config);
    config.device_count = 1;
    config.capacity_bytes = GIB;
    return config;
}

static inline void device_reset(const gmd_sim_config *config)
{
    assert_int_equal(gmd_sim_reset(config), 0);
}

/* A cmocka setup: one device of 1 GiB, ascending, timed, unbacked. */
static inline int fresh_device(void **state)
{
    (void)state;
    gmd_sim_config config = device_config();
    gmd_sim_observe(NULL, NULL);
    return gmd_sim_reset(&config);
}

FIXTURE(fresh_device, fresh_device, NULL);

static inline void *device_malloc(size_t size)
{
    void *pointer = NULL;
    assert_success(cudaMalloc(&pointer, size));
    return pointer;
}

static inline uint64_t device_malloc_address(size_t size)
{
    return (uintptr_t)device_malloc(size);
}

static inline cudaStream_t new_stream(unsigned flags)
{
    cudaStream_t stream = NULL;
    assert_success(cudaStreamCreateWithFlags(&stream, flags));
    return stream;
}

static inline cudaEvent_t new_event(unsigned flags)
{
    cudaEvent_t event = NULL;
    assert_success(cudaEventCreateWithFlags(&event, flags));
    return event;
}

static inline void launch(cudaStream_t stream, uint64_t duration_ns)
{
    assert_success(gmd_sim_launch(stream, duration_ns, NULL, 0));
}

static inline gmd_sim_device_state device_state(int device)
{
    gmd_sim_device_state state;
    assert_int_equal(gmd_sim_device(device, &state), 0);
    return state;
}

#endif
