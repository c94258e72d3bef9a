/* The same requests to an allocator and to the naive model of PyTorch's algorithm
 * (gmd_naive_model.h): every address, every call to the device and the sums must agree. The
 * allocator is the reference; with the environment variables GMD_FUZZ_ALLOCATOR=torch and
 * GMD_TORCH_DIR it is PyTorch's binary, so that the three are held against each other.
 *
 * What the model knows of an input (gmd_input.h) is used: allocations up to 1 TiB on one device,
 * frees, emptying the cache, fractions, private pools, captures into them with the waits that
 * spread them and the synchronisations that make them fail. Settings, faults and other work are
 * left out, and while a stream is captured what CUDA lets no program do (docs/trace-format.md);
 * launches, of which an allocator sees nothing, do nothing. When the cache of pools goes back is
 * each allocator's own affair: PyTorch keeps it (gmd_naive_model.keeps_pools), and is held to that.
 */
#include "fuzz.h"

#include "fuzz_run.h"
#include "gmd_input.h"
#include "gmd_min.h"
#include "gmd_naive_model.h"
#include "gmd_pool_state.h"
#include "gmd_runtime.h"
#include "gmd_size.h"
#include "gmd_subject.h"
#include "gmd_torch.h"

#include <string.h>

#define BYTES_MAX    ((uint64_t)1 << 40)
#define CAPACITY_MIN (16 * GMD_MIB)
#define CAPACITY_MAX (64 * GMD_GIB)
enum { STREAMS = 8 };

typedef struct call_log {
    uint64_t placed; /* by the last one */
    unsigned made, given;
} call_log;

typedef struct machine { /* for all inputs */
    gmd_runtime runtime;
    gmd_subject subject;
    cudaStream_t streams[STREAMS]; /* 0: the default stream */
    uint64_t capacity;
    call_log calls;
    uint32_t pool_count; /* made so far: no name comes twice */
    bool is_open, is_torch;
} machine;

typedef struct run {
    machine *machine;
    const gmd_trace *trace;
    gmd_naive_model model;
    uint64_t *addresses; /* of each block; 0: not served */
    gmd_pool_state pools;
    uint32_t pool_numbers[GMD_MAX_POOLS]; /* of the pools that are held: their names */
    void *pool_context;                   /* of the open one */
    uint32_t captured;                    /* streams, as bits; 0: no capture is under way */
    uint32_t origin;                      /* of the capture: its first stream */
    bool has_failed;                      /* the capture: no stream comes to it any more */
    gmd_stats start;
    size_t request;
} run;

/* --- the machine ------------------------------------------------------------------------- */

static void note_call(void *context, const gmd_sim_call *call)
{
    call_log *calls = context;
    if (call->result != 0) {
        return;
    }
    if (call->kind == GMD_SIM_CALL_MALLOC) {
        calls->placed = call->address;
        calls->made++;
    }
    calls->given += call->kind == GMD_SIM_CALL_FREE;
}

static void demand(gmd_status status, const gmd_error *error)
{
    if (status != GMD_OK) {
        fprintf(stderr, "%s\n", error->text);
        exit(3);
    }
}

static void fresh_device(machine *m, uint64_t capacity)
{
    gmd_sim_config config;
    m->runtime.sim->gmd_sim_default_config(&config);
    config.capacity_bytes = m->capacity = capacity / (2 * GMD_MIB) * (2 * GMD_MIB);
    FUZZ_REQUIRE(m->runtime.sim->gmd_sim_reset(&config) == 0);
    for (int i = 1; i < STREAMS; i++) {
        FUZZ_REQUIRE(m->runtime.cudaStreamCreateWithFlags(&m->streams[i], cudaStreamNonBlocking) ==
                     cudaSuccess);
    }
    m->runtime.sim->gmd_sim_observe(note_call, &m->calls);
}

static void open_machine(machine *m)
{
    static char adapter[PATH_MAX];
    gmd_error error = {""};
    const char *directory = fuzz_lib_directory(), *spec = getenv("GMD_FUZZ_ALLOCATOR");
    gmd_subject_source source = {.spec = spec && *spec ? spec : "reference",
                                 .lib_directory = directory};
    m->is_torch = strcmp(source.spec, "torch") == 0;
    if (m->is_torch) {
        gmd_torch torch;
        demand(gmd_torch_find(&torch, NULL, &error), &error);
        demand(gmd_torch_adapter(&torch, directory, false, adapter, &error), &error);
        source.torch_adapter = adapter;
    }
    demand(gmd_runtime_open(&m->runtime, GMD_DEVICE_SIM, directory, &error), &error);
    fresh_device(m, GMD_GIB);
    demand(gmd_subject_open(&m->subject, &source, &error), &error);
    if (m->subject.init) {
        m->subject.init(1);
    }
    m->is_open = true;
}

