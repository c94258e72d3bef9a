/* Stream-ordered memory pools: who may have what was freed, how it is cut and joined, and what a
 * pool holds of the device. */
#include "device_test.h"

#define CHUNK (32 * MIB) /* by which a pool grows */

static void *allocate_on(cudaStream_t stream, size_t size)
{
    void *pointer = NULL;
    assert_success(cudaMallocAsync(&pointer, size, stream));
    return pointer;
}

static cudaMemPool_t default_pool(void)
{
    cudaMemPool_t pool;
    assert_success(cudaDeviceGetDefaultMemPool(&pool, 0));
    return pool;
}

static uint64_t figure_of(enum cudaMemPoolAttr attribute)
{
    uint64_t bytes = 0;
    assert_success(cudaMemPoolGetAttribute(default_pool(), attribute, &bytes));
    return bytes;
}

static uint64_t reserved(void)
{
    return figure_of(cudaMemPoolAttrReservedMemCurrent);
}

/* The stream of the free has waited for another one; by the time its piece is handed out, it has
 * waited for more and forgotten what its past was then. */
TEST_F(fresh_device, a_new_owner_comes_after_all_that_the_free_came_after)
{
    gmd_sim_config config = device_config();
    config.schedule = GMD_SIM_LAZY;
    config.capacity_bytes = CHUNK; /* the pool cannot grow */
    device_reset(&config);
    cudaStream_t user = new_stream(cudaStreamNonBlocking),
                 owner = new_stream(cudaStreamNonBlocking),
                 heir = new_stream(cudaStreamNonBlocking);
    cudaEvent_t event = new_event(cudaEventDisableTiming);
    void *piece = allocate_on(owner, CHUNK);
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
    assert_ptr_equal(allocate_on(heir, CHUNK), piece);
    assert_true(gmd_sim_is_ordered(use, 0, heir));
}

static cudaStream_t own_stream(void)
{
    return new_stream(cudaStreamNonBlocking);
}

static void keep_all(void)
{
    cudaMemPool_t pool;
    uint64_t unlimited = UINT64_MAX;
    assert_success(cudaDeviceGetDefaultMemPool(&pool, 0));
    assert_success(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &unlimited));
}

static void on_lazy_device(uint64_t capacity)
{
    gmd_sim_config config = device_config();
    config.schedule = GMD_SIM_LAZY;
    config.capacity_bytes = capacity;
    device_reset(&config);
}

/* A kernel, and the place after it. */
static gmd_sim_point work_on(cudaStream_t stream)
{
    gmd_sim_point after;
    launch(stream, 1000);
    assert_int_equal(gmd_sim_point_of(0, stream, &after), 0);
    return after;
}

static void wait_for(cudaStream_t waiter, cudaStream_t waited)
{
    cudaEvent_t event = new_event(cudaEventDisableTiming);
    assert_success(cudaEventRecord(event, waited));
    assert_success(cudaStreamWaitEvent(waiter, event, 0));
    assert_success(cudaEventDestroy(event));
}

/* --- cutting and joining ------------------------------------------------------------------ */

TEST_F(fresh_device, a_request_takes_no_more_than_it_needs)
{
    cudaStream_t stream = own_stream();
    for (uint64_t i = 0; i < 64; i++) {
        allocate_on(stream, CHUNK / 64);
    }
    assert_int_equal(reserved(), CHUNK);
}

TEST_F(fresh_device, neighbours_of_one_stream_are_joined)
{
    cudaStream_t stream = own_stream();
    void *parts[4];
    for (int i = 0; i < 4; i++) {
        parts[i] = allocate_on(stream, CHUNK / 4);
    }
    launch(stream, 1000);
    assert_success(cudaFreeAsync(parts[1], stream));
    assert_success(cudaFreeAsync(parts[3], stream));
    assert_success(cudaFreeAsync(parts[2], stream)); /* between the two */
    assert_ptr_equal(allocate_on(stream, CHUNK / 4 * 3), parts[1]);
}

