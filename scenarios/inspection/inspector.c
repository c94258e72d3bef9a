/* inspector.c - observes a run of a scenario and fills in a gmd_inspection.
 *
 * It stands between the engine and the sink, hears of every storage as an observer, and asks for
 * nothing but the sink's figures: the requests are the same with it as without it. */
#include "category_timeline.h"
#include "gmd_observer.h"
#include "gmd_scenario_inspect.h"
#include "gmd_script.h"
#include "line_profile.h"
#include "survivors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct inspector {
    gmd_inspection *out;
    const gmd_scenario *scenario;
    const gmd_sink *inner;
    gmd_sink sink;
    struct observer observer;
    struct binding *binding;
    gmd_sink_memory memory;    /* after the latest request */
    uint64_t growth;           /* of allocated bytes by the latest request */
    struct live_block *blocks; /* all that are alive */
    struct line_profile *lines;
    struct category_timeline timeline;
    bool requested; /* there was a request since the latest phase */
};

/* --- what the allocator does ------------------------------------------------------------- */

/* Reads the figures after a request; they are seen from outside where the allocator keeps none. */
static void read_memory(struct inspector *i)
{
    uint64_t before = i->memory.allocated;
    if (!i->inner->memory || !i->inner->memory(i->inner->context, &i->memory)) {
        i->memory = (gmd_sink_memory){.active = UINT64_MAX};
    }
    i->growth = i->memory.allocated > before ? i->memory.allocated - before : 0;
    if (i->lines) {
        bool is_kept = i->memory.active != UINT64_MAX;
        line_profile_note(i->lines, is_kept ? i->memory.active : i->memory.allocated,
                          i->memory.reserved);
    }
}

static gmd_served on_request(void *context, const gmd_request *request)
{
    struct inspector *i = context;
    gmd_served served = i->inner->request(i->inner->context, request);
    i->requested = true;
    read_memory(i);
    return served;
}

static void write_survivors(struct inspector *i, const char *phase)
{
    gmd_inspection *out = i->out;
    snprintf(out->taken_at, sizeof out->taken_at, "%s", phase);
    out->allocated = i->memory.allocated;
    out->reserved = i->memory.reserved;
    survivors_write(i->binding, i->blocks, out);
}

static void on_phase(void *context, const char *label)
{
    struct inspector *i = context;
    gmd_inspection *out = i->out;
    if (i->inner->phase) {
        i->inner->phase(i->inner->context, label);
    }
    if (out->wanted & GMD_INSPECT_TIMELINE) {
        category_timeline_phase(&i->timeline, label, i->blocks, out);
    }
    if (*out->at && strcmp(out->at, label) == 0 &&
        (out->wanted & (GMD_INSPECT_TENSORS | GMD_INSPECT_RETENTION)) && !out->was_reached) {
        out->was_reached = true;
        write_survivors(i, label);
    }
    i->requested = false;
}

static bool on_memory(void *context, gmd_sink_memory *memory)
{
    const struct inspector *i = context;
    return i->inner->memory && i->inner->memory(i->inner->context, memory);
}

static void on_bound(void *context, const gmd_bound *bound)
{
    const struct inspector *i = context;
    if (i->inner->bound) {
        i->inner->bound(i->inner->context, bound);
    }
}

static void on_workspaces(void *context, const gmd_workspace_use *use)
{
    const struct inspector *i = context;
    if (i->inner->workspaces) {
        i->inner->workspaces(i->inner->context, use);
    }
}

static void on_reset_peaks(void *context)
{
    const struct inspector *i = context;
    if (i->inner->reset_peaks) {
        i->inner->reset_peaks(i->inner->context);
    }
}

static void on_place(void *context, const char *file, int line)
{
    const struct inspector *i = context;
    if (i->inner->place) {
        i->inner->place(i->inner->context, file, line);
    }
}

/* --- what the engine does ---------------------------------------------------------------- */

