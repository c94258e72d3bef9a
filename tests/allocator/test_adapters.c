/* The adapters for CUDA's own allocators: their figures follow the device in every order of
 * threads, and a call of CUDA that fails costs no block, leaves no error and no stream. */
#include "gmd_abi.h"
#include "gmd_cuda.h"
#include "gmd_sim.h"
#include "gmd_test.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#define MIB   ((uint64_t)1 << 20)
#define CHUNK (32 * MIB)

static struct {
    void *library;
    void (*init)(int count);
    void *(*malloc)(size_t size, int device, cudaStream_t stream);
    void (*free)(void *ptr, size_t size, int device, cudaStream_t stream);
    void (*record_stream)(void *ptr, cudaStream_t stream);
    void (*forget_stream)(int device, cudaStream_t stream);
    void (*empty_cache)(void);
    int (*get_stats)(int device, gmd_stats *out);
    const char *(*last_error)(void);
} adapter;

static void bind(const char *name, void *function)
{
    void *found = dlsym(adapter.library, name);
    memcpy(function, &found, sizeof found);
}

static int open_adapter(const char *path)
{
    gmd_sim_config config;
    gmd_sim_default_config(&config);
    config.device_count = 1;
    config.capacity_bytes = 256 * MIB;
    adapter.library = gmd_sim_reset(&config) == 0 ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!adapter.library) {
        return -1;
    }
    bind("gmd_init", &adapter.init);
    bind("gmd_malloc", &adapter.malloc);
    bind("gmd_free", &adapter.free);
    bind("gmd_record_stream", &adapter.record_stream);
    bind("gmd_forget_stream", &adapter.forget_stream);
    bind("gmd_empty_cache", &adapter.empty_cache);
    bind("gmd_get_stats", &adapter.get_stats);
    bind("gmd_last_error", &adapter.last_error);
    if (adapter.init) {
        adapter.init(1);
    }
    return 0;
}

static int with_cudamalloc(void **state)
{
    (void)state;
    return open_adapter(GMD_TEST_LIB_DIR "/libgmd_cudamalloc.so");
}

static int with_cudamallocasync(void **state)
{
    (void)state;
    return open_adapter(GMD_TEST_LIB_DIR "/libgmd_cudamallocasync.so");
}

static int close_adapter(void **state)
{
    (void)state;
    gmd_sim_set_yield(NULL, NULL);
    gmd_sim_clear_faults();
    return dlclose(adapter.library);
}

FIXTURE(cudamalloc, with_cudamalloc, close_adapter);
FIXTURE(cudamallocasync, with_cudamallocasync, close_adapter);

