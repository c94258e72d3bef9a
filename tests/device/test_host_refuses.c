/* The host's memory runs out under the simulated device: each request for it is refused, alone or
 * with all later ones. A call then says that memory is out or does what it should, nothing is lost,
 * and the same work can be done once there is memory. */
#include "device_test.h"

#include "host_memory.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 300, PIECES = 200, STREAMS = 40, POOL_STREAMS = 12 };

static gmd_sim_access five_ranges[5]; /* more than an entry of a queue has room for */

/* Whether the call has done its work; if not, memory is out. */
static bool is_done(unsigned result) /* cudaError_t or CUresult */
{
    if (result != cudaSuccess) {
        assert_int_equal(result, cudaErrorMemoryAllocation);
        cudaGetLastError();
    }
    return result == cudaSuccess;
}

/* --- what is held ------------------------------------------------------------------------ */

typedef enum holding {
    STREAM,
    EVENT,
    BLOCK,
    PINNED,
    REGISTERED,
    POOL,
    PIECE, /* of a pool, on a stream */
    RANGE,
    PHYSICAL,
    MAPPING,
    GRAPH,
    EXECUTABLE,
} holding;

typedef struct thing {
    holding kind;
    uint64_t handle, size;
    cudaStream_t on;
} thing;

static thing held[1000];
static int held_count;

static void hold(holding kind, uint64_t handle, uint64_t size, cudaStream_t on)
{
    assert_true(held_count < (int)(sizeof held / sizeof *held));
    held[held_count++] = (thing){kind, handle, size, on};
}

/* The same numbers as errors of the runtime and of the driver. */
static int give_back(const thing *t)
{
    void *pointer = (void *)(uintptr_t)t->handle;
    switch (t->kind) {
    case STREAM:
        return (int)cudaStreamDestroy(pointer);
    case EVENT:
        return (int)cudaEventDestroy(pointer);
    case BLOCK:
        return (int)cudaFree(pointer);
    case PINNED:
        return (int)cudaFreeHost(pointer);
    case REGISTERED:
        return (int)cudaHostUnregister(pointer);
    case POOL:
        return (int)cudaMemPoolDestroy(pointer);
    case PIECE:
        return (int)cudaFreeAsync(pointer, t->on);
    case RANGE:
        return (int)cuMemAddressFree(t->handle, t->size);
    case PHYSICAL:
        return (int)cuMemRelease(t->handle);
    case MAPPING:
        return (int)cuMemUnmap(t->handle, t->size);
    case GRAPH:
        return (int)cudaGraphDestroy(pointer);
    case EXECUTABLE:
        return (int)cudaGraphExecDestroy(pointer);
    }
    return -1;
}

static void give_all_back(void)
{
    while (held_count) {
        assert_success(give_back(&held[--held_count]));
    }
}

static cudaStream_t hold_stream(unsigned flags)
{
    cudaStream_t stream = NULL;
    if (is_done(cudaStreamCreateWithFlags(&stream, flags))) {
        hold(STREAM, (uintptr_t)stream, 0, NULL);
    }
    return stream;
}

static void *hold_block(size_t size)
{
    void *block = NULL;
    if (is_done(cudaMalloc(&block, size))) {
        hold(BLOCK, (uintptr_t)block, size, NULL);
    }
    return block;
}

/* --- running out ------------------------------------------------------------------------- */

typedef void work(void);

static bool does_work(void *context, uint64_t nth, bool every_later)
{
    work *function = *(work **)context;
    gmd_sim_device_state before = device_state(0);
    begin_refusals(nth, every_later);
    function();
    bool was_refused = end_refusals();
    give_all_back();
    assert_success(cudaDeviceSynchronize());
    gmd_sim_device_state after = device_state(0);
    assert_memory_equal(&before, &after, sizeof before);
    return was_refused;
}

/* The simulator's tables grow once and stay: so at first they may not grow at all. */
static void assert_survives(work *function, bool is_backed)
{
    gmd_sim_config config = device_config();
    config.backed = is_backed;
    config.schedule = GMD_SIM_LAZY;
    device_reset(&config);
    held_count = 0;
    for (int i = 0; i < 5; i++) {
        five_ranges[i] = (gmd_sim_access){device_malloc_address(512), 512, i % 2};
    }
    does_work(&function, 1, true);
    sweep_refusals(does_work, &function);
}

/* --- the work ---------------------------------------------------------------------------- */

