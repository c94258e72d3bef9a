/* What the driver's calls become, seen in what is found: CUPTI and CUDA are fakes (fakes.h). */
#include "gmd_test.h"

#include "cupti_calls.h"
#include "fakes.h"
#include "kernel_trust.h"
#include "launches.h"
#include "pointer_tables.h"

#include <dlfcn.h>
#include <string.h>

#define BLOCKS     8
#define ADDRESS    UINT64_C(0x7f00fffa0000)
#define NUMBERS    6 /* the block whose address may be two numbers, 0x7f01 and 0 */
#define BYTES      UINT64_C(4096)
#define DISTANCE   (16 * BYTES)
#define SIDE       UINT64_C(0x7000)
#define PLACE      42
#define FOUND_MOST 8

enum {
#define NUMBER(name, number, action, is_per_thread, stream, a, b) call_##name = (number),
    CUPTI_CALLS(NUMBER)
#undef NUMBER
};

typedef struct world {
    order *o;
    launches *l;
    fake_cupti *cupti;
    void *library;
    order_block *blocks[BLOCKS]; /* the i-th lies at ADDRESS + i * DISTANCE */
    order_finding found[FOUND_MOST];
    size_t count;
    uint64_t destroyed; /* the last stream that was */
    launches_work work; /* the last that was told; its uses are gone */
    size_t works, failures;
} world;

static void note(void *context, const order_finding *finding)
{
    world *w = context;
    assert_true(w->count < FOUND_MOST);
    w->found[w->count++] = *finding;
}

static order_block *find_block(void *context, uint64_t pointer)
{
    const world *w = context;
    uint64_t index = (pointer - ADDRESS) / DISTANCE;
    bool is_within = pointer >= ADDRESS && index < BLOCKS && (pointer - ADDRESS) % DISTANCE < BYTES;
    return is_within ? order_block_keep(w->blocks[index]) : NULL;
}

static uint64_t place(void *context)
{
    (void)context;
    return PLACE;
}

static void stream_destroyed(void *context, order_stream stream)
{
    ((world *)context)->destroyed = stream.handle;
}

static void queued(void *context, const launches_work *work)
{
    world *w = context;
    w->work = *work;
    w->works++;
}

static void failed(void *context, int device, int result)
{
    (void)device;
    ((world *)context)->failures += result == CUDA_ILLEGAL_ADDRESS;
}

static bool start(world *w, launches **started, char *message, size_t bytes)
{
    launches_callbacks callbacks = {.context = w,
                                    .find_block = find_block,
                                    .place = place,
                                    .stream_destroyed = stream_destroyed,
                                    .queued = queued,
                                    .failed = failed};
    return launches_start(w->o, &callbacks, "libfake_cupti.so", started, message, bytes);
}

static int open_world(void **state)
{
    static world w;
    w = (world){.library = dlopen("libfake_cupti.so", RTLD_NOW)};
    assert_non_null(w.library);
    w.cupti = dlsym(w.library, "fake_cupti_state");
    assert_non_null(w.cupti);
    w.o = order_create(&(order_settings){.found = note, .context = &w});
    char message[200] = "";
    if (!start(&w, &w.l, message, sizeof message)) {
        fail_msg("%s", message);
    }
    *state = &w;
    return 0;
}

static int close_world(void **state)
{
    world *w = *state;
    launches_stop(w->l);
    for (size_t i = 0; i < BLOCKS; i++) {
        order_block_drop(w->o, w->blocks[i]);
    }
    order_destroy(w->o);
    dlclose(w->library);
    return 0;
}

FIXTURE(launches, open_world, close_world);

/* --- calls ------------------------------------------------------------------------------- */

static void call_back(world *w, int site, uint32_t number, const void *parameters, int result,
                      const char *symbol)
{
    cupti_call call = {
        .site = site, .parameters = parameters, .result = &result, .symbol = symbol, .context = w};
    assert_true(w->cupti->is_enabled[number]);
    w->cupti->callback(w->cupti->context, CUPTI_DRIVER_CALLS, number, &call);
}

