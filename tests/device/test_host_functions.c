/* Host functions: when they run, what they may do, and what the host knows by them. */
#include "device_test.h"

#include <pthread.h>

static int runs, of_malloc;
static gmd_sim_point seen_work;
static bool was_known;

static void count(void *unused)
{
    (void)unused;
    runs++;
}

static void try_malloc(void *memory)
{
    of_malloc = (int)cudaMalloc(memory, 512);
}

static void look(void *unused)
{
    (void)unused;
    was_known = gmd_sim_is_known(seen_work); /* not yet: the function itself has not returned */
}

static void *launch_one(void *stream)
{
    return (void *)(uintptr_t)gmd_sim_launch(stream, 1000, NULL, 0);
}

static void let_another_thread_launch(void *stream)
{
    pthread_t thread;
    pthread_create(&thread, NULL, launch_one, stream);
    pthread_join(thread, NULL);
}

static int set_up(void **state)
{
    runs = of_malloc = 0;
    return fresh_device(state);
}

FIXTURE(host_functions, set_up, NULL);

TEST_F(host_functions, it_runs_when_the_clock_reaches_it)
{
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    assert_success(gmd_sim_launch(stream, 1000, NULL, 0));
    assert_success(cudaLaunchHostFunc(stream, count, NULL));
    gmd_sim_advance(999);
    assert_int_equal(runs, 0);
    gmd_sim_advance(1);
    assert_int_equal(runs, 1);
}

TEST_F(host_functions, it_runs_at_once_on_an_eager_device)
{
    gmd_sim_config config = device_config();
    config.schedule = GMD_SIM_EAGER;
    device_reset(&config);
    assert_success(cudaLaunchHostFunc(NULL, count, NULL));
    assert_int_equal(runs, 1);
}

TEST_F(host_functions, it_runs_before_a_synchronising_call_returns)
{
    gmd_sim_config config = device_config();
    config.schedule = GMD_SIM_LAZY;
    device_reset(&config);
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    assert_success(cudaLaunchHostFunc(stream, count, NULL));
    assert_int_equal(runs, 0);
    assert_success(cudaStreamSynchronize(stream));
    assert_int_equal(runs, 1);
}

TEST_F(host_functions, calls_in_it_are_refused_and_misuse)
{
    void *memory;
    assert_success(cudaLaunchHostFunc(NULL, try_malloc, &memory));
    assert_success(cudaDeviceSynchronize());
    assert_int_equal(of_malloc, cudaErrorNotPermitted);
    assert_int_equal(gmd_sim_misuse_count(), 1);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
}

/* It has run without any synchronising call: what it saw, the host knows all the same. */
TEST_F(host_functions, the_host_knows_what_it_ran_after)
{
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    cudaStream_t other = new_stream(cudaStreamNonBlocking);
    cudaEvent_t event;
    assert_success(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    assert_success(gmd_sim_launch(other, 1000, NULL, 0));
    assert_int_equal(gmd_sim_point_of(0, other, &seen_work), 0);
    assert_success(cudaEventRecord(event, other));
    assert_success(cudaStreamWaitEvent(stream, event, 0));
    assert_success(cudaLaunchHostFunc(stream, look, NULL));
    gmd_sim_advance(1000);
    assert_false(was_known);
    assert_true(gmd_sim_is_known(seen_work));
}

TEST_F(host_functions, work_that_is_only_complete_is_not_known)
{
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    cudaStream_t other = new_stream(cudaStreamNonBlocking);
    gmd_sim_point work;
    assert_success(gmd_sim_launch(other, 1000, NULL, 0));
    assert_int_equal(gmd_sim_point_of(0, other, &work), 0);
    assert_success(cudaLaunchHostFunc(stream, count, NULL));
    gmd_sim_advance(2000);
    assert_int_equal(runs, 1);
    assert_false(gmd_sim_is_known(work));
}

TEST_F(host_functions, what_another_thread_queues_meanwhile_has_not_been_waited_for)
{
    gmd_sim_config config = device_config();
    config.schedule = GMD_SIM_LAZY;
    device_reset(&config);
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    gmd_sim_point work;
    assert_success(cudaLaunchHostFunc(stream, let_another_thread_launch, stream));
    assert_success(cudaStreamSynchronize(stream));
    assert_int_equal(gmd_sim_point_of(0, stream, &work), 0);
    assert_false(gmd_sim_is_complete(work));
    assert_false(gmd_sim_is_known(work));
}

TEST_F(host_functions, a_broken_device_runs_none)
{
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    const gmd_sim_access wild = {.address = 16, .size = 4};
    assert_success(gmd_sim_launch(stream, 1000, &wild, 1));
    assert_success(cudaLaunchHostFunc(stream, count, NULL));
    assert_int_equal(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
    assert_int_equal(runs, 0);
}

TEST_F(host_functions, a_wait_for_a_value_that_never_comes_ends)
{
    gmd_sim_config config = device_config();
    config.backed = true;
    device_reset(&config);
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    CUdeviceptr address = device_malloc_address(4096);
    assert_int_equal(cuStreamWaitValue32_v2(stream, address, 7, CU_STREAM_WAIT_VALUE_EQ), 0);
    assert_success(cudaStreamSynchronize(stream));
}
