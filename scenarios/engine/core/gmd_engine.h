/* gmd_engine.h - the core of the scenario engine: host memory, the sink, and things with reference
 * counts. Everything above it (tensors, autograd, modules, the Lua binding) is built on this.
 *
 * Failure. The engine has a sticky state. Once a run is stopped, out of memory or misused, no more
 * blocks are asked for: a storage then made is empty (it owns no block), so that an operation runs
 * to its end without a check at each allocation and leaves consistent reference counts. Whoever
 * called the operation asks engine_failed() once, at its end. Host memory is different: when it
 * runs out, `no_memory` of struct engine_hooks is called and must not return.
 *
 * Ownership. A function that returns a thing gives the caller one reference, unless it says
 * "borrowed". Arguments are borrowed. Thread safety: none; an engine belongs to one thread. */
#ifndef GMD_ENGINE_H
#define GMD_ENGINE_H

#include "gmd_error.h"
#include "gmd_random.h"
#include "gmd_sink.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct engine;
struct thing;
struct collector;
struct gmd_workspaces;

#define COLLECTOR_GENERATIONS 3 /* of the collector */

enum engine_state {
    ENGINE_RUNNING,
    ENGINE_RAN_OUT,   /* the allocator said out of memory; engine_clear() makes it run again */
    ENGINE_MISUSED,   /* wrong shapes or arguments; the message is in `error` */
    ENGINE_WAS_ENDED, /* the sink said stop: no further requests, ever */
};

/* A thing is what scripts can hold and what has a reference count: a tensor, a module, an
 * optimizer, an object, a list. */
struct thing_class {
    const char *name; /* for messages: "tensor" */
    void (*destroy)(struct engine *engine, struct thing *thing);
    /* Containers only: calls `visit` for each reference that the thing holds. */
    void (*traverse)(struct thing *thing, void (*visit)(struct thing *held, void *context),
                     void *context);
    void (*clear)(struct engine *engine,
                  struct thing *thing); /* drops what it holds; it stays valid */
};

struct thing {
    const struct thing_class *class;
    size_t refs;
    void *handle;              /* the binding's; NULL when the script has not seen it */
    struct thing *prev, *next; /* containers: the collector's list of their generation */
    size_t gc_refs;            /* scratch of the collector */
};

struct engine_hooks {
    void *context;
    void (*no_memory)(void *context);                 /* must not return */
    void (*gone)(void *context, struct thing *thing); /* a thing with a handle is destroyed */
    /* The script's current line; 0: none. NULL: there is no script. */
    uint32_t (*line)(void *context);
};

struct final_callback {
    void (*call)(struct engine *engine, void *context);
    void *context;
};

/* Private pools and the graphs that work in them (capture.c). */
#define CAPTURE_POOLS 64 /* at a time (gmd_trace.h) */
struct captures {
    struct cuda_graph *current;      /* being captured; NULL: none */
    uint64_t named;                  /* bits: pools that are spoken for */
    uint64_t made;                   /* captures, so far */
    uint64_t latest[CAPTURE_POOLS];  /* capture into each pool */
    uint32_t holders[CAPTURE_POOLS]; /* graphs of each pool */
    uint32_t graphs;
    uint32_t stream; /* of captures; 0: there was none */
    uint32_t stream_before;
    struct storage *random_state[2];
};

