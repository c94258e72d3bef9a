/* gmd_engine.h - the core of the scenario engine: host memory, the sink, and things with reference
 * counts. Everything above it (tensors, autograd, modules, the Lua binding) is built on this.
 *
 * Failure. The engine has a sticky state. Once a run is stopped, out of memory or misused, no more
 * blocks are asked for: a storage then made is empty (it owns no block), so that an operation runs
 * to its end without a check at each allocation and leaves consistent reference counts. Whoever
 * called the operation asks gmd_engine_failed() once, at its end. Host memory is different: when it
 * runs out, `no_memory` of gmd_engine_hooks is called and must not return.
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

typedef struct gmd_engine gmd_engine;
typedef struct gmd_thing gmd_thing;
typedef struct gmd_collector gmd_collector;

#define GMD_GENERATIONS 3 /* of the collector */

typedef enum gmd_engine_state {
    GMD_RUNNING,
    GMD_RAN_OUT,   /* the allocator said out of memory; gmd_engine_clear() makes it run again */
    GMD_MISUSED,   /* wrong shapes or arguments; the message is in `error` */
    GMD_WAS_ENDED, /* the sink said stop: no further requests, ever */
} gmd_engine_state;

/* What can be seen by a script and is counted: tensors, modules, optimizers, objects, lists. */
typedef struct gmd_thing_class {
    const char *name; /* for messages: "tensor" */
    void (*destroy)(gmd_engine *engine, gmd_thing *thing);
    /* Containers only: calls `visit` for each reference that the thing holds. */
    void (*traverse)(gmd_thing *thing, void (*visit)(gmd_thing *held, void *context),
                     void *context);
    void (*clear)(gmd_engine *engine, gmd_thing *thing); /* drops what it holds; it stays valid */
} gmd_thing_class;

struct gmd_thing {
    const gmd_thing_class *class;
    size_t refs;
    void *handle;           /* the binding's; NULL when the script has not seen it */
    gmd_thing *prev, *next; /* containers: the collector's list of their generation */
    size_t gc_refs;         /* scratch of the collector */
};

typedef struct gmd_engine_hooks {
    void *context;
    void (*no_memory)(void *context);              /* must not return */
    void (*gone)(void *context, gmd_thing *thing); /* a thing with a handle is destroyed */
    uint32_t (*line)(void *context); /* of the script, now; 0: none; NULL: there is no script */
} gmd_engine_hooks;

struct gmd_engine {
    gmd_engine_state state;
    gmd_error error;        /* of GMD_MISUSED and GMD_RAN_OUT */
    uint64_t refused_bytes; /* of GMD_RAN_OUT */
    const gmd_sink *sink;
    const struct gmd_observer *observer; /* NULL: nobody looks on */
    gmd_engine_hooks hooks;
    gmd_random random;
    uint32_t next_block; /* block ids are never used twice */
    uint64_t requests;
    uint64_t walks;                  /* over modules, so far */
    uint64_t live_bytes, peak_bytes; /* asked for and not freed */
    uint32_t stream;                 /* what is allocated now belongs to it */
    uint32_t streams;                /* created so far, besides the default one */
    struct gmd_autocast *autocast;   /* mixed precision is on; NULL: it is not */
    uint64_t
        collected; /* what collections have cost: one each, and one for each object looked at */
    bool grad_enabled;
    struct tried *tried;    /* convolutions whose algorithms were tried (conv_workspace.c) */
    bool benchmark;         /* cuDNN tries its algorithms at the first use of a convolution */
    bool in_backward;       /* the autograd thread has its own cuBLAS handle */
    uint64_t sequence;      /* of the next graph node */
    uint64_t backward_pass; /* marks the nodes that a pass has seen */
    struct gmd_node *dying; /* nodes whose last reference is gone, to be taken apart in turn */
    bool reaping;
    gmd_thing *doomed; /* things whose destruction waits until the stack is shallower */
    unsigned destroying;
    struct gmd_storage *workspaces; /* of cuBLAS; they live until the engine closes */
    gmd_collector *collector;
    struct host_block *host; /* everything from gmd_take(), so that nothing outlives the engine */
    size_t host_bytes;
};

/* Both are in open.c. `sink` and `hooks` are borrowed. NULL: no memory. */
gmd_engine *gmd_engine_open(const gmd_sink *sink, const gmd_engine_hooks *hooks, uint64_t seed);
/* Frees the host memory of everything that is left; asks nothing of the sink. NULL is fine. */
void gmd_engine_close(gmd_engine *engine);

static inline bool gmd_engine_failed(const gmd_engine *engine)
{
    return engine->state != GMD_RUNNING;
}
void gmd_engine_clear(gmd_engine *engine); /* after GMD_RAN_OUT or GMD_MISUSED was reported */

/* The script did what the framework refuses, e.g. multiplied matrices that do not fit. */
__attribute__((format(printf, 2, 3))) void gmd_misuse(gmd_engine *engine, const char *format, ...);

/* Zeroed host memory that the engine owns; gmd_give() accepts NULL. */
void *gmd_take(gmd_engine *engine, size_t bytes);
void *gmd_take_more(gmd_engine *engine, void *memory, size_t bytes); /* keeps the contents */
void gmd_give(gmd_engine *engine, void *memory);
void gmd_give_all(gmd_engine *engine); /* all that was taken and not given back */

/* One request to the sink; false when it was not served (and the state says why). */
bool gmd_ask(gmd_engine *engine, const gmd_request *request);

/* A number in 0..limit-1 (limit > 0), from the seed. */
uint64_t gmd_engine_random(gmd_engine *engine, uint64_t limit);

/* --- things (thing.c) --------------------------------------------------------------------- */
void gmd_thing_init(gmd_engine *engine, gmd_thing *thing, const gmd_thing_class *class);
gmd_thing *gmd_thing_keep(gmd_thing *thing);               /* one more reference; NULL is fine */
void gmd_thing_drop(gmd_engine *engine, gmd_thing *thing); /* one less; NULL is fine */

#endif
