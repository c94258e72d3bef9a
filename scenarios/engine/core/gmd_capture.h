/* gmd_capture.h - CUDA graphs: what is asked for while one is captured goes to a private pool,
 * which stays for as long as a graph has it. Facts: torch/cuda/graphs.py and CUDAGraph.cpp of
 * PyTorch 2.11. */
#ifndef GMD_CAPTURE_H
#define GMD_CAPTURE_H

#include "gmd_storage.h"

struct cuda_graph;
extern const struct thing_class cuda_graph_class;

struct cuda_graph *cuda_graph_new(struct engine *engine);

/* A pool that no graph has yet. CAPTURE_POOLS: there are no more. */
uint32_t capture_new_pool(struct engine *engine);
/* CAPTURE_POOLS: it was not captured. */
uint32_t cuda_graph_pool(const struct cuda_graph *graph);

/* The cache is emptied, and what follows is part of the graph, on a stream of its own. `pool`:
 * CAPTURE_POOLS for a new one. engine_misuse() where one is being captured or this one was. */
void capture_begin(struct engine *engine, struct cuda_graph *graph, uint32_t pool);
void capture_end(struct engine *engine, struct cuda_graph *graph);

/* On the current stream; asks for nothing. engine_misuse() where it was not captured. */
void cuda_graph_replay(struct engine *engine, struct cuda_graph *graph);
/* The graph lets go of its pool, and may be captured anew. */
void cuda_graph_reset(struct engine *engine, struct cuda_graph *graph);

/* engine_misuse() while a graph is captured; `what` cannot be part of it. */
bool capture_allows(struct engine *engine, const char *what);

#endif
