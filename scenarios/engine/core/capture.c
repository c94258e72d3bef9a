#include "gmd_capture.h"

struct cuda_graph {
    struct thing thing;
    uint32_t pool;   /* CAPTURE_POOLS: it was not captured */
    uint64_t number; /* of the capture */
};

static void destroy_graph(struct engine *engine, struct thing *thing)
{
    cuda_graph_reset(engine, (struct cuda_graph *)thing);
}

const struct thing_class cuda_graph_class = {.name = "graph", .destroy = destroy_graph};

struct cuda_graph *cuda_graph_new(struct engine *engine)
{
    struct cuda_graph *graph = host_take(engine, sizeof *graph);
    thing_init(engine, &graph->thing, &cuda_graph_class);
    graph->pool = CAPTURE_POOLS;
    return graph;
}

uint32_t cuda_graph_pool(const struct cuda_graph *graph)
{
    return graph->pool;
}

uint32_t capture_new_pool(struct engine *engine)
{
    uint32_t pool = 0;
    while (pool < CAPTURE_POOLS && (engine->captures.named >> pool & 1)) {
        pool++;
    }
    engine->captures.named |= pool < CAPTURE_POOLS ? (uint64_t)1 << pool : 0;
    return pool;
}

static void ask(struct engine *engine, uint8_t op, uint32_t pool, uint32_t stream)
{
    gmd_request request = {.op = op, .pool = pool, .stream = stream};
    engine_request(engine, &request);
}

bool capture_allows(struct engine *engine, const char *what)
{
    if (engine->captures.current) {
        engine_misuse(engine, "%s: not while a graph is captured", what);
    }
    return !engine->captures.current;
}

/* The states of random numbers are there while there is any graph; they are not in its pool. */
static void keep_random_state(struct engine *engine)
{
    for (int i = 0; i < 2 && engine->captures.graphs == 0; i++) {
        engine->captures.random_state[i] = storage_new(engine, sizeof(int64_t));
        storage_mark(engine->captures.random_state[i], GMD_WORKSPACE);
    }
    engine->captures.graphs++;
}

static void drop_random_state(struct engine *engine)
{
    for (int i = 0; i < 2 && engine->captures.graphs == 1; i++) {
        storage_drop(engine, engine->captures.random_state[i]);
        engine->captures.random_state[i] = NULL;
    }
    engine->captures.graphs--;
}

void capture_begin(struct engine *engine, struct cuda_graph *graph, uint32_t pool)
{
    gmd_request sync = {.op = GMD_OP_SYNC, .stream = GMD_ALL_STREAMS};
    gmd_request empty = {.op = GMD_OP_EMPTY_CACHE};
    if (!capture_allows(engine, "cuda.graph")) {
        return;
    }
    if (graph->pool != CAPTURE_POOLS) {
        engine_misuse(engine, "cuda.graph: the graph was captured already; reset() lets go of it");
        return;
    }
    graph->pool = pool == CAPTURE_POOLS ? capture_new_pool(engine) : pool;
    if (graph->pool == CAPTURE_POOLS) {
        engine_misuse(engine, "cuda.graph: at most %d graphs have pools at a time", CAPTURE_POOLS);
        return;
    }
    engine_request(engine, &sync);
    engine_request(engine, &empty);
    if (engine->captures.stream == 0) {
        engine->captures.stream = 1 + engine->streams++ % 32;
    }
    engine->captures.stream_before = engine->stream;
    engine->stream = engine->captures.stream;
    keep_random_state(engine);
    engine->captures.holders[graph->pool]++;
    engine->captures.named |= (uint64_t)1 << graph->pool;
    graph->number = engine->captures.latest[graph->pool] = ++engine->captures.made;
    engine->captures.current = graph;
    ask(engine, GMD_OP_BEGIN_CAPTURE, graph->pool, engine->stream);
}

void capture_end(struct engine *engine, struct cuda_graph *graph)
{
    if (engine->captures.current == graph) {
        ask(engine, GMD_OP_END_CAPTURE, graph->pool, 0);
        engine->captures.current = NULL;
        engine->stream = engine->captures.stream_before;
    }
}

/* Requests know the latest graph of a pool only; another one has the same memory. */
void cuda_graph_replay(struct engine *engine, struct cuda_graph *graph)
{
    if (graph->pool == CAPTURE_POOLS) {
        engine_misuse(engine, "replay: the graph was not captured");
    } else if (capture_allows(engine, "replay") &&
               graph->number == engine->captures.latest[graph->pool]) {
        ask(engine, GMD_OP_LAUNCH, graph->pool, engine->stream);
    }
}

void cuda_graph_reset(struct engine *engine, struct cuda_graph *graph)
{
    uint32_t pool = graph->pool;
    if (pool == CAPTURE_POOLS) {
        return;
    }
    graph->pool = CAPTURE_POOLS;
    if (--engine->captures.holders[pool] == 0) {
        engine->captures.named &= ~((uint64_t)1 << pool);
    }
    ask(engine, GMD_OP_RELEASE_POOL, pool, 0);
    drop_random_state(engine);
}