/* A call that returns `result`, with parameters of eight bytes each. */
#define CALL_RESULT(w, result, name, ...)                                                          \
    do {                                                                                           \
        const uint64_t parameters_of_call[] = {__VA_ARGS__};                                       \
        call_back(w, 0, call_##name, parameters_of_call, 0, NULL);                                 \
        call_back(w, 1, call_##name, parameters_of_call, result, NULL);                            \
    } while (0)
#define CALL(w, name, ...) CALL_RESULT(w, 0, name, __VA_ARGS__)

static uint64_t word_of(const void *pointer)
{
    return (uint64_t)(uintptr_t)pointer;
}

typedef struct kernel_call { /* cuLaunchKernel's parameters */
    const void *function;
    unsigned sizes[7];
    uint64_t stream;
    void *const *parameters;
    void *const *extra;
} kernel_call;

static void launch_packed(world *w, const fake_kernel *kernel, uint64_t stream,
                          void *const *parameters, void *const *extra)
{
    kernel_call call = {
        .function = kernel, .stream = stream, .parameters = parameters, .extra = extra};
    call_back(w, 0, call_cuLaunchKernel, &call, 0, "kernel_of_test");
    call_back(w, 1, call_cuLaunchKernel, &call, 0, "kernel_of_test");
}

static const fake_kernel one_pointer = {.count = 1, .sizes = {8}};

static void launch(world *w, uint64_t pointer, uint64_t stream)
{
    launch_packed(w, &one_pointer, stream, (void *[]){&pointer}, NULL);
}

/* --- blocks ------------------------------------------------------------------------------ */

static uint64_t allocate(world *w, size_t index, uint64_t stream)
{
    uint64_t address = ADDRESS + index * DISTANCE;
    order_block_drop(w->o, w->blocks[index]);
    w->blocks[index] =
        order_allocated(w->o, address, BYTES, (order_stream){.handle = stream}, 1, false);
    return address;
}

static void release(world *w, size_t index)
{
    order_freed(w->o, w->blocks[index], 2);
}

/* Whether the first block, of the default stream, is freed before its use by another is over. */
static bool is_freed_early(world *w)
{
    size_t before = w->count;
    release(w, 0);
    launch(w, allocate(w, 1, 0), 0);
    release(w, 1);
    return w->count > before && w->found[before].kind == ORDER_FREED_EARLY;
}

/* --- kernels ----------------------------------------------------------------------------- */

TEST_F(launches, a_kernel_uses_the_block_that_a_parameter_points_into)
{
    world *w = *state;
    launch(w, allocate(w, 0, 0) + 100, SIDE);
    assert_true(is_freed_early(w));
    assert_true(w->found[0].is_certain);
    assert_string_equal(w->found[0].use.what, "kernel_of_test");
    assert_int_equal(w->found[0].use.place, PLACE);
    assert_int_equal(w->found[0].use_stream.handle, SIDE);
}

TEST_F(launches, a_pointer_to_the_end_of_a_block_is_none_into_it)
{
    world *w = *state;
    launch(w, allocate(w, 0, 0) + BYTES, SIDE);
    assert_false(is_freed_early(w));
}

TEST_F(launches, handles_of_the_runtime_are_kernels_too)
{
    world *w = *state;
    static const fake_kernel kernel = {.is_library_kernel = 1, .count = 1, .sizes = {8}};
    uint64_t pointer = allocate(w, 0, 0);
    launch_packed(w, &kernel, SIDE, (void *[]){&pointer}, NULL);
    assert_true(is_freed_early(w));
}

TEST_F(launches, a_word_of_a_larger_structure_may_be_stale)
{
    world *w = *state;
    static const fake_kernel kernel = {.count = 2, .sizes = {4, 32}};
    uint64_t structure[4] = {1, 2, allocate(w, 0, 0), 3}, number = 7;
    launch_packed(w, &kernel, SIDE, (void *[]){&number, structure}, NULL);
    assert_true(is_freed_early(w));
    assert_false(w->found[0].is_certain);
}

TEST_F(launches, a_structure_of_nothing_but_pointers_has_nothing_stale)
{
    world *w = *state;
    static const fake_kernel kernel = {.count = 1, .sizes = {16}};
    uint64_t structure[2] = {allocate(w, 0, 0), allocate(w, 2, 0) + 8};
    launch_packed(w, &kernel, SIDE, (void *[]){structure}, NULL);
    assert_true(is_freed_early(w));
    assert_true(w->found[0].is_certain);
}

TEST_F(launches, parameters_in_one_buffer_are_looked_at)
{
    world *w = *state;
    static const fake_kernel kernel = {.count = 2, .sizes = {4, 8}};
    uint64_t buffer[2] = {1, allocate(w, 0, 0)};
    size_t bytes = sizeof buffer;
    launch_packed(w, &kernel, SIDE, NULL,
                  (void *[]){(void *)1, buffer, (void *)2, &bytes, (void *)0});
    assert_true(is_freed_early(w));
}

TEST_F(launches, a_buffer_is_not_read_beyond_its_end)
{
    world *w = *state;
    static const fake_kernel kernel = {.count = 2, .sizes = {4, 8}};
    uint64_t buffer[2] = {1, allocate(w, 0, 0)};
    size_t bytes = 8;
    launch_packed(w, &kernel, SIDE, NULL,
                  (void *[]){(void *)1, buffer, (void *)2, &bytes, (void *)0});
    assert_false(is_freed_early(w));
}

TEST_F(launches, a_launch_with_a_configuration_runs_on_its_stream)
{
    world *w = *state;
    uint64_t pointer = allocate(w, 0, 0);
    struct {
        unsigned sizes[7];
        uint64_t stream;
        void *attributes;
        unsigned count;
    } configuration = {.stream = SIDE};
    void *parameters[] = {&pointer};
    CALL(w, cuLaunchKernelEx, word_of(&configuration), word_of(&one_pointer), word_of(parameters),
         0);
    assert_true(is_freed_early(w));
}

TEST_F(launches, code_that_was_unloaded_is_asked_for_again)
{
    world *w = *state;
    fake_kernel kernel = {.count = 1, .sizes = {8}};
    uint64_t words[2] = {0, allocate(w, 0, 0)};
    launch_packed(w, &kernel, SIDE, (void *[]){words}, NULL);
    kernel.sizes[0] = 16;
    CALL(w, cuModuleUnload, 0);
    launch_packed(w, &kernel, SIDE, (void *[]){words}, NULL);
    assert_true(is_freed_early(w));
}

TEST_F(launches, more_pointers_than_fit_at_once_are_all_seen)
{
    world *w = *state;
    static const fake_kernel kernel = {.count = 1, .sizes = {8000}};
    uint64_t words[1000];
    uint64_t first = allocate(w, 0, 0), other = allocate(w, 2, 0);
    for (size_t i = 0; i < 1000; i++) {
        words[i] = i == 999 ? first : other;
    }
    launch_packed(w, &kernel, SIDE, (void *[]){words}, NULL);
    assert_true(is_freed_early(w));
}

TEST_F(launches, a_kernel_with_a_pointer_into_a_freed_block_is_found)
{
    world *w = *state;
    uint64_t pointer = allocate(w, 0, 0);
    release(w, 0);
    launch(w, pointer, 0);
    assert_int_equal(w->count, 1);
    assert_int_equal(w->found[0].kind, ORDER_USED_AFTER_FREE);
    assert_int_equal(w->found[0].use.place, PLACE);
}

TEST_F(launches, what_the_sanitizer_queues_itself_is_no_use)
{
    world *w = *state;
    uint64_t pointer = allocate(w, 0, 0);
    launches_mute();
    launch(w, pointer, SIDE);
    CALL(w, cuMemsetD8Async, pointer, 0, BYTES, SIDE);
    launches_unmute();
    assert_false(is_freed_early(w));
    launches_statistics counts;
    launches_statistics_of(w->l, &counts);
    assert_int_equal(counts.muted, 2);
}

TEST_F(launches, what_the_sanitizer_waits_for_itself_is_no_order)
{
    world *w = *state;
    launch(w, allocate(w, 0, 0), SIDE);
    launches_mute();
    CALL(w, cuStreamSynchronize, SIDE);
    CALL(w, cuEventRecord, 0x9000, SIDE);
    CALL(w, cuStreamWaitEvent, 0, 0x9000, 0);
    CALL(w, cuMemFree_v2, 0x7f2200000000);
    launches_unmute();
    assert_true(is_freed_early(w));
}

/* --- trust ------------------------------------------------------------------------------- */

TEST_F(launches, in_a_structure_what_may_be_two_numbers_is_not_certain)
{
    world *w = *state;
    static const fake_kernel kernel = {.count = 1, .sizes = {16}};
    uint64_t address = allocate(w, NUMBERS, 0), structure[2] = {address, address};
    assert_int_equal(address, UINT64_C(0x7f01) << 32);
    release(w, NUMBERS);
    launch_packed(w, &kernel, 0, (void *[]){structure}, NULL);
    assert_int_equal(w->count, 1);
    assert_false(w->found[0].is_certain);
}

TEST_F(launches, cublas_fills_its_structures)
{
    assert_true(kernel_trust_of("libcublasLt.so.13", "nvjet_sm90").in_structures);
    assert_false(kernel_trust_of("libtorch_cuda.so", "some_kernel").in_structures);
}

TEST_F(launches, cusolver_leaves_even_pointers_uninitialised)
{
    assert_false(kernel_trust_of("libcusolver.so.12", "getrf_pivot").in_pointers);
    assert_true(kernel_trust_of("", "triton_kernel").in_pointers);
}

#define REDUCTION "_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIfNS0_14func"

TEST_F(launches, of_a_structure_with_a_known_layout_the_known_words_are_certain)
{
    world *w = *state;
    uint32_t known = kernel_trust_of("libtorch_cuda.so", REDUCTION).tail_words;
    fake_kernel kernel = {.count = 1, .sizes = {160}};
    for (uint32_t at = 0; at < 20; at++) {
        uint64_t structure[20] = {[0] = 0};
        structure[at] = allocate(w, 0, 0);
        kernel_call call = {
            .function = &kernel, .stream = SIDE, .parameters = (void *[]){structure}};
        call_back(w, 0, call_cuLaunchKernel, &call, 0, REDUCTION);
        w->count = 0;
        assert_true(is_freed_early(w));
        assert_int_equal(w->found[0].is_certain, known >> (19 - at) & 1);
    }
}

TEST_F(launches, a_structure_of_cupys_begins_with_the_address)
{
    world *w = *state;
    fake_kernel kernel = {.count = 1, .sizes = {32}};
    for (uint32_t at = 0; at < 4; at++) {
        uint64_t structure[4] = {[1] = 8};
        structure[at] = allocate(w, 0, 0);
        kernel_call call = {
            .function = &kernel, .stream = SIDE, .parameters = (void *[]){structure}};
        call_back(w, 0, call_cuLaunchKernel, &call, 0, "cupy_multiply__float32_int_float32");
        w->count = 0;
        assert_true(is_freed_early(w));
        assert_int_equal(w->found[0].is_certain, at == 0);
    }
}

/* --- copies ------------------------------------------------------------------------------ */

TEST_F(launches, copies_and_memsets_use_their_operands)
{
    world *w = *state;
    uint64_t a = allocate(w, 0, 0);
    CALL(w, cuMemcpyHtoDAsync_v2, a, 0x1000, BYTES, SIDE);
    assert_true(is_freed_early(w));
    a = allocate(w, 0, 0);
    CALL(w, cuMemcpyDtoHAsync_v2, 0x1000, a, BYTES, SIDE);
    assert_true(is_freed_early(w));
    a = allocate(w, 0, 0);
    CALL(w, cuMemcpyDtoDAsync_v2, ADDRESS + 5 * DISTANCE, a, BYTES, SIDE);
    assert_true(is_freed_early(w));
    a = allocate(w, 0, 0);
    CALL(w, cuMemsetD8Async, a, 0, BYTES, SIDE);
    assert_true(is_freed_early(w));
    a = allocate(w, 0, 0);
    const uint64_t rectangle[16] = {[2] = CUDA_MEMORY_DEVICE, [4] = a};
    CALL(w, cuMemcpy2DAsync_v2, word_of(rectangle), SIDE);
    assert_true(is_freed_early(w));
}

TEST_F(launches, a_rectangle_in_host_memory_is_no_use)
{
    world *w = *state;
    const uint64_t rectangle[16] = {[2] = 1, [4] = allocate(w, 0, 0)};
    CALL(w, cuMemcpy2DAsync_v2, word_of(rectangle), SIDE);
    assert_false(is_freed_early(w));
}

TEST_F(launches, a_copy_to_the_host_that_returns_is_over)
{
    world *w = *state;
    order_stream_created(w->o, (order_stream){.handle = 2, .thread = 1}, true);
    uint64_t a = allocate(w, 0, SIDE);
    CALL(w, cuMemcpyDtoH_v2, 0x1000, a, BYTES);
    release(w, 0);
    launch(w, allocate(w, 1, SIDE), SIDE);
    assert_int_equal(w->count, 0);
    a = allocate(w, 0, SIDE);
    CALL(w, cuMemcpyHtoD_v2, a, 0x1000, BYTES); /* likewise, but only the host's memory is free */
    release(w, 0);
    launch(w, allocate(w, 2, SIDE), SIDE);
    assert_int_equal(w->count, 1);
}

/* --- order ------------------------------------------------------------------------------- */

TEST_F(launches, a_wait_for_an_event_is_order)
{
    world *w = *state;
    launch(w, allocate(w, 0, 0), SIDE);
    CALL(w, cuEventRecordWithFlags, 0x9000, SIDE, 0);
    CALL(w, cuStreamWaitEvent, 0, 0x9000, 0);
    assert_false(is_freed_early(w));
}

TEST_F(launches, a_wait_for_a_value_that_is_written_is_order)
{
    world *w = *state;
    launch(w, allocate(w, 0, 0), SIDE);
    CALL(w, cuStreamWriteValue32_v2, SIDE, 0x7f1100000000, 1, 0);
    CALL(w, cuStreamWaitValue32_v2, 0, 0x7f1100000000, 1, 0);
    assert_false(is_freed_early(w));
}

TEST_F(launches, what_the_host_waits_for_is_over)
{
    world *w = *state;
    launch(w, allocate(w, 0, 0), SIDE);
    CALL(w, cuStreamSynchronize, SIDE);
    assert_false(is_freed_early(w));
    launch(w, allocate(w, 0, 0), SIDE);
    CALL(w, cuStreamQuery, SIDE);
    assert_false(is_freed_early(w));
    launch(w, allocate(w, 0, 0), SIDE);
    CALL(w, cuEventRecord, 0x9000, SIDE);
    CALL(w, cuEventSynchronize, 0x9000);
    assert_false(is_freed_early(w));
    launch(w, allocate(w, 0, 0), SIDE);
    CALL(w, cuCtxSynchronize_v2, 0);
    assert_false(is_freed_early(w));
    launch(w, allocate(w, 0, 0), SIDE);
    CALL(w, cuMemFree_v2, 0x7f2200000000);
    assert_false(is_freed_early(w));
}

TEST_F(launches, an_answer_that_it_is_not_over_says_nothing)
{
    world *w = *state;
    launch(w, allocate(w, 0, 0), SIDE);
    CALL(w, cuEventRecord, 0x9000, SIDE);
    CALL_RESULT(w, 600, cuEventQuery, 0x9000);
    CALL_RESULT(w, 600, cuStreamQuery, SIDE);
    assert_true(is_freed_early(w));
}

TEST_F(launches, streams_are_known_by_their_flags)
{
    world *w = *state;
    uint64_t blocking = 0x7700, other = 0x7710;
    CALL(w, cuStreamCreate, word_of(&blocking), 0);
    CALL(w, cuStreamCreateWithPriority, word_of(&other), 1, 0);
    launch(w, allocate(w, 0, 0), blocking);
    assert_false(is_freed_early(w));
    launch(w, allocate(w, 0, 0), other);
    assert_true(is_freed_early(w));
}

TEST_F(launches, cuda_is_asked_about_streams_that_were_there_before)
{
    world *w = *state;
    launch(w, allocate(w, 0, 0), FAKE_BLOCKING_STREAM);
    assert_false(is_freed_early(w));
}

TEST_F(launches, the_null_stream_of_some_calls_is_the_threads)
{
    world *w = *state;
    for (uint64_t is_own = 0; is_own < 2; is_own++) {
        uint64_t a = allocate(w, 0, SIDE);
        if (is_own) {
            CALL(w, cuMemsetD8Async_ptsz, a, 0, BYTES, 0);
        } else {
            CALL(w, cuMemsetD8Async, a, 0, BYTES, 0);
        }
        release(w, 0);
        launch(w, allocate(w, 1, SIDE), SIDE);
        release(w, 1);
        assert_int_equal(w->count, is_own + 1);
        assert_int_equal(w->found[is_own].use_stream.handle, 2 * is_own);
        assert_int_equal(w->found[is_own].use_stream.thread != 0, is_own);
    }
}

TEST_F(launches, the_end_of_a_stream_is_told)
{
    world *w = *state;
    CALL(w, cuStreamDestroy_v2, SIDE);
    assert_int_equal(w->destroyed, SIDE);
}

/* --- graphs ------------------------------------------------------------------------------ */

static void capture(world *w, uint64_t pointer, int result)
{
    uint64_t graph = 0x5000, exec = 0x6000;
    CALL(w, cuStreamBeginCapture_v2, SIDE, 0);
    launch(w, pointer, SIDE);
    CALL_RESULT(w, result, cuStreamEndCapture, SIDE, word_of(&graph));
    CALL(w, cuGraphInstantiateWithFlags, word_of(&exec), graph, 0);
    CALL(w, cuGraphDestroy, graph);
}

TEST_F(launches, a_graph_that_is_launched_uses_what_was_captured)
{
    world *w = *state;
    capture(w, allocate(w, 0, 0), 0);
    release(w, 0);
    assert_int_equal(w->count, 0);
    CALL(w, cuGraphLaunch, 0x6000, 0);
    assert_int_equal(w->count, 1);
    assert_int_equal(w->found[0].kind, ORDER_USED_AFTER_FREE);
    assert_int_equal(w->found[0].use.place, PLACE);
}

TEST_F(launches, a_capture_that_failed_uses_nothing)
{
    world *w = *state;
    capture(w, allocate(w, 0, 0), 900);
    release(w, 0);
    CALL(w, cuGraphLaunch, 0x6000, 0);
    assert_int_equal(w->count, 0);
    launch(w, allocate(w, 0, 0), SIDE);
    assert_true(is_freed_early(w));
}

TEST_F(launches, a_graph_that_is_gone_uses_nothing)
{
    world *w = *state;
    capture(w, allocate(w, 0, 0), 0);
    release(w, 0);
    CALL(w, cuGraphExecDestroy, 0x6000);
    CALL(w, cuGraphLaunch, 0x6000, 0);
    assert_int_equal(w->count, 0);
}

/* --- tables of addresses ----------------------------------------------------------------- */

static void write_table(world *w, uint64_t table, const uint64_t *words, uint64_t bytes)
{
    CALL(w, cuMemcpyHtoDAsync_v2, table, word_of(words), bytes, 0);
}

TEST_F(launches, what_a_table_from_the_host_leads_to_may_be_used)
{
    world *w = *state;
    uint64_t table = allocate(w, 2, 0), words[3] = {7, allocate(w, 0, 0), 8};
    write_table(w, table, words, sizeof words);
    launch(w, table, SIDE);
    assert_int_equal(w->work.count, 2);
    assert_true(is_freed_early(w));
    assert_false(w->found[0].is_certain);
}

TEST_F(launches, a_freed_block_in_a_table_may_be_used_after_its_free)
{
    world *w = *state;
    uint64_t table = allocate(w, 2, 0), word = allocate(w, 0, 0);
    release(w, 0);
    write_table(w, table, &word, sizeof word);
    launch(w, table, 0);
    assert_int_equal(w->count, 1);
    assert_int_equal(w->found[0].kind, ORDER_USED_AFTER_FREE);
    assert_false(w->found[0].is_certain);
    assert_int_equal(w->found[0].use.place, PLACE);
}

TEST_F(launches, a_table_that_is_written_anew_leads_to_nothing_of_before)
{
    world *w = *state;
    uint64_t table = allocate(w, 2, 0), word = allocate(w, 0, 0), none = 0;
    write_table(w, table, &word, sizeof word);
    write_table(w, table, &none, sizeof none);
    launch(w, table, SIDE);
    assert_false(is_freed_early(w));
}

TEST_F(launches, a_kernel_without_the_table_uses_nothing_of_it)
{
    world *w = *state;
    uint64_t word = allocate(w, 0, 0);
    write_table(w, allocate(w, 2, 0), &word, sizeof word);
    launch(w, allocate(w, 3, 0), SIDE);
    assert_false(is_freed_early(w));
}

TEST_F(launches, the_latest_tables_are_kept)
{
    world *w = *state;
    uint64_t word = allocate(w, 0, 0);
    for (size_t i = 0; i < TABLES_MOST + (size_t)TABLES_MOST; i++) {
        write_table(w, allocate(w, 2, 0), &word, sizeof word); /* a block each time */
    }
    launch(w, ADDRESS + 2 * DISTANCE, SIDE);
    assert_true(is_freed_early(w));
}

TEST_F(launches, host_memory_that_cannot_be_read_is_no_table)
{
    world *w = *state;
    uint64_t table = allocate(w, 2, 0);
    CALL(w, cuMemcpyHtoDAsync_v2, table, 0x1000, 64, 0);
    launch(w, table, SIDE);
    assert_int_equal(w->work.count, 1);
}

/* --- what is told of all work -------------------------------------------------------------- */

TEST_F(launches, all_work_is_told_with_its_place)
{
    world *w = *state;
    launch(w, allocate(w, 0, 0), 0);
    assert_int_equal(w->works, 1);
    assert_string_equal(w->work.what, "kernel_of_test");
    assert_int_equal(w->work.place, PLACE);
    assert_int_equal(w->work.count, 1);
    CALL(w, cuMemsetD8Async, ADDRESS, 0, BYTES, SIDE);
    assert_int_equal(w->works, 2);
    assert_int_equal(w->work.stream.handle, SIDE);
    CALL(w, cuGraphLaunch, 0x6000, 0);
    assert_int_equal(w->works, 3);
}

TEST_F(launches, an_illegal_access_is_told_by_whatever_call_reports_it)
{
    world *w = *state;
    uint64_t pointer = allocate(w, 0, 0);
    kernel_call call = {.function = &one_pointer, .parameters = (void *[]){&pointer}};
    call_back(w, 1, call_cuLaunchKernel, &call, CUDA_ILLEGAL_ADDRESS, "kernel_of_test");
    assert_int_equal(w->failures, 1);
    CALL_RESULT(w, CUDA_ILLEGAL_ADDRESS, cuStreamSynchronize, 0);
    assert_int_equal(w->failures, 2);
}

TEST_F(launches, other_errors_are_not)
{
    world *w = *state;
    CALL_RESULT(w, CUDA_INVALID_VALUE, cuMemcpyHtoDAsync_v2, allocate(w, 0, 0), 0x1000, BYTES, 0);
    CALL_RESULT(w, 600, cuStreamQuery, 0);
    assert_int_equal(w->failures, 0);
}

TEST_F(launches, errors_of_the_sanitizers_own_calls_are_its_own)
{
    world *w = *state;
    launches_mute();
    CALL_RESULT(w, CUDA_ILLEGAL_ADDRESS, cuCtxSynchronize, 0);
    launches_unmute();
    assert_int_equal(w->failures, 0);
}

/* --- start and stop ---------------------------------------------------------------------- */

TEST_F(launches, a_second_subscriber_is_told_who_is_in_the_way)
{
    world *w = *state;
    char message[300] = "";
    launches *second = NULL;
    assert_false(start(w, &second, message, sizeof message));
    assert_null(second);
    assert_non_null(strstr(message, "torch.profiler"));
}

TEST_F(launches, watching_can_stop_and_start_again)
{
    world *w = *state;
    char message[300] = "";
    launches_stop(w->l);
    w->l = NULL;
    assert_true(start(w, &w->l, message, sizeof message));
    launch(w, allocate(w, 0, 0), SIDE);
    assert_true(is_freed_early(w));
}