TEST_F(fresh_device, neighbours_of_two_streams_are_joined_once_they_are_known_to_be_free)
{
    keep_all();
    cudaStream_t a = own_stream(), b = own_stream();
    void *first = allocate_on(a, CHUNK / 2), *second = allocate_on(b, CHUNK / 2);
    launch(a, 1000);
    launch(b, 1000);
    assert_success(cudaFreeAsync(first, a));
    assert_success(cudaFreeAsync(second, b));
    assert_success(cudaDeviceSynchronize());
    assert_ptr_equal(allocate_on(b, CHUNK), first);
}

/* The later of two frees of one stream says when what they are joined to is free. */
TEST_F(fresh_device, a_joined_block_waits_for_the_later_of_its_frees)
{
    on_lazy_device(CHUNK);
    cudaStream_t owner = own_stream(), heir = own_stream();
    void *first = allocate_on(owner, CHUNK / 2), *second = allocate_on(owner, CHUNK / 2);
    launch(owner, 1000);
    assert_success(cudaFreeAsync(first, owner));
    launch(owner, 1000);
    gmd_sim_point work;
    assert_int_equal(gmd_sim_point_of(0, owner, &work), 0);
    assert_success(cudaFreeAsync(second, owner));
    assert_ptr_equal(allocate_on(heir, CHUNK), first);
    assert_true(gmd_sim_is_ordered(work, 0, heir));
}

/* Joined, either both would have to be waited for, or neither. */
static void assert_not_joined(cudaStream_t busy, void *pending, cudaStream_t idle, void *free_now)
{
    gmd_sim_point work;
    launch(busy, 1000);
    assert_int_equal(gmd_sim_point_of(0, busy, &work), 0);
    assert_success(cudaFreeAsync(pending, busy));
    assert_success(cudaFreeAsync(free_now, idle));
    assert_ptr_equal(allocate_on(idle, CHUNK / 2), free_now);
    assert_false(gmd_sim_is_ordered(work, 0, idle));
    cudaStream_t heir = own_stream();
    assert_ptr_equal(allocate_on(heir, CHUNK / 2), pending);
    assert_true(gmd_sim_is_ordered(work, 0, heir));
}

TEST_F(fresh_device, a_free_block_is_not_joined_with_a_pending_one_below)
{
    on_lazy_device(CHUNK);
    keep_all();
    cudaStream_t busy = own_stream(), idle = own_stream();
    void *below = allocate_on(busy, CHUNK / 2), *above = allocate_on(idle, CHUNK / 2);
    assert_not_joined(busy, below, idle, above);
}

TEST_F(fresh_device, a_free_block_is_not_joined_with_a_pending_one_above)
{
    on_lazy_device(CHUNK);
    keep_all();
    cudaStream_t busy = own_stream(), idle = own_stream();
    void *below = allocate_on(idle, CHUNK / 2), *above = allocate_on(busy, CHUNK / 2);
    assert_not_joined(busy, above, idle, below);
}

TEST_F(fresh_device, the_rest_of_a_block_waits_for_the_same_work)
{
    on_lazy_device(CHUNK);
    cudaStream_t owner = own_stream(), heir = own_stream();
    void *whole = allocate_on(owner, CHUNK);
    launch(owner, 1000);
    gmd_sim_point work;
    assert_int_equal(gmd_sim_point_of(0, owner, &work), 0);
    assert_success(cudaFreeAsync(whole, owner));
    allocate_on(owner, CHUNK / 2);
    assert_ptr_equal(allocate_on(heir, CHUNK / 2), (char *)whole + CHUNK / 2);
    assert_true(gmd_sim_is_ordered(work, 0, heir));
}