#define FOR_CUDAMALLOC(name)                                                                       \
    GMD_TEST("cudamalloc: " #name, cudamalloc_##name, &gmd_fixture_cudamalloc)
#define FOR_CUDAMALLOCASYNC(name)                                                                  \
    GMD_TEST("cudamallocasync: " #name, cudamallocasync_##name, &gmd_fixture_cudamallocasync)

static cudaStream_t new_stream(void)
{
    cudaStream_t stream = NULL;
    assert_int_equal(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    return stream;
}

static gmd_stats stats(void)
{
    gmd_stats s = {.struct_size = sizeof s};
    assert_int_equal(adapter.get_stats(0, &s), 0);
    return s;
}

static gmd_sim_device_state device(void)
{
    gmd_sim_device_state state;
    assert_int_equal(gmd_sim_device(0, &state), 0);
    return state;
}

/* A block of stream `owner`, as large as a chunk of the pool, that `user` has used. */
static void *recorded_block(cudaStream_t owner, cudaStream_t user)
{
    void *block = adapter.malloc(CHUNK, 0, owner);
    assert_non_null(block);
    gmd_sim_access access = {.address = (uintptr_t)block, .size = CHUNK, .is_write = true};
    assert_int_equal(gmd_sim_launch(user, 1000, &access, 1), cudaSuccess);
    adapter.record_stream(block, user);
    return block;
}

/* --- what fails --------------------------------------------------------------------------- */

FOR_CUDAMALLOC(a_block_that_was_not_taken_stays_reserved)
{
    void *block = adapter.malloc(MIB, 0, NULL);
    gmd_sim_fault("cudaFree", 1, false, cudaErrorUnknown);
    adapter.free(block, MIB, 0, NULL);
    assert_int_equal(stats().allocated_bytes, 0);
    assert_int_equal(stats().reserved_bytes, MIB);
}

FOR_CUDAMALLOC(a_block_that_was_not_taken_is_offered_again_by_empty_cache)
{
    void *block = adapter.malloc(MIB, 0, NULL);
    gmd_sim_fault("cudaFree", 1, false, cudaErrorUnknown);
    adapter.free(block, MIB, 0, NULL);
    adapter.empty_cache();
    assert_int_equal(device().allocated_bytes, 0);
    assert_int_equal(stats().reserved_bytes, 0);
}

FOR_CUDAMALLOC(a_block_that_was_not_taken_makes_room_for_the_next)
{
    void *block = adapter.malloc(200 * MIB, 0, NULL);
    gmd_sim_fault("cudaFree", 1, false, cudaErrorUnknown);
    adapter.free(block, 200 * MIB, 0, NULL);
    assert_non_null(adapter.malloc(200 * MIB, 0, NULL));
}

FOR_CUDAMALLOC(a_failed_free_leaves_no_cuda_error)
{
    void *block = adapter.malloc(MIB, 0, NULL);
    gmd_sim_fault("cudaFree", 1, false, cudaErrorUnknown);
    adapter.free(block, MIB, 0, NULL);
    assert_int_equal(cudaPeekAtLastError(), cudaSuccess);
}

static void free_twice(void)
{
    void *block = adapter.malloc(MIB, 0, NULL);
    adapter.free(block, MIB, 0, NULL);
    adapter.free(block, MIB, 0, NULL);
    assert_non_null(adapter.last_error());
    assert_int_equal(stats().allocation_count, 0);
}

FOR_CUDAMALLOC(a_second_free_is_told_and_changes_nothing)
{
    free_twice();
}

/* --- threads ------------------------------------------------------------------------------ */

/* Between a call of CUDA and what is written of it, another thread asks for the statistics: it
 * must not be let in. */
static void *read_stats(void *out)
{
    gmd_stats *s = out;
    s->struct_size = sizeof *s;
    adapter.get_stats(0, s);
    return NULL;
}

typedef struct reader {
    pthread_t thread;
    gmd_stats seen;
    bool is_started;
} reader;

static void read_after_the_free(void *context, const char *function, bool is_before)
{
    reader *r = context;
    if (!is_before && strcmp(function, "cudaFree") == 0 && !r->is_started) {
        r->is_started = true;
        assert_int_equal(pthread_create(&r->thread, NULL, read_stats, &r->seen), 0);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL); /* time enough to come in */
    }
}

FOR_CUDAMALLOC(nobody_sees_figures_behind_the_device)
{
    reader r = {.is_started = false};
    void *block = adapter.malloc(MIB, 0, NULL);
    gmd_sim_set_yield(read_after_the_free, &r);
    adapter.free(block, MIB, 0, NULL);
    assert_true(r.is_started);
    assert_int_equal(pthread_join(r.thread, NULL), 0);
    assert_int_equal(r.seen.reserved_bytes, 0);
}

FOR_CUDAMALLOCASYNC(a_second_free_is_told_and_changes_nothing)
{
    free_twice();
}

/* Whichever call of a recorded free fails, once or from then on until it has returned. */
static void a_recorded_block_survives_the_failure_of(const char *function, bool every_later)
{
    cudaStream_t owner = new_stream(), user = new_stream();
    uint64_t streams = device().stream_count;
    void *block = recorded_block(owner, user);
    gmd_sim_fault(function, 1, every_later, cudaErrorUnknown);
    adapter.free(block, CHUNK, 0, owner);
    gmd_sim_clear_faults();
    assert_int_equal(cudaPeekAtLastError(), cudaSuccess);
    adapter.empty_cache();
    assert_int_equal(device().allocated_bytes, 0);
    assert_int_equal(device().stream_count, streams);
    assert_int_equal(device().event_count, 0);
}

FOR_CUDAMALLOCASYNC(a_recorded_block_survives_any_failure)
{
    static const char *const functions[] = {
        "cudaGetDevice",   "cudaStreamCreateWithFlags", "cudaEventCreateWithFlags",
        "cudaEventRecord", "cudaStreamWaitEvent",       "cudaFreeAsync",
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        a_recorded_block_survives_the_failure_of(functions[i], false);
        a_recorded_block_survives_the_failure_of(functions[i], true);
    }
}

/* The gate fails, and the free comes in the end without it: the host has waited by then. */
FOR_CUDAMALLOCASYNC(a_block_that_is_freed_again_has_no_work_left)
{
    cudaStream_t owner = new_stream(), user = new_stream();
    gmd_sim_point use;
    void *block = recorded_block(owner, user);
    assert_int_equal(gmd_sim_point_of(0, user, &use), 0);
    gmd_sim_fault("cudaStreamWaitEvent", 1, false, cudaErrorUnknown);
    adapter.free(block, CHUNK, 0, owner);
    assert_true(gmd_sim_is_known(use));
}

/* --- the gate ----------------------------------------------------------------------------- */

FOR_CUDAMALLOCASYNC(recorded_frees_share_one_stream)
{
    cudaStream_t owner = new_stream(), user = new_stream();
    uint64_t streams = device().stream_count;
    for (int i = 0; i < 10; i++) {
        adapter.free(recorded_block(owner, user), CHUNK, 0, owner);
    }
    assert_int_equal(device().stream_count, streams + 1);
}

FOR_CUDAMALLOCASYNC(an_emptied_cache_has_no_stream_and_no_event)
{
    cudaStream_t owner = new_stream(), user = new_stream();
    uint64_t streams = device().stream_count;
    adapter.free(recorded_block(owner, user), CHUNK, 0, owner);
    adapter.empty_cache();
    assert_int_equal(device().stream_count, streams);
    assert_int_equal(device().event_count, 0);
}

FOR_CUDAMALLOCASYNC(a_recorded_stream_may_be_gone_before_the_free)
{
    cudaStream_t owner = new_stream(), user = new_stream();
    gmd_sim_point use;
    void *block = recorded_block(owner, user);
    assert_int_equal(gmd_sim_point_of(0, user, &use), 0);
    adapter.forget_stream(0, user);
    assert_int_equal(cudaStreamDestroy(user), cudaSuccess);
    adapter.free(block, CHUNK, 0, owner);
    assert_null(adapter.last_error());
    assert_int_equal(gmd_sim_budget(0, CHUNK), 0); /* nothing else is to be had */
    assert_ptr_equal(adapter.malloc(CHUNK, 0, owner), block);
    assert_true(gmd_sim_is_ordered(use, 0, owner));
}

/* Neither the gate nor the host can wait for the stream while it is there. */
FOR_CUDAMALLOCASYNC(a_stream_that_is_gone_is_asked_nothing)
{
    cudaStream_t owner = new_stream(), user = new_stream();
    gmd_sim_point use;
    void *block = recorded_block(owner, user);
    assert_int_equal(gmd_sim_point_of(0, user, &use), 0);
    gmd_sim_fault("cudaGetDevice", 1, false, cudaErrorUnknown);
    adapter.forget_stream(0, user);
    assert_int_equal(cudaStreamDestroy(user), cudaSuccess);
    uint64_t misuse = gmd_sim_misuse_count();
    adapter.free(block, CHUNK, 0, owner);
    assert_int_equal(gmd_sim_misuse_count(), misuse);
    assert_true(gmd_sim_is_known(use));
}