/* --- one input --------------------------------------------------------------------------- */

static void differ(const run *r, const char *what, uint64_t expected, uint64_t got)
{
    fprintf(stderr, "request %zu: %s: the model has %llu (0x%llx), the allocator %llu (0x%llx)\n",
            r->request, what, (unsigned long long)expected, (unsigned long long)expected,
            (unsigned long long)got, (unsigned long long)got);
    gmd_trace_write(r->trace, stderr, NULL);
    abort();
}

static void compare(const run *r, const char *what, uint64_t expected, uint64_t got)
{
    if (expected != got) {
        differ(r, what, expected, got);
    }
}

static void compare_calls(const run *r, unsigned made, unsigned given)
{
    compare(r, "segments asked for", made, r->machine->calls.made);
    compare(r, "segments given back", given, r->machine->calls.given);
}

static void do_alloc(run *r, const gmd_request *q)
{
    machine *m = r->machine;
    uint32_t stream = q->stream % STREAMS;
    bool is_left_out = r->captured && !(r->captured >> stream & 1);
    if (is_left_out || q->bytes > BYTES_MAX || (!q->bytes && m->is_torch)) {
        return; /* of 0 bytes PyTorch answers with no block at all */
    }
    uint64_t got = (uint64_t)(uintptr_t)m->subject.malloc(q->bytes, 0, m->streams[stream]);
    gmd_naive_answer expected = gmd_naive_malloc(&r->model, q->bytes, stream, m->calls.placed);
    compare_calls(r, expected.made, expected.given);
    compare(r, "address", expected.address, got);
    r->addresses[q->block] = got;
}

static void free_block(run *r, uint32_t block, uint32_t stream)
{
    uint64_t address = r->addresses[block];
    if (!address) {
        return;
    }
    r->machine->subject.free((void *)(uintptr_t)address, 0, 0,
                             r->machine->streams[stream % STREAMS]);
    gmd_naive_free(&r->model, address);
    compare_calls(r, 0, 0);
    r->addresses[block] = 0;
}

static void do_fraction(run *r, double fraction)
{
    uint64_t capacity = r->machine->capacity;
    r->machine->subject.set_memory_fraction(fraction, 0);
    r->model.limit = fraction < 1 ? (uint64_t)(fraction * (double)capacity) : capacity;
}

static void empty_cache(run *r)
{
    if (r->captured) {
        return;
    }
    r->machine->subject.empty_cache();
    unsigned expected = gmd_naive_empty_cache(&r->model);
    compare_calls(r, 0, expected);
}

/* --- private pools ----------------------------------------------------------------------- */

static bool is_the_stream(void *context, cudaStream_t stream)
{
    return *(cudaStream_t *)context == stream;
}

static bool is_captured(void *context, cudaStream_t stream)
{
    const run *r = context;
    for (uint32_t left = r->captured; left; left &= left - 1) {
        if (r->machine->streams[__builtin_ctz(left)] == stream) {
            return true;
        }
    }
    return false;
}

/* `accepts` NULL: all streams. */
static void open_pool(run *r, uint32_t pool, gmd_stream_filter *accepts, void *context)
{
    machine *m = r->machine;
    if (r->pools.holders[0][pool] == 1) {
        r->pool_numbers[pool] = ++m->pool_count;
    }
    const uint64_t id[2] = {0, r->pool_numbers[pool]};
    r->pool_context = context;
    compare(r, "begin_pool", 0, (uint64_t)m->subject.begin_pool(0, id, accepts, context));
}

static void begin_pool(run *r, uint32_t pool, uint32_t stream)
{
    bool takes_all = stream == GMD_ALL_STREAMS;
    open_pool(r, pool, takes_all ? NULL : is_the_stream, &r->machine->streams[stream % STREAMS]);
    gmd_naive_begin_pool(&r->model, r->pool_numbers[pool],
                         takes_all ? GMD_NAIVE_ALL_STREAMS : stream % STREAMS);
}

static void end_pool(run *r, uint32_t pool)
{
    void *context = NULL;
    const uint64_t id[2] = {0, r->pool_numbers[pool]};
    compare(r, "end_pool", 0, (uint64_t)r->machine->subject.end_pool(0, id, &context));
    compare(r, "context of end_pool", (uintptr_t)r->pool_context, (uintptr_t)context);
    gmd_naive_end_pool(&r->model);
}