/* The kernel's block is cut before the kernel runs: its memory is there all the same. */
TEST_F(fresh_device, queued_work_runs_on_memory_that_is_cut_meanwhile)
{
    on_lazy_device(GIB);
    cudaStream_t stream = own_stream();
    void *block = allocate_on(stream, CHUNK);
    gmd_sim_access access = {.address = (uintptr_t)block, .size = CHUNK, .is_write = true};
    assert_success(gmd_sim_launch(stream, 1000, &access, 1));
    assert_success(cudaMemsetAsync(block, 1, CHUNK, stream));
    assert_success(cudaFreeAsync(block, stream));
    allocate_on(stream, CHUNK / 4);
    allocate_on(stream, CHUNK / 4);
    assert_success(cudaDeviceSynchronize());
}

TEST_F(fresh_device, a_block_keeps_its_data_while_its_neighbours_come_and_go)
{
    gmd_sim_config config = device_config();
    config.backed = true;
    device_reset(&config);
    cudaStream_t stream = own_stream();
    unsigned char seen = 0;
    void *below = allocate_on(stream, MIB), *block = allocate_on(stream, MIB),
         *above = allocate_on(stream, MIB);
    assert_success(cudaMemsetAsync(block, 7, MIB, stream));
    assert_success(cudaFreeAsync(above, stream));
    assert_success(cudaFreeAsync(below, stream));
    assert_success(cudaMemsetAsync(allocate_on(stream, MIB / 2), 9, MIB / 2, stream));
    assert_success(cudaStreamSynchronize(stream));
    assert_int_equal(gmd_sim_peek((uintptr_t)block + MIB - 1, &seen, 1), 0);
    assert_int_equal(seen, 7);
}

/* --- what is reserved --------------------------------------------------------------------- */

TEST_F(fresh_device, a_pool_grows_by_whole_chunks)
{
    allocate_on(own_stream(), 4096);
    assert_int_equal(reserved(), CHUNK);
}

TEST_F(fresh_device, a_large_request_is_rounded_up_to_pages)
{
    allocate_on(own_stream(), CHUNK + 1);
    assert_int_equal(reserved(), CHUNK + PAGE);
}

TEST_F(fresh_device, a_pool_grows_by_less_where_the_device_has_no_chunk_left)
{
    device_malloc(GIB - 4 * MIB);
    allocate_on(own_stream(), 4096);
    assert_int_equal(reserved(), PAGE);
}

TEST_F(fresh_device, reserved_is_what_the_device_gave)
{
    gmd_sim_device_state before, after;
    device_malloc(512); /* small allocations share pages, but not with a pool's */
    assert_int_equal(gmd_sim_device(0, &before), 0);
    for (int i = 0; i < 100; i++) {
        allocate_on(own_stream(), 512);
        device_malloc(512);
    }
    assert_int_equal(gmd_sim_device(0, &after), 0);
    assert_int_equal(reserved(), after.physical_bytes - before.physical_bytes);
}

TEST_F(fresh_device, a_chunk_stays_reserved_until_its_last_block_is_free)
{
    cudaStream_t stream = own_stream();
    void *first = allocate_on(stream, 4096), *second = allocate_on(stream, 4096);
    assert_success(cudaFreeAsync(first, stream));
    assert_success(cudaStreamSynchronize(stream));
    assert_int_equal(reserved(), CHUNK);
    assert_success(cudaFreeAsync(second, stream));
    assert_success(cudaStreamSynchronize(stream));
    assert_int_equal(reserved(), 0);
}

TEST_F(fresh_device, trimming_stops_at_what_is_to_be_kept)
{
    keep_all();
    cudaStream_t stream = own_stream();
    cudaMemPool_t pool;
    void *chunks[3];
    for (int i = 0; i < 3; i++) {
        chunks[i] = allocate_on(stream, CHUNK);
    }
    for (int i = 0; i < 3; i++) {
        assert_success(cudaFreeAsync(chunks[i], stream));
    }
    assert_success(cudaStreamSynchronize(stream));
    assert_success(cudaDeviceGetDefaultMemPool(&pool, 0));
    assert_success(cudaMemPoolTrimTo(pool, 2 * CHUNK));
    assert_int_equal(reserved(), 2 * CHUNK);
}

