/* Several threads on one device; run it under TSan too. */
#include "device_test.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, STEPS = 500 };

static uint64_t observed;

static void count(void *context, const gmd_sim_call *call)
{
    (void)context;
    (void)call;
    __atomic_fetch_add(&observed, 1, __ATOMIC_RELAXED);
}

/* Asserts nothing: cmocka's assertions belong to the main thread. Returns the failures. */
static void *work(void *argument)
{
    (void)argument;
    uintptr_t failures = 0;
    cudaStream_t stream;
    cudaEvent_t event;
    failures += cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess;
    failures += cudaEventCreateWithFlags(&event, cudaEventDisableTiming) != cudaSuccess;
    for (int i = 0; i < STEPS; i++) {
        void *pointer;
        failures += cudaMalloc(&pointer, (size_t)(i % 9 + 1) << 18) != cudaSuccess;
        failures += gmd_sim_launch(stream, 10, NULL, 0) != cudaSuccess;
        failures += cudaEventRecord(event, stream) != cudaSuccess;
        failures += cudaEventSynchronize(event) != cudaSuccess;
        failures += cudaFree(pointer) != cudaSuccess;
    }
    failures += cudaEventDestroy(event) != cudaSuccess;
    failures += cudaStreamDestroy(stream) != cudaSuccess;
    return (void *)failures;
}

TEST_F(fresh_device, threads_share_a_device_without_harm)
{
    gmd_sim_observe(count, NULL);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, work, NULL), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *failures;
        assert_int_equal(pthread_join(threads[i], &failures), 0);
        assert_null(failures);
    }
    gmd_sim_device_state now = device_state(0);
    assert_int_equal(now.physical_bytes + now.stream_count + now.event_count, 0);
    assert_int_equal(gmd_sim_call_count("cudaMalloc"), THREADS * STEPS);
    assert_int_equal(observed, THREADS * (5 * STEPS + 4));
}

static struct {
    const char *function[8];
    bool is_before[8];
    uint64_t calls_so_far[8]; /* cudaMalloc calls that the runtime had counted by then */
    size_t count;
} yields;

static void note_yield(void *context, const char *function, bool is_before)
{
    assert_ptr_equal(context, &yields);
    yields.calls_so_far[yields.count] = gmd_sim_call_count("cudaMalloc"); /* takes the lock */
    yields.function[yields.count] = function;
    yields.is_before[yields.count++] = is_before;
}

TEST_F(fresh_device, a_yield_hook_runs_before_and_after_a_call_outside_the_lock)
{
    void *pointer;
    gmd_sim_set_yield(note_yield, &yields);
    cudaError_t result = cudaMalloc(&pointer, 512);
    gmd_sim_set_yield(NULL, NULL);
    assert_int_equal(result, cudaSuccess);
    assert_int_equal(yields.count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_string_equal(yields.function[i], "cudaMalloc");
        assert_int_equal(yields.is_before[i], i == 0);
        assert_int_equal(yields.calls_so_far[i], i);
    }
    cudaFree(pointer);
    assert_int_equal(yields.count, 2);
}

static void *look(void *argument)
{
    int *seen = argument;
    seen[0] = (int)cudaPeekAtLastError();
    cudaGetDevice(&seen[1]);
    return NULL;
}

TEST_F(fresh_device, errors_and_the_current_device_belong_to_the_thread)
{
    gmd_sim_config config = device_config();
    config.device_count = 2;
    device_reset(&config);
    assert_success(cudaSetDevice(1));
    assert_int_equal(cudaSetDevice(9), cudaErrorInvalidDevice);
    int seen[2] = {-1, -1};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, look, seen), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(seen[0], cudaSuccess);
    assert_int_equal(seen[1], 0);
    assert_int_equal(cudaGetLastError(), cudaErrorInvalidDevice);
}

TEST_F(fresh_device, a_forked_child_goes_on_with_a_copy_of_the_device)
{
    void *pointer = device_malloc(MIB);
    pid_t child = fork();
    if (child == 0) {
        void *more;
        _exit(cudaFree(pointer) == cudaSuccess && cudaMalloc(&more, GIB) == cudaSuccess ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(device_state(0).allocation_count, 1);
    assert_success(cudaFree(pointer));
}