static void release_pool(run *r, uint32_t pool)
{
    const uint64_t id[2] = {0, r->pool_numbers[pool]};
    compare(r, "release_pool", 0, (uint64_t)r->machine->subject.release_pool(0, id));
    if (!r->pools.holders[0][pool]) {
        gmd_naive_drop_pool(&r->model, r->pool_numbers[pool]);
    }
}

/* --- captures: work on streams is what makes them, and there is no other ------------------ */

/* False: what is captured cannot be waited for any more. */
static bool queue_wait(const machine *m, uint32_t waiter, uint32_t waited)
{
    cudaEvent_t event;
    FUZZ_REQUIRE(m->runtime.cudaEventCreateWithFlags(&event, cudaEventDisableTiming) ==
                 cudaSuccess);
    bool is_done = m->runtime.cudaEventRecord(event, m->streams[waited]) == cudaSuccess &&
                   m->runtime.cudaStreamWaitEvent(m->streams[waiter], event, 0) == cudaSuccess;
    m->runtime.cudaEventDestroy(event);
    return is_done;
}

static void begin_capture(run *r, uint32_t pool, uint32_t stream)
{
    const machine *m = r->machine;
    open_pool(r, pool, is_captured, r);
    gmd_naive_begin_capture(&r->model, r->pool_numbers[pool], stream);
    r->captured = 1u << stream;
    r->origin = stream;
    r->has_failed = false;
    FUZZ_REQUIRE(m->runtime.cudaStreamBeginCapture(m->streams[stream],
                                                   cudaStreamCaptureModeGlobal) == cudaSuccess);
}

/* A stream that waits for a captured one is captured, too. */
static void do_wait(run *r, uint32_t waiter, uint32_t waited)
{
    bool joins = r->captured >> waited & 1 && !(r->captured >> waiter & 1) && waiter != 0;
    if (joins && !r->has_failed) {
        FUZZ_REQUIRE(queue_wait(r->machine, waiter, waited));
        r->captured |= 1u << waiter;
        gmd_naive_join_capture(&r->model, waiter);
    }
}

/* It is a mistake on a captured stream, and the capture has failed. */
static void do_sync(run *r, uint32_t stream)
{
    const gmd_runtime *runtime = &r->machine->runtime;
    if (stream != GMD_ALL_STREAMS && r->captured >> stream % STREAMS & 1) {
        cudaStream_t captured = r->machine->streams[stream % STREAMS];
        FUZZ_REQUIRE(runtime->cudaStreamSynchronize(captured) != cudaSuccess);
        runtime->cudaGetLastError();
        r->has_failed = true;
    }
}

/* All its streams come together in the first one. What the allocator does must not make it fail. */
static void end_capture(run *r)
{
    const machine *m = r->machine;
    cudaGraph_t graph = NULL;
    for (uint32_t left = r->captured & ~(1u << r->origin); left && !r->has_failed;
         left &= left - 1) {
        FUZZ_REQUIRE(queue_wait(m, r->origin, (uint32_t)__builtin_ctz(left)));
    }
    cudaError_t result = m->runtime.cudaStreamEndCapture(m->streams[r->origin], &graph);
    m->runtime.cudaGetLastError();
    compare(r, "captures that have failed", r->has_failed, result != cudaSuccess);
    if (graph) {
        m->runtime.cudaGraphDestroy(graph);
    }
    r->captured = 0;
}

/* Whatever device it names, it is done on the only one, where it makes sense there. */
static void do_on_pool(run *r, const gmd_request *q)
{
    gmd_request here = *q;
    here.device = 0;
    here.pool %= GMD_MAX_POOLS;
    if (gmd_op_is_of_capture(here.op)) {
        here.stream %= STREAMS;
    }
    if (!r->machine->subject.begin_pool || gmd_pool_state_note(&r->pools, &here)) {
        return;
    }
    switch (here.op) {
    case GMD_OP_BEGIN_POOL:
        begin_pool(r, here.pool, here.stream);
        break;
    case GMD_OP_BEGIN_CAPTURE:
        begin_capture(r, here.pool, here.stream);
        break;
    case GMD_OP_END_CAPTURE:
        end_capture(r);
        end_pool(r, here.pool);
        break;
    case GMD_OP_END_POOL:
        end_pool(r, here.pool);
        break;
    case GMD_OP_RELEASE_POOL:
        release_pool(r, here.pool);
        break;
    default:
        break;
    }
    compare_calls(r, 0, 0);
}