static void order_streams_by_events(void)
{
    cudaStream_t first = hold_stream(cudaStreamNonBlocking);
    CUcontext context;
    assert_success((int)cuCtxGetCurrent(&context));
    for (int i = 0; i < STREAMS; i++) {
        cudaStream_t stream = hold_stream(i % 2 ? cudaStreamNonBlocking : 0);
        cudaEvent_t event;
        is_done(gmd_sim_launch(stream, 10, five_ranges, 5));
        if (is_done(cudaEventCreateWithFlags(&event, 0))) {
            hold(EVENT, (uintptr_t)event, 0, NULL);
            is_done(cudaEventRecord(event, stream));
            is_done(cudaStreamWaitEvent(first, event, 0));
            is_done(cuCtxRecordEvent(context, event));
        }
        is_done(gmd_sim_launch(first, 10, NULL, 0));
        is_done(gmd_sim_launch(NULL, 10, NULL, 0));
    }
    for (int i = 0; i < STREAMS; i++) {
        cudaEvent_t event;
        if (is_done(cudaEventCreateWithFlags(&event, 0))) {
            hold(EVENT, (uintptr_t)event, 0, NULL);
        }
    }
    is_done(gmd_sim_launch(cudaStreamPerThread, 10, NULL, 0));
}

static void nothing_more(void *data)
{
    (void)data;
}

static void copy_memory(void)
{
    static char here[4096];
    for (int i = 0; i < BLOCKS; i++) {
        void *block = hold_block(4096), *pinned = NULL;
        if (i % 10 == 0 && is_done(cudaMallocHost(&pinned, 4096))) {
            hold(PINNED, (uintptr_t)pinned, 4096, NULL);
        }
        if (block && pinned) {
            is_done(cudaMemsetAsync(block, 1, 4096, NULL));
            is_done(cudaMemcpyAsync(block, pinned, 4096, cudaMemcpyHostToDevice, NULL));
            is_done(cudaMemcpyAsync(block, here, 64, cudaMemcpyHostToDevice, NULL)); /* staged */
            is_done(cudaMemcpyAsync(here, block, 64, cudaMemcpyDeviceToHost, NULL));
            is_done(cudaLaunchHostFunc(NULL, nothing_more, NULL));
            is_done(cuStreamWriteValue32_v2(NULL, (uintptr_t)block, 1, 0));
        }
    }
    if (is_done(cudaHostRegister(here, sizeof here, 0))) {
        hold(REGISTERED, (uintptr_t)here, 0, NULL);
    }
    struct cudaPitchedPtr pitched;
    if (is_done(cudaMalloc3D(&pitched, (struct cudaExtent){100, 10, 10}))) {
        hold(BLOCK, (uintptr_t)pitched.ptr, 0, NULL);
    }
}

static void take_from_pools(void)
{
    const struct cudaMemPoolProps properties = {.allocType = cudaMemAllocationTypePinned,
                                                .location = {cudaMemLocationTypeDevice, 0}};
    cudaStream_t streams[POOL_STREAMS];
    cudaMemPool_t pool = NULL;
    for (int i = 0; i < POOL_STREAMS; i++) {
        streams[i] = hold_stream(cudaStreamNonBlocking);
    }
    if (!is_done(cudaMemPoolCreate(&pool, &properties))) {
        return;
    }
    hold(POOL, (uintptr_t)pool, 0, NULL);
    for (int i = 0; i < PIECES; i++) {
        void *piece;
        cudaStream_t on = streams[i % POOL_STREAMS];
        if (is_done(cudaMallocFromPoolAsync(&piece, 5000 + (size_t)i % 7 * 5000, pool, on)) &&
            (i % 3 || !is_done(cudaFreeAsync(piece, on)))) {
            hold(PIECE, (uintptr_t)piece, 0, on);
        }
    }
}

