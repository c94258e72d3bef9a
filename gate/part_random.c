/* part_random.c - random sequences, by the search of `gmd fuzz`, of kinds that the plan names. */
#include "gate.h"
#include "gmd_search.h"
#include "plan.h"

#include "gmd_size.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* --- a kind ------------------------------------------------------------------------------ */

static uint32_t within(uint32_t drawn, uint32_t least, uint32_t most)
{
    drawn = drawn < least ? least : drawn;
    return most && drawn > most ? most : drawn;
}

/* Many blocks of sizes that a size class or a list has many of, with a large one now and then. */
static void make_small(gmd_profile *p)
{
    static const uint64_t sizes[] = {512, 1000, 4096, 65536, 300000, 2 * GMD_MIB};
    p->palette_count = GMD_PALETTE_MAX;
    memcpy(p->palette, sizes, sizeof sizes);
    p->palette_percent = 90;
    p->cap_percent = 0;
}

static void shape_weights(gmd_profile *p, const gmd_gate_kind *kind)
{
    if (kind->has_no_faults) {
        p->weights[GMD_OP_FAULT] = p->weights[GMD_OP_BUDGET] = 0;
    }
    if (kind->has_only_faults) {
        p->weights[GMD_OP_FAULT] = 25;
        p->weights[GMD_OP_BUDGET] = 10;
    }
    if (kind->record_weight) {
        p->weights[GMD_OP_USE] = 150;
        p->weights[GMD_OP_RECORD] = kind->record_weight;
        p->weights[GMD_OP_WAIT] = 25;
    }
    if (kind->live_most > 1000) { /* the figures of thousands are in balance */
        p->weights[GMD_OP_ALLOC] = 400;
        p->weights[GMD_OP_FREE] = 380;
        p->weights[GMD_OP_EMPTY_CACHE] = p->weights[GMD_OP_FRACTION] = 0;
        p->weights[GMD_OP_DESTROY] = p->weights[GMD_OP_SYNC] = 1;
    }
}

static void shape(gmd_profile *p, const void *context)
{
    const gmd_gate_kind *kind = context;
    bool was_single = p->stream_count == 1;
    p->stream_count = within(p->stream_count, kind->streams_least, kind->streams_most);
    p->live_max = kind->live_most ? kind->live_most : p->live_max;
    p->request_count = kind->requests ? kind->requests : p->request_count;
    if (was_single && p->stream_count > 1) {
        p->weights[GMD_OP_WAIT] = 20;
    }
    if (kind->devices > 1) {
        p->weights[GMD_OP_DEVICE] = 20;
    }
    if (kind->cap_percent) {
        p->cap_percent = kind->cap_percent;
        p->live_max = within(p->live_max, 0, 12);
    }
    if (gmd_schedule_is_stated(&kind->conditions.schedule)) {
        p->conditions.schedule.kind = kind->conditions.schedule.kind;
    }
    p->has_huge_sizes = p->has_huge_sizes || kind->has_huge_sizes;
    if (kind->has_small_sizes) {
        make_small(p);
    }
    shape_weights(p, kind);
}

/* --- running it -------------------------------------------------------------------------- */

typedef struct watching {
    gmd_gate *gate;
    uint64_t runs, requests, known; /* counted so far */
} watching;

static void take_status(void *context, const gmd_search_status *s)
{
    watching *w = context;
    gmd_gate_count(w->gate, s->runs - w->runs, s->requests - w->requests, s->known - w->known);
    w->runs = s->runs;
    w->requests = s->requests;
    w->known = s->known;
    gmd_gate_take_findings(w->gate);
    gmd_gate_tell(w->gate, strcmp(s->doing, "minimising") == 0 ? s->doing : "running");
    gmd_gate_is_over(w->gate); /* sets what ends the search */
}

static uint64_t count_hits(const gmd_findings *found)
{
    uint64_t hits = 0;
    for (size_t i = 0; i < found->count; i++) {
        hits += found->items[i].hits;
    }
    return hits;
}

static void note_result(gmd_gate *gate, const gmd_search_result *result)
{
    if (result->unconfirmed) {
        gmd_gate_note(gate,
                      "%llu sequences showed something only after others in one process: "
                      "%s: %.120s",
                      (unsigned long long)result->unconfirmed, result->unconfirmed_first.oracle,
                      result->unconfirmed_first.message);
    } else if (result->spins_since) {
        gmd_gate_note(gate,
                      "threads spin or block outside the scheduler's control: few are interleaved");
    } else if (result->refused) {
        gmd_gate_note(gate, "%llu rounds were refused: %.160s", (unsigned long long)result->refused,
                      result->refusal);
    }
}

static void carry_out(gmd_gate *gate, gmd_search_options *options)
{
    watching w = {.gate = gate};
    gmd_search_result result;
    options->is_interrupted = &gate->gives_up;
    options->progress = take_status;
    options->context = &w;
    gmd_error error = {""};
    uint64_t hits = count_hits(&gate->found);
    void (*tell)(void *, size_t, uint64_t) = gate->found.progress;
    gmd_gate_fail(gate, gmd_search(options, &gate->found, &result, &error), &error);
    gate->found.progress = tell; /* the search has its own */
    gate->found.context = gate;
    gmd_gate_take_findings(gate);
    gate->item->hits += count_hits(&gate->found) - hits;
    note_result(gate, &result);
}