static void on_made(void *context, struct storage *storage)
{
    struct inspector *i = context;
    struct live_block *block = calloc(1, sizeof *block);
    if (!block) {
        i->out->no_memory = true;
        return;
    }
    block->storage = storage;
    block->used = i->out->uses_are_known ? i->growth : storage->bytes;
    block->line = binding_line(i->binding->lua);
    block->next = i->blocks;
    if (i->blocks) {
        i->blocks->prev = block;
    }
    i->blocks = block;
    storage->seen = block;
    category_timeline_made(&i->timeline, block);
}

static void on_gone(void *context, struct storage *storage)
{
    struct inspector *i = context;
    struct live_block *block = storage->seen;
    if (!block) {
        return;
    }
    category_timeline_gone(&i->timeline, block, i->out);
    if (block->prev) {
        block->prev->next = block->next;
    } else {
        i->blocks = block->next;
    }
    if (block->next) {
        block->next->prev = block->prev;
    }
    storage->seen = NULL;
    free(block);
}

static void on_shaped(void *context, const struct tensor *tensor)
{
    struct live_block *block = tensor->storage->seen;
    (void)context;
    if (block && !block->has_shape) {
        block->shape = tensor->shape;
        block->dtype = tensor->dtype;
        block->has_shape = true;
    }
}

/* --- life -------------------------------------------------------------------------------- */

static void close_inspector(void *context)
{
    struct inspector *inspector = context;
    while (inspector->blocks) {
        struct live_block *next = inspector->blocks->next;
        free(inspector->blocks);
        inspector->blocks = next;
    }
    line_profile_close(inspector->lines);
    category_timeline_free(&inspector->timeline);
    free(inspector);
}

static void attach(void *context, struct binding *binding)
{
    struct inspector *inspector = context;
    inspector->binding = binding;
    read_memory(inspector);
    inspector->out->uses_are_known = inspector->memory.active != UINT64_MAX;
    if (inspector->out->wanted & ~(uint32_t)GMD_INSPECT_LINES) {
        binding->engine->observer = &inspector->observer;
    }
}

static void begin(void *context)
{
    struct inspector *inspector = context;
    if (inspector->lines) {
        line_profile_begin(inspector->lines, inspector->binding->lua);
    }
}

static void end(void *context)
{
    struct inspector *inspector = context;
    gmd_inspection *out = inspector->out;
    if (inspector->lines) {
        line_profile_write(inspector->lines, inspector->scenario->source,
                           inspector->scenario->length, out);
    }
    if ((out->wanted & GMD_INSPECT_TIMELINE) && inspector->requested) {
        category_timeline_phase(&inspector->timeline, "(end)", inspector->blocks, out);
    }
    if ((out->wanted & (GMD_INSPECT_TENSORS | GMD_INSPECT_RETENTION)) && !*out->at) {
        write_survivors(inspector, "");
    }
    out->is_complete = true;
}

static bool open_inspector(const gmd_scenario *scenario, const gmd_sink *sink,
                           struct run_watch *watch)
{
    if (scenario->inspection->is_complete) {
        return true;
    }
    struct inspector *i = calloc(1, sizeof *i);
    if (!i) {
        return false;
    }
    i->scenario = scenario;
    i->out = scenario->inspection;
    i->inner = sink;
    i->sink = (gmd_sink){.context = i,
                         .request = on_request,
                         .phase = on_phase,
                         .memory = on_memory,
                         .bound = on_bound,
                         .workspaces = on_workspaces,
                         .reset_peaks = on_reset_peaks,
                         .place = on_place,
                         .tells_lines = sink->tells_lines};
    i->observer =
        (struct observer){.context = i, .made = on_made, .gone = on_gone, .shaped = on_shaped};
    if (i->out->wanted & GMD_INSPECT_LINES) {
        i->lines = line_profile_open();
        i->out->no_memory |= !i->lines;
    }
    *watch = (struct run_watch){.context = i,
                                .sink = &i->sink,
                                .attach = attach,
                                .begin = begin,
                                .end = end,
                                .close = close_inspector};
    return true;
}

void gmd_scenario_inspect(gmd_scenario *scenario, gmd_inspection *inspection)
{
    scenario->inspection = inspection;
    scenario->open_watch = inspection ? open_inspector : NULL;
}