TEST_F(fresh_device, the_default_pool_of_pinned_memory_on_a_device_is_that_of_the_device)
{
    struct cudaMemLocation here = {cudaMemLocationTypeDevice, 0};
    cudaMemPool_t of_device, of_place = NULL;
    assert_success(cudaDeviceGetDefaultMemPool(&of_device, 0));
    assert_success(cudaMemGetDefaultMemPool(&of_place, &here, cudaMemAllocationTypePinned));
    assert_ptr_equal(of_place, of_device);
    assert_int_equal(cudaMemGetDefaultMemPool(&of_place, &here, cudaMemAllocationTypeManaged),
                     cudaErrorNotSupported);
    assert_int_equal(cudaMemGetDefaultMemPool(&of_place, NULL, cudaMemAllocationTypePinned),
                     cudaErrorInvalidValue);
}

TEST_F(fresh_device, memory_that_queued_work_may_use_is_not_given_back)
{
    on_lazy_device(GIB);
    cudaStream_t stream = own_stream();
    cudaMemPool_t pool;
    void *block = allocate_on(stream, CHUNK);
    launch(stream, 1000);
    assert_success(cudaFreeAsync(block, stream));
    assert_success(cudaDeviceGetDefaultMemPool(&pool, 0));
    assert_success(cudaMemPoolTrimTo(pool, 0));
    assert_int_equal(reserved(), CHUNK);
}

/* --- out of memory ------------------------------------------------------------------------ */

/* Neither of the two is large enough, and none may be joined or given back before it is over. */
TEST_F(fresh_device, pending_frees_are_waited_for_before_a_request_is_refused)
{
    on_lazy_device(2 * CHUNK);
    cudaStream_t a = own_stream(), b = own_stream(), heir = own_stream();
    void *first = allocate_on(a, CHUNK), *second = allocate_on(b, CHUNK);
    launch(a, 1000);
    launch(b, 1000);
    gmd_sim_point work;
    assert_int_equal(gmd_sim_point_of(0, a, &work), 0);
    assert_success(cudaFreeAsync(first, a));
    assert_success(cudaFreeAsync(second, b));
    allocate_on(heir, 2 * CHUNK);
    assert_true(gmd_sim_is_ordered(work, 0, heir));
}

TEST_F(fresh_device, a_pool_of_limited_size_refuses_what_is_beyond)
{
    struct cudaMemPoolProps properties = {.allocType = cudaMemAllocationTypePinned,
                                          .location = {cudaMemLocationTypeDevice, 0},
                                          .maxSize = 4 * MIB};
    cudaMemPool_t pool;
    void *memory;
    assert_success(cudaMemPoolCreate(&pool, &properties));
    assert_success(cudaMallocFromPoolAsync(&memory, 3 * MIB, pool, NULL));
    assert_int_equal(cudaMallocFromPoolAsync(&memory, 3 * MIB, pool, NULL),
                     cudaErrorMemoryAllocation);
}

/* --- fresh memory or a wait ---------------------------------------------------------------- */

TEST_F(fresh_device, a_pool_grows_before_a_stream_waits)
{
    on_lazy_device(2 * CHUNK);
    cudaStream_t owner = own_stream(), other = own_stream();
    void *block = allocate_on(owner, CHUNK);
    gmd_sim_point work = work_on(owner);
    assert_success(cudaFreeAsync(block, owner));
    assert_ptr_not_equal(allocate_on(other, CHUNK), block);
    assert_false(gmd_sim_is_ordered(work, 0, other));
}

