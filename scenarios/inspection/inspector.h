/* inspector.h - looks on while a scenario runs and writes down what it sees: a gmd_inspection.
 *
 * It stands between the engine and the sink, hears of every storage as an observer, and asks
 * nothing of either but the sink's figures: the requests are the same with it as without. */
#ifndef GMD_INSPECTOR_H
#define GMD_INSPECTOR_H

#include "gmd_script.h"
#include "line_profile.h"
#include "timeline.h"

/* What is known of a block that is alive; a storage's `seen`. */
typedef struct gmd_seen {
    struct gmd_seen *prev, *next;
    gmd_storage *storage;
    uint64_t used;   /* bytes that the allocator's figure grew by */
    gmd_shape shape; /* of the first tensor over it */
    gmd_dtype dtype;
    bool has_shape;
    uint32_t line;  /* of the script */
    uint64_t born;  /* of the timeline's clock */
    uint32_t owner; /* scratch of the report on tensors */
} gmd_seen;

typedef struct gmd_inspector {
    gmd_inspection *out;
    const gmd_scenario *scenario;
    const gmd_sink *inner;
    gmd_sink sink;
    gmd_observer observer;
    gmd_binding *binding;
    gmd_sink_memory memory; /* after the latest request */
    uint64_t growth;        /* of allocated bytes by the latest request */
    gmd_seen *blocks;       /* all that are alive */
    gmd_line_profile *lines;
    gmd_timeline timeline;
    bool requested; /* something, since the latest phase */
} gmd_inspector;

/* `sink` and `scenario` (with its inspection) are borrowed. NULL: no memory. */
gmd_inspector *gmd_inspector_open(const gmd_scenario *scenario, const gmd_sink *sink);
void gmd_inspector_close(gmd_inspector *inspector); /* NULL is fine */

/* Before the script is run. */
void gmd_inspector_attach(gmd_inspector *inspector, gmd_binding *binding);
/* The script is behind its declaration. NULL is fine. */
void gmd_inspector_begin(gmd_inspector *inspector);
/* The script is over; nothing of its own is freed yet. NULL is fine. */
void gmd_inspector_end(gmd_inspector *inspector);

/* survivors.c: the tensors that are alive, with who holds them, into inspector->out. */
void gmd_survivors(gmd_inspector *inspector, const char *phase);

#endif