struct engine {
    enum engine_state state;
    gmd_error error;        /* of ENGINE_MISUSED and ENGINE_RAN_OUT */
    uint64_t refused_bytes; /* of ENGINE_RAN_OUT */
    const gmd_sink *sink;
    const struct observer *observer; /* NULL: there is no observer */
    struct engine_hooks hooks;
    gmd_random random;
    uint32_t next_block; /* block ids are never used twice */
    uint64_t requests;
    uint64_t walks;                  /* over modules, so far */
    uint64_t live_bytes, peak_bytes; /* asked for and not freed */
    /* The same peak with each estimated workspace as small, and as large, as it may be. */
    uint64_t peak_least, peak_most;
    uint64_t may_be_less, may_be_more; /* the block that is asked for next: how far it may be off */
    uint32_t stream;                   /* the current stream: new storages belong to it */
    uint32_t streams;                  /* created so far, besides the default one */
    struct autocast *autocast;         /* mixed precision is on; NULL: it is not */
    uint64_t collected; /* what collections have cost: one each, and one for each object examined */
    bool grad_enabled;
    bool on_host;    /* new storages lie in the memory of the CPU, which nobody asks for */
    bool recomputes; /* the second forward pass of a checkpointed block is under way */
    const struct gmd_workspaces *recorded; /* of cuDNN; NULL: those that gmd is built with */
    struct gmd_workspaces *builtin;        /* once they were asked for */
    struct gmd_workspaces *missing;        /* calls that neither has, once there is one */
    FILE *unrecorded;                      /* gets a line for each of them; or NULL */
    gmd_workspace_use workspace_use;
    struct workspace_said *said; /* estimates that were made (workspace_use.c) */
    struct tried *tried;         /* convolutions whose algorithms were tried (conv_workspace.c) */
    bool benchmark;              /* cuDNN tries its algorithms at the first use of a convolution */
    struct final_callback *callbacks; /* to be called when the backward pass is over */
    size_t callback_count;
    uint64_t ranks, rank;    /* of the process group; 0: there is none */
    struct sharded *sharded; /* all sharded modules (fully_shard.c) */
    struct captures captures;
    bool in_backward;           /* the autograd thread has its own cuBLAS handle */
    uint64_t sequence;          /* of the next graph node */
    uint64_t backward_sequence; /* the same of nodes that the autograd thread makes */
    uint64_t backward_pass;     /* marks the nodes that a pass has seen */
    uint64_t restricted_pass;   /* those that lead to what gradients are asked by */
    struct node *dying;         /* nodes whose last reference is gone, to be destroyed in turn */
    bool reaping;
    struct thing *doomed; /* things to be destroyed when the stack is shallower */
    unsigned destroying;
    struct storage *workspaces; /* of cuBLAS; they live until the engine closes */
    struct collector *collector;
    struct host_block *host; /* everything from host_take(), so that nothing outlives the engine */
    size_t host_bytes;
};

/* Both are in open.c. `sink` and `hooks` are borrowed. NULL: no memory. */
struct engine *engine_open(const gmd_sink *sink, const struct engine_hooks *hooks, uint64_t seed);
/* Frees the host memory of everything that is left; asks nothing of the sink. NULL is fine. */
void engine_close(struct engine *engine);

static inline bool engine_failed(const struct engine *engine)
{
    return engine->state != ENGINE_RUNNING;
}
void engine_clear(struct engine *engine); /* after ENGINE_RAN_OUT or ENGINE_MISUSED was reported */

/* The script did what the framework refuses, e.g. multiplied matrices that do not fit. */
__attribute__((format(printf, 2, 3))) void engine_misuse(struct engine *engine, const char *format,
                                                         ...);

/* Zeroed host memory that the engine owns; host_give() accepts NULL. */
void *host_take(struct engine *engine, size_t bytes);
void *host_take_more(struct engine *engine, void *memory, size_t bytes); /* keeps the contents */
void host_give(struct engine *engine, void *memory);
void host_give_all(struct engine *engine); /* all that was taken and not given back */

/* One request to the sink; false when it was not served (and the state says why). */
bool engine_request(struct engine *engine, const gmd_request *request);

/* A number in 0..limit-1 (limit > 0), from the seed. */
uint64_t engine_random(struct engine *engine, uint64_t limit);

/* --- things (thing.c) --------------------------------------------------------------------- */
void thing_init(struct engine *engine, struct thing *thing, const struct thing_class *class);
struct thing *thing_keep(struct thing *thing);               /* one more reference; NULL is fine */
void thing_drop(struct engine *engine, struct thing *thing); /* one less; NULL is fine */

#endif