TEST_F(fresh_device, memory_that_a_graph_would_own_is_not_supported)
{
    cudaStream_t stream = own_stream();
    void *piece = allocate_on(stream, MIB), *other;
    assert_success(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    assert_int_equal(cudaMallocAsync(&other, MIB, stream), cudaErrorNotSupported);
    assert_int_equal(cudaFreeAsync(piece, stream), cudaErrorNotSupported);
}

static struct cudaMemPoolProps usual_properties(void)
{
    return (struct cudaMemPoolProps){.allocType = cudaMemAllocationTypePinned,
                                     .location = {cudaMemLocationTypeDevice, 0}};
}

TEST_F(fresh_device, a_pool_for_another_kind_of_handle_is_not_supported)
{
    struct cudaMemPoolProps properties = usual_properties();
    cudaMemPool_t pool;
    properties.handleTypes = (enum cudaMemAllocationHandleType)8; /* fabric */
    assert_int_equal(cudaMemPoolCreate(&pool, &properties), cudaErrorNotSupported);
}

TEST_F(fresh_device, there_is_an_end_to_pools_and_a_destroyed_one_makes_room)
{
    const struct cudaMemPoolProps properties = usual_properties();
    cudaMemPool_t pool, last = NULL;
    cudaError_t result;
    while ((result = cudaMemPoolCreate(&pool, &properties)) == cudaSuccess) {
        last = pool;
    }
    assert_int_equal(result, cudaErrorMemoryAllocation);
    assert_success(cudaMemPoolDestroy(last));
    assert_success(cudaMemPoolCreate(&pool, &properties));
}

/* Two free chunks that nothing waits for are too small for the request, and in its way. */
TEST_F(fresh_device, idle_chunks_are_traded_in_before_a_stream_waits)
{
    on_lazy_device(4 * CHUNK);
    keep_all();
    cudaStream_t idle = own_stream(), busy = own_stream(), heir = own_stream();
    void *small[2] = {allocate_on(idle, CHUNK), allocate_on(idle, CHUNK)};
    void *large = allocate_on(busy, 2 * CHUNK);
    gmd_sim_point work = work_on(busy);
    assert_success(cudaFreeAsync(small[0], idle));
    assert_success(cudaFreeAsync(small[1], idle));
    assert_success(cudaFreeAsync(large, busy));
    assert_ptr_not_equal(allocate_on(heir, 2 * CHUNK), large);
    assert_false(gmd_sim_is_ordered(work, 0, heir));
}

TEST_F(fresh_device, cuda_free_of_a_pools_memory_waits_for_nothing)
{
    on_lazy_device(CHUNK);
    cudaStream_t stream = own_stream();
    void *block = allocate_on(stream, MIB);
    launch(stream, 1000);
    assert_success(cudaFree(block));
    assert_int_equal(cudaStreamQuery(stream), cudaErrorNotReady);
    assert_ptr_equal(allocate_on(own_stream(), MIB), block);
}

/* --- resets ------------------------------------------------------------------------------- */

TEST_F(fresh_device, a_reset_device_has_all_of_its_memory_again)
{
    cudaStream_t stream = own_stream();
    void *parts[3];
    for (int i = 0; i < 3; i++) {
        parts[i] = allocate_on(stream, MIB);
    }
    assert_success(cudaFreeAsync(parts[1], stream));
    assert_success(cudaDeviceReset());
    gmd_sim_device_state after;
    assert_int_equal(gmd_sim_device(0, &after), 0);
    assert_int_equal(after.physical_bytes, 0);
    assert_int_equal(after.allocated_bytes, 0);
    device_malloc(GIB);
}

TEST_F(fresh_device, a_fresh_simulation_has_all_pages_again)
{
    cudaStream_t stream = own_stream();
    void *first = allocate_on(stream, MIB);
    allocate_on(stream, MIB);
    assert_success(cudaFreeAsync(first, stream));
    gmd_sim_config config = device_config();
    device_reset(&config);
    gmd_sim_device_state after;
    device_malloc(CHUNK); /* where the chunk was: pages with users left would count as given */
    assert_int_equal(gmd_sim_device(0, &after), 0);
    assert_int_equal(after.physical_bytes, CHUNK);
}

/* --- everything at once ------------------------------------------------------------------ */

enum { STEPS = 4000, LIVE_MAX = 60, STREAMS = 4, GONE_MAX = STEPS };

typedef struct owned { /* a block, live or freed behind a use */
    uint64_t from, to;
    cudaStream_t stream;
    gmd_sim_point use;
} owned;

static struct {
    owned live[LIVE_MAX], gone[GONE_MAX];
    int live_count, gone_count;
    uint64_t used, random;
    cudaStream_t streams[STREAMS];
} all;

static uint64_t draw(uint64_t below)
{
    all.random = all.random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (all.random >> 33) % below;
}

static void allocate_one(void)
{
    cudaStream_t stream = all.streams[draw(STREAMS)];
    size_t size = 1 + draw(draw(4) ? MIB : 20 * MIB);
    void *pointer;
    if (all.live_count == LIVE_MAX || cudaMallocAsync(&pointer, size, stream) != cudaSuccess) {
        return;
    }
    owned b = {.from = (uintptr_t)pointer, .to = (uintptr_t)pointer + size, .stream = stream};
    for (int i = 0; i < all.live_count; i++) {
        assert_true(b.to <= all.live[i].from || b.from >= all.live[i].to);
    }
    for (int i = 0; i < all.gone_count; i++) {
        if (b.to > all.gone[i].from && b.from < all.gone[i].to) {
            assert_true(gmd_sim_is_ordered(all.gone[i].use, 0, stream));
        }
    }
    assert_true(gmd_sim_is_backed(b.from, size, 0, NULL));
    all.live[all.live_count++] = b;
    all.used += size;
}

static void free_one(void)
{
    if (all.live_count == 0 || all.gone_count == GONE_MAX) {
        return;
    }
    uint64_t at = draw((uint64_t)all.live_count);
    cudaStream_t user = all.streams[draw(STREAMS)];
    owned b = all.live[at];
    wait_for(user, b.stream); /* a user comes after the allocation, and before the free */
    b.use = work_on(user);
    wait_for(b.stream, user);
    assert_success(cudaFreeAsync((void *)(uintptr_t)b.from, b.stream));
    all.live[at] = all.live[--all.live_count];
    all.gone[all.gone_count++] = b;
    all.used -= b.to - b.from;
}

static void take_a_step(void)
{
    uint64_t what = draw(100);
    if (what < 50) {
        allocate_one();
    } else if (what < 90) {
        free_one();
    } else if (what < 96) {
        wait_for(all.streams[draw(STREAMS)], all.streams[draw(STREAMS)]);
    } else if (what < 99) {
        assert_success(cudaStreamSynchronize(all.streams[draw(STREAMS)]));
    } else {
        assert_success(cudaMemPoolTrimTo(default_pool(), draw(4) * CHUNK));
    }
}

static void play(uint64_t seed)
{
    on_lazy_device(5 * CHUNK);
    all.live_count = all.gone_count = 0;
    all.used = 0;
    all.random = seed;
    uint64_t threshold = draw(2) * UINT64_MAX;
    assert_success(
        cudaMemPoolSetAttribute(default_pool(), cudaMemPoolAttrReleaseThreshold, &threshold));
    for (int i = 0; i < STREAMS; i++) {
        all.streams[i] = i ? new_stream(i % 2 ? cudaStreamNonBlocking : cudaStreamDefault) : NULL;
    }
    for (int i = 0; i < STEPS; i++) {
        take_a_step();
        assert_int_equal(figure_of(cudaMemPoolAttrUsedMemCurrent), all.used);
        assert_int_equal(device_state(0).physical_bytes, reserved());
    }
    while (all.live_count) {
        free_one();
    }
    assert_success(cudaDeviceSynchronize());
    assert_success(cudaMemPoolTrimTo(default_pool(), 0));
    assert_int_equal(reserved(), 0);
}

TEST_F(fresh_device, live_blocks_never_overlap_and_every_owner_comes_after_the_one_before)
{
    for (uint64_t seed = 1; seed <= 8; seed++) {
        play(seed);
    }
}