static void search(gmd_gate *gate, const gmd_profile_space *space, const gmd_gate_kind *kind,
                   uint64_t seed, uint64_t runs)
{
    gmd_search_options options = {.run = &gate->run,
                                  .space = *space,
                                  .seed = seed,
                                  .runs = runs,
                                  .round_runs = kind->round_runs,
                                  .no_sweeps = kind->has_no_faults || kind->requests > 1000,
                                  .shape = shape,
                                  .kind = kind};
    carry_out(gate, &options);
}

/* Goes on from sequences that brought the allocator into states that none before had. */
static void search_guided(gmd_gate *gate, const gmd_profile_space *space, uint64_t seed,
                          uint64_t runs, double seconds)
{
    gmd_run_options run = gate->run;
    gmd_corpus corpus = {.count = 0};
    gmd_feature_map *map =
        mmap(NULL, sizeof *map, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    gmd_error error;
    if (map == MAP_FAILED) {
        gmd_gate_fail(gate, gmd_fail(&error, GMD_NO_MEMORY, "no memory to share"), &error);
        return;
    }
    run.recording.features = map;
    gmd_search_options options = {.run = &run,
                                  .space = *space,
                                  .seed = seed,
                                  .runs = runs,
                                  .seconds = seconds,
                                  .corpus = &corpus};
    carry_out(gate, &options);
    gmd_gate_note(gate, "%zu sequences led to states that none before had", corpus.count);
    gmd_corpus_free(&corpus);
    munmap(map, sizeof *map);
}

static gmd_profile_space space_of(const gmd_gate *gate, const gmd_gate_kind *kind)
{
    gmd_profile_space s = gate->space;
    s.device_max = kind->devices ? kind->devices : gate->options->device_max;
    s.device_max =
        s.device_max > gate->options->device_max ? gate->options->device_max : s.device_max;
    s.has_devices_only = kind->devices > 1;
    s.has_one_thread = kind->threads == 1;
    s.has_threads_only = kind->threads > 1;
    s.capacity_bytes = kind->conditions.capacity_bytes;
    s.confs = gate->confs;
    s.conf_count = gate->conf_count;
    s.conf_is_fixed = gate->conf_is_fixed;
    return s;
}

/* NULL: it can be run. */
static const char *why_not(const gmd_gate *gate, const gmd_gate_kind *kind,
                           const gmd_profile_space *space)
{
    return kind->has_only_faults && !gate->space.has_faults
               ? "faults cannot be planted under this allocator"
           : kind->threads > 1 && !gate->space.has_interleaving
               ? "its threads cannot be interleaved here"
           : kind->devices > 1 && space->device_max < 2 ? "needs --devices 2"
                                                        : NULL;
}

static uint64_t seed_of(const gmd_gate *gate, size_t kind, uint64_t again)
{
    return gmd_random_derive(gmd_random_derive(gate->run.seed, kind), again);
}

static void run_kind(gmd_gate *gate, size_t index)
{
    const gmd_gate_kind *kind = &gmd_gate_plan_kinds[index];
    gmd_profile_space space = space_of(gate, kind);
    const char *reason = why_not(gate, kind, &space);
    if (reason) {
        gmd_gate_skip(gate, kind->name, "%s", reason);
    } else if (gmd_gate_begin(gate, kind->name)) {
        search(gate, &space, kind, seed_of(gate, index, 0),
               gmd_gate_runs(gate, kind->runs.full, kind->runs.quick));
        gmd_gate_end(gate);
    }
}

static const gmd_gate_kind any_kind = {.name = "any"};

void gmd_gate_random(gmd_gate *gate)
{
    for (size_t i = 0; i < gmd_gate_plan_kind_count && !gmd_gate_is_over(gate); i++) {
        run_kind(gate, i);
    }
    if (gmd_gate_begin(gate, "guided by states")) {
        gmd_profile_space space = space_of(gate, &any_kind);
        search_guided(
            gate, &space, seed_of(gate, gmd_gate_plan_kind_count, 0),
            gmd_gate_runs(gate, gmd_gate_plan_guided_runs.full, gmd_gate_plan_guided_runs.quick),
            0);
        gmd_gate_end(gate);
    }
}

static bool has_time(gmd_gate *gate)
{
    return gmd_clock_s() - gate->start < gate->options->seconds && !gmd_gate_is_over(gate);
}

static void search_more(gmd_gate *gate)
{
    for (uint64_t again = 1; has_time(gate); again++) {
        for (size_t i = 0; i < gmd_gate_plan_kind_count && has_time(gate); i++) {
            const gmd_gate_kind *kind = &gmd_gate_plan_kinds[i];
            gmd_profile_space space = space_of(gate, kind);
            if (!why_not(gate, kind, &space)) {
                search(gate, &space, kind, seed_of(gate, i, again), kind->runs.quick);
            }
        }
    }
}

/* Half of the time that is left is for the guided search, which needs it in one piece. */
void gmd_gate_more(gmd_gate *gate)
{
    double left = gate->options->seconds - (gmd_clock_s() - gate->start);
    if (!(gate->options->seconds > 0) || left <= 0) {
        return;
    }
    if (gmd_gate_begin(gate, "more, guided by states")) {
        gmd_profile_space space = space_of(gate, &any_kind);
        search_guided(gate, &space, seed_of(gate, gmd_gate_plan_kind_count, 1), 0, left / 2);
        gmd_gate_end(gate);
    }
    if (gmd_gate_begin(gate, "more of all kinds")) {
        search_more(gate);
        gmd_gate_end(gate);
    }
}
