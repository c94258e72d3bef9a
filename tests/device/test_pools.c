/* Stream-ordered memory pools: who may have a freed piece, and what a pool counts as reserved. */
#include "device_test.h"

static void *allocate_on(cudaStream_t stream, size_t size)
{
    void *pointer = NULL;
    assert_success(cudaMallocAsync(&pointer, size, stream));
    return pointer;
}

static uint64_t reserved(void)
{
    cudaMemPool_t pool;
    uint64_t bytes = 0;
    assert_success(cudaDeviceGetDefaultMemPool(&pool, 0));
    assert_success(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &bytes));
    return bytes;
}

/* The stream of the free has waited for another one; by the time its piece is handed out, it has
 * waited for more and forgotten what its past was then. */
static void a_new_owner_comes_after_all_that_the_free_came_after(void **state)
{
    (void)state;
    gmd_sim_config config = device_config();
    config.schedule = GMD_SIM_LAZY;
    device_reset(&config);
    cudaStream_t user = new_stream(cudaStreamNonBlocking),
                 owner = new_stream(cudaStreamNonBlocking),
                 heir = new_stream(cudaStreamNonBlocking);
    cudaEvent_t event = new_event(cudaEventDisableTiming);
    void *piece = allocate_on(owner, 4096);
    gmd_sim_point use;
    launch(user, 1000);
    assert_int_equal(gmd_sim_point_of(0, user, &use), 0);
    assert_success(cudaEventRecord(event, user));
    assert_success(cudaStreamWaitEvent(owner, event, 0));
    assert_success(cudaFreeAsync(piece, owner));
    launch(heir, 1000);
    assert_success(cudaEventRecord(event, heir));
    assert_success(cudaStreamWaitEvent(owner, event, 0)); /* a new past of the owner's stream */
    assert_false(gmd_sim_is_ordered(use, 0, heir));
    assert_ptr_equal(allocate_on(heir, 4096), piece);
    assert_true(gmd_sim_is_ordered(use, 0, heir));
}

static void a_page_stays_reserved_until_its_last_piece_is_given_back(void **state)
{
    (void)state;
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    void *first = allocate_on(stream, 4096), *second = allocate_on(stream, 4096);
    assert_int_equal(reserved(), PAGE);
    assert_success(cudaFreeAsync(first, stream));
    assert_success(cudaStreamSynchronize(stream));
    assert_int_equal(reserved(), PAGE);
    assert_success(cudaFreeAsync(second, stream));
    assert_success(cudaStreamSynchronize(stream));
    assert_int_equal(reserved(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fresh(a_new_owner_comes_after_all_that_the_free_came_after),
        fresh(a_page_stays_reserved_until_its_last_piece_is_given_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