static void end_open_pool(run *r)
{
    uint32_t open = r->pools.open[0];
    uint8_t op = r->captured ? GMD_OP_END_CAPTURE : GMD_OP_END_POOL;
    if (open) {
        do_on_pool(r, &(gmd_request){.op = op, .pool = open - 1});
    }
}

static void release_pools(run *r)
{
    for (uint32_t pool = 0; pool < GMD_MAX_POOLS; pool++) {
        while (r->pools.holders[0][pool]) {
            do_on_pool(r, &(gmd_request){.op = GMD_OP_RELEASE_POOL, .pool = pool});
        }
    }
}

/* --- one request after the other --------------------------------------------------------- */

static void carry_out(run *r, const gmd_request *q)
{
    r->machine->calls = (call_log){0};
    switch ((gmd_op)q->op) {
    case GMD_OP_ALLOC:
        do_alloc(r, q);
        break;
    case GMD_OP_FREE:
        free_block(r, q->block, 0);
        break;
    case GMD_OP_EMPTY_CACHE:
        empty_cache(r);
        break;
    case GMD_OP_FRACTION:
        do_fraction(r, q->fraction);
        break;
    case GMD_OP_BEGIN_POOL:
    case GMD_OP_END_POOL:
    case GMD_OP_RELEASE_POOL:
    case GMD_OP_BEGIN_CAPTURE:
    case GMD_OP_END_CAPTURE:
    case GMD_OP_LAUNCH:
        do_on_pool(r, q);
        break;
    case GMD_OP_WAIT:
        do_wait(r, q->stream % STREAMS, q->other_stream % STREAMS);
        break;
    case GMD_OP_SYNC:
        do_sync(r, q->stream);
        break;
    default:
        break;
    }
}

static gmd_stats stats_of(const run *r)
{
    gmd_stats stats = {.struct_size = sizeof stats};
    FUZZ_REQUIRE(r->machine->subject.get_stats(0, &stats) == 0);
    return stats;
}

/* The sums agree, and when all is freed and given back nothing is left. */
static void compare_ends(run *r)
{
    gmd_stats end = stats_of(r);
    compare(r, "reserved bytes", r->model.reserved, end.reserved_bytes);
    compare(r, "num_ooms", r->model.ooms, end.num_ooms - r->start.num_ooms);
    compare(r, "num_alloc_retries", r->model.retries,
            end.num_alloc_retries - r->start.num_alloc_retries);
    r->machine->calls = (call_log){0};
    end_open_pool(r);
    for (uint32_t i = 0; i < r->trace->blocks.count; i++) {
        r->machine->calls = (call_log){0};
        free_block(r, i, 0);
    }
    r->machine->calls = (call_log){0};
    release_pools(r);
    empty_cache(r);
    compare(r, "reserved bytes at the end", 0, stats_of(r).reserved_bytes);
    do_fraction(r, 1);
}

/* An allocator that cannot start anew goes on with an empty cache. */
static void start(run *r)
{
    machine *m = r->machine;
    if (m->subject.restart) {
        char message[512];
        uint64_t wanted =
            r->trace->conditions.capacity_bytes ? r->trace->conditions.capacity_bytes : GMD_GIB;
        uint64_t at_least = gmd_max(wanted, CAPACITY_MIN);
        fresh_device(m, gmd_min(at_least, CAPACITY_MAX));
        FUZZ_REQUIRE(m->subject.restart("", message, sizeof message) == 0);
    }
    r->model.limit = m->capacity;
    r->start = stats_of(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static machine shared;
    static gmd_trace trace;
    static gmd_naive_block blocks[2 * GMD_INPUT_REQUESTS_MAX + 1];
    static uint64_t addresses[GMD_INPUT_REQUESTS_MAX];
    gmd_error error = {""};
    if (!shared.is_open) {
        open_machine(&shared);
        gmd_trace_init(&trace);
    }
    size = gmd_min(size, GMD_INPUT_BYTES_MAX);
    FUZZ_REQUIRE(gmd_input_decode(data, size, &trace, &error) == GMD_OK);
    if (trace.count > GMD_INPUT_REQUESTS_MAX) {
        return -1; /* of repeats: too long for a model that looks at every block */
    }
    memset(addresses, 0, trace.blocks.count * sizeof *addresses);
    run r = {.machine = &shared,
             .trace = &trace,
             .model = {.blocks = blocks, .keeps_pools = shared.is_torch},
             .addresses = addresses};
    start(&r);
    for (; r.request < trace.count; r.request++) {
        carry_out(&r, &trace.requests[r.request]);
    }
    compare_ends(&r);
    return 0;
}