static void map_memory(void)
{
    const CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                            .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    const CUmemAccessDesc access = {properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    for (int i = 0; i < 40; i++) {
        CUdeviceptr range;
        CUmemGenericAllocationHandle memory;
        if (!is_done(cuMemAddressReserve(&range, 4 * PAGE, 0, 0, 0))) {
            continue;
        }
        hold(RANGE, range, 4 * PAGE, NULL);
        if (!is_done(cuMemCreate(&memory, PAGE, &properties, 0))) {
            continue;
        }
        hold(PHYSICAL, memory, PAGE, NULL);
        if (is_done(cuMemMap(range, PAGE, 0, memory, 0))) {
            hold(MAPPING, range, PAGE, NULL);
            is_done(cuMemSetAccess(range, PAGE, &access, 1));
        }
    }
}

static void capture_graphs(void)
{
    cudaStream_t origin = hold_stream(cudaStreamNonBlocking);
    cudaStream_t side = hold_stream(cudaStreamNonBlocking);
    cudaEvent_t forked = NULL;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t executable = NULL;
    if (!origin || !side || !is_done(cudaEventCreateWithFlags(&forked, 0))) {
        return;
    }
    hold(EVENT, (uintptr_t)forked, 0, NULL);
    if (!is_done(cudaStreamBeginCapture(origin, cudaStreamCaptureModeRelaxed))) {
        return;
    }
    bool is_forked =
        is_done(cudaEventRecord(forked, origin)) && is_done(cudaStreamWaitEvent(side, forked, 0));
    for (int i = 0; i < 40; i++) {
        const cudaGraphNode_t *last;
        size_t count;
        enum cudaStreamCaptureStatus status;
        is_done(gmd_sim_launch(origin, 10, five_ranges, 5));
        if (is_forked) {
            is_done(gmd_sim_launch(side, 10, five_ranges, 5));
            if (is_done(cudaEventRecord(forked, side))) {
                is_done(cudaStreamWaitEvent(origin, forked, 0));
            }
        }
        is_done(cudaStreamGetCaptureInfo(origin, &status, NULL, NULL, &last, NULL, &count));
    }
    int result = (int)cudaStreamEndCapture(origin, &graph);
    if (result != cudaSuccess) { /* the side's end was not joined for want of memory */
        assert_int_equal(result, cudaErrorStreamCaptureUnjoined);
        cudaGetLastError();
        return;
    }
    hold(GRAPH, (uintptr_t)graph, 0, NULL);
    if (is_done(cudaGraphInstantiate(&executable, graph, 0))) {
        hold(EXECUTABLE, (uintptr_t)executable, 0, NULL);
        is_done(cudaGraphLaunch(executable, origin));
    }
    if (is_done(cudaGraphCreate(&graph, 0))) {
        hold(GRAPH, (uintptr_t)graph, 0, NULL);
    }
}

static void mark_memory(void)
{
    void *block = hold_block(MIB);
    for (uint64_t i = 0; block && i < 200; i++) {
        gmd_sim_mark((uintptr_t)block + i * 512, 256, i + 1);
    }
}

/* --- claims ------------------------------------------------------------------------------ */

TEST(a_device_is_reset_or_not)
{
    gmd_sim_config config = device_config();
    int result;
    for (uint64_t nth = 1; nth < 10; nth++) {
        begin_refusals(nth, true);
        result = gmd_sim_reset(&config);
        assert_int_equal(result, end_refusals() ? -1 : 0);
    }
    device_reset(&config);
    device_malloc(MIB);
}

TEST(streams_and_events_are_served_or_refused)
{
    assert_survives(order_streams_by_events, false);
    assert_int_equal(gmd_sim_misuse_count(), 0);
}

TEST(memory_and_copies_are_served_or_refused)
{
    assert_survives(copy_memory, true);
    assert_int_equal(gmd_sim_misuse_count(), 0);
}

TEST(pools_serve_or_refuse)
{
    assert_survives(take_from_pools, false);
    assert_int_equal(gmd_sim_misuse_count(), 0);
}

TEST(mappings_are_made_or_refused)
{
    assert_survives(map_memory, false);
    assert_int_equal(gmd_sim_misuse_count(), 0);
}

TEST(mappings_with_data_are_made_or_refused)
{
    assert_survives(map_memory, true);
    assert_int_equal(gmd_sim_misuse_count(), 0);
}

TEST(captures_and_graphs_are_made_or_refused)
{
    assert_survives(capture_graphs, false);
}

/* With the last request refused, or all of them; what is marked in vain is not known. */
TEST(marks_are_known_or_said_not_to_be)
{
    gmd_sim_config config = device_config();
    bool was_refused = true;
    for (uint64_t nth = 1; was_refused; nth++) {
        gmd_sim_marked found;
        device_reset(&config);
        held_count = 0;
        begin_refusals(nth, true);
        mark_memory();
        was_refused = end_refusals();
        if (held_count) {
            int known = gmd_sim_find_mark(held[0].handle, 256, 1, &found);
            assert_int_equal(known, was_refused ? -1 : 0);
        }
    }
    held_count = 0;
}
