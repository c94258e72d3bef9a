/* Every call of CUDA is made on the allocator's device, whatever the calling thread's is. */
#include "allocator_test.h"

#include <string.h>

/* --- a device that cannot be made the current one ---------------------------------------- */

/* The device does not matter to these. */
static bool is_free_to_be_asked(const char *function)
{
    static const char *const names[] = {"cudaGetDevice", "cudaGetLastError",
                                        "cudaStreamIsCapturing", "cudaEventDestroy",
                                        "cuMemAddressFree"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(function, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

static void note_call(void *context, const gmd_sim_call *call)
{
    const char **first = context;
    if (!*first && !is_free_to_be_asked(call->function)) {
        *first = call->function;
    }
}

/* Free blocks of both pools, and a live one that another stream works on. */
static uint64_t open_used_bench(bench *b, const char *conf)
{
    *b = open_bench(GMD_GIB, conf);
    assert_int_equal(gmd_allocator_record_history(b->a, 100, GMD_STACKS_OFF, NULL), GMD_OK);
    give(b, take(b, 512));
    give(b, take(b, 30 * GMD_MIB));
    uint64_t used = take(b, 512), pending = take(b, 512);
    record(b, used, b->s2);
    record(b, pending, b->s2);
    work(b->s2, 1000);
    give(b, pending);
    gmd_sim_advance(1000);
    return used;
}

static void ask_for_all(const bench *b, uint64_t used)
{
    give(b, used);
    assert_int_equal(take(b, 100 * GMD_MIB), 0);
    gmd_allocator_empty_cache(b->a);
    gmd_allocator_forget_stream(b->a, 0, b->s2);
    assert_false(gmd_allocator_set_memory_fraction(b->a, 0.5, 0));
    assert_int_not_equal(gmd_allocator_yield_memory(b->a, 0, NULL), GMD_OK);
}

TEST_F(bench, nothing_is_asked_of_a_device_that_cannot_be_entered)
{
    static const char *const confs[] = {"", "expandable_segments:True"};
    for (int i = 0; i < 2; i++) {
        bench b;
        const char *asked = NULL;
        uint64_t used = open_used_bench(&b, confs[i]);
        assert_int_equal(gmd_sim_fault("cudaGetDevice", 1, true, cudaErrorInvalidDevice), 0);
        gmd_sim_observe(note_call, &asked);
        ask_for_all(&b, used);
        gmd_sim_observe(NULL, NULL);
        gmd_sim_clear_faults();
        if (asked) {
            fail_msg("%s was called", asked);
        }
        gmd_allocator_empty_cache(b.a); /* nothing was lost */
        assert_int_equal(device_state().physical_bytes, 0);
        expect_no_error_left();
        close_bench(&b);
    }
}

/* --- a thread whose current device is another one ---------------------------------------- */

static bool is_about_devices(const char *function)
{
    return strcmp(function, "cudaSetDevice") == 0 ||
           strcmp(function, "cudaGetDriverEntryPointByVersion") == 0 ||
           is_free_to_be_asked(function);
}

static void note_call_elsewhere(void *context, const gmd_sim_call *call)
{
    const char **first = context;
    gmd_sim_thread_state thread;
    gmd_sim_thread(&thread);
    if (!*first && thread.device != 0 && !is_about_devices(call->function)) {
        *first = call->function;
    }
}

static void use_all(const bench *b)
{
    uint64_t used = take(b, 512), pending = take(b, 30 * GMD_MIB);
    if (used && pending) {
        record(b, used, b->s2);
        record(b, pending, b->s2);
        give(b, pending);
    }
    take(b, 2 * GMD_GIB);
    gmd_allocator_forget_stream(b->a, 0, b->s2);
    gmd_allocator_empty_cache(b->a);
    gmd_allocator_set_memory_fraction(b->a, 0.5, 0);
    if (gmd_allocator_yield_memory(b->a, 0, NULL) == GMD_OK) {
        gmd_allocator_restore_memory(b->a, 0, NULL);
    }
}

/* True: the kth attempt to change the device was reached, and refused. */
static bool stays_on_its_device(const char *conf, uint64_t k)
{
    gmd_sim_config config;
    gmd_sim_default_config(&config);
    config.device_count = 2;
    config.capacity_bytes = GMD_GIB;
    bench b = open_bench_on(&config, conf);
    const char *elsewhere = NULL;
    assert_int_equal(gmd_allocator_record_history(b.a, 100, GMD_STACKS_OFF, NULL), GMD_OK);
    assert_int_equal(cudaSetDevice(1), cudaSuccess);
    uint64_t before = gmd_sim_call_count("cudaSetDevice");
    assert_int_equal(gmd_sim_fault("cudaSetDevice", k, false, cudaErrorInvalidDevice), 0);
    gmd_sim_observe(note_call_elsewhere, &elsewhere);
    use_all(&b);
    close_bench(&b);
    gmd_sim_observe(NULL, NULL);
    if (elsewhere) {
        fail_msg("%s was called on another device", elsewhere);
    }
    return gmd_sim_call_count("cudaSetDevice") - before >= k;
}

TEST(calls_are_made_on_the_allocator_s_device_or_not_at_all)
{
    static const char *const confs[] = {"", "expandable_segments:True"};
    for (int i = 0; i < 2; i++) {
        for (uint64_t k = 1; stays_on_its_device(confs[i], k); k++) {
        }
    }
}
