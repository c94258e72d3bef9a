/* part_random.c - random sequences, by the search of `gmd fuzz`, of kinds that the plan names. */
#include "findings.h"
#include "parts.h"

#include "gmd_clock.h"
#include "gmd_random.h"
#include "gmd_search.h"
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

/* Many blocks of few sizes, so that a size class or a list has many, and now and then one of
 * another size. */
static void make_small(gmd_profile *p)
{
    static const uint64_t sizes[] = {512, 1000, 4096, 65536, 300000, 2 * GMD_MIB};
    p->palette_count = GMD_PALETTE_MAX;
    memcpy(p->palette, sizes, sizeof sizes);
    p->palette_percent = 90;
    p->cap_percent = 0;
}

static void shape_weights(gmd_profile *p, const plan_kind *kind)
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
    if (kind->live_most > 1000) { /* keeps thousands of blocks live */
        p->weights[GMD_OP_ALLOC] = 400;
        p->weights[GMD_OP_FREE] = 380;
        p->weights[GMD_OP_EMPTY_CACHE] = p->weights[GMD_OP_FRACTION] = 0;
        p->weights[GMD_OP_DESTROY] = p->weights[GMD_OP_SYNC] = 1;
    }
}

static void shape(gmd_profile *p, const void *context)
{
    const plan_kind *kind = context;
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
    gate_state *gate;
    uint64_t runs, requests, known; /* counted so far */
} watching;

static void take_status(void *context, const gmd_search_status *s)
{
    watching *w = context;
    gate_count(w->gate, s->runs - w->runs, s->requests - w->requests, s->known - w->known);
    w->runs = s->runs;
    w->requests = s->requests;
    w->known = s->known;
    gate_take_findings(w->gate);
    gate_tell(w->gate, strcmp(s->doing, "minimising") == 0 ? s->doing : "running");
    gate_is_over(w->gate); /* sets gives_up, which ends the search */
}

static uint64_t count_hits(const gmd_findings *found)
{
    uint64_t hits = 0;
    for (size_t i = 0; i < found->count; i++) {
        hits += found->items[i].hits;
    }
    return hits;
}

static void note_result(gate_state *gate, const gmd_search_result *result)
{
    if (result->unconfirmed) {
        gate_note(gate,
                  "%llu sequences showed something only after others in one process: "
                  "%s: %.120s",
                  (unsigned long long)result->unconfirmed, result->unconfirmed_first.oracle,
                  result->unconfirmed_first.message);
    } else if (result->spins_since) {
        gate_note(gate,
                  "threads spin or block outside the scheduler's control: few are interleaved");
    } else if (result->refused) {
        gate_note(gate, "%llu rounds were refused: %.160s", (unsigned long long)result->refused,
                  result->refusal);
    }
}

static void carry_out(gate_state *gate, gmd_search_options *options)
{
    watching w = {.gate = gate};
    gmd_search_result result;
    options->is_interrupted = &gate->gives_up;
    options->progress = take_status;
    options->context = &w;
    gmd_error error = {""};
    uint64_t hits = count_hits(&gate->found);
    void (*tell)(void *, size_t, uint64_t) = gate->found.progress;
    gate_fail(gate, gmd_search(options, &gate->found, &result, &error), &error);
    gate->found.progress = tell; /* the search put its own there */
    gate->found.context = gate;
    gate_take_findings(gate);
    gate->item->hits += count_hits(&gate->found) - hits;
    gate_add_troubles(gate, &result.troubles);
    gate_add_costs(gate, result.judged.oracles, result.judged.count);
    note_result(gate, &result);
}

static void search(gate_state *gate, const gmd_profile_space *space, const plan_kind *kind,
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

/* Goes on from sequences that brought the allocator into new states. */
static void search_guided(gate_state *gate, const gmd_profile_space *space, uint64_t seed,
                          uint64_t runs, double seconds)
{
    gmd_run_options run = gate->run;
    gmd_corpus corpus = {.count = 0};
    gmd_feature_map *map =
        mmap(NULL, sizeof *map, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    gmd_error error;
    if (map == MAP_FAILED) {
        gate_fail(gate, gmd_fail(&error, GMD_NO_MEMORY, "no memory to share"), &error);
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
    gate_note(gate, "%zu sequences led to states that none before had", corpus.count);
    gmd_corpus_free(&corpus);
    munmap(map, sizeof *map);
}

static gmd_profile_space space_of(const gate_state *gate, const plan_kind *kind)
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

/* Why a kind of sequences cannot be run here; NULL: it can. */
static const char *why_not(const gate_state *gate, const plan_kind *kind,
                           const gmd_profile_space *space)
{
    return kind->has_only_faults && !gate->space.has_faults
               ? "faults cannot be planted under this allocator"
           : kind->threads > 1 && !gate->space.has_interleaving
               ? "its threads cannot be interleaved here"
           : kind->devices > 1 && space->device_max < 2 ? "needs --devices 2"
                                                        : NULL;
}

static uint64_t seed_of(const gate_state *gate, size_t kind, uint64_t again)
{
    return gmd_random_derive(gmd_random_derive(gate->run.seed, kind), again);
}

static void run_kind(gate_state *gate, size_t index)
{
    const plan_kind *kind = &plan_kinds[index];
    gmd_profile_space space = space_of(gate, kind);
    const char *reason = why_not(gate, kind, &space);
    if (reason) {
        gate_skip_item(gate, kind->name, "%s", reason);
    } else if (gate_begin_item(gate, kind->name)) {
        search(gate, &space, kind, seed_of(gate, index, 0), gate_budget(gate, kind->runs));
        gate_end_item(gate);
    }
}

static const plan_kind any_kind = {.name = "any"};

void part_random(gate_state *gate)
{
    for (size_t i = 0; i < plan_kind_count && !gate_is_over(gate); i++) {
        run_kind(gate, i);
    }
    if (gate_begin_item(gate, "guided by states")) {
        gmd_profile_space space = space_of(gate, &any_kind);
        search_guided(gate, &space, seed_of(gate, plan_kind_count, 0),
                      gate_budget(gate, plan_guided_runs), 0);
        gate_end_item(gate);
    }
}

static bool has_time(gate_state *gate)
{
    return gmd_clock_s() - gate->start < gate->options->seconds && !gate_is_over(gate);
}

static void search_more(gate_state *gate)
{
    for (uint64_t again = 1; has_time(gate); again++) {
        for (size_t i = 0; i < plan_kind_count && has_time(gate); i++) {
            const plan_kind *kind = &plan_kinds[i];
            gmd_profile_space space = space_of(gate, kind);
            if (!why_not(gate, kind, &space)) {
                search(gate, &space, kind, seed_of(gate, i, again), kind->runs.quick);
            }
        }
    }
}

/* Half of the time that is left is for the guided search, which needs it in one piece. */
void part_random_more(gate_state *gate)
{
    double left = gate->options->seconds - (gmd_clock_s() - gate->start);
    if (!(gate->options->seconds > 0) || left <= 0) {
        return;
    }
    if (gate_begin_item(gate, "more, guided by states")) {
        gmd_profile_space space = space_of(gate, &any_kind);
        search_guided(gate, &space, seed_of(gate, plan_kind_count, 1), 0, left / 2);
        gate_end_item(gate);
    }
    if (gate_begin_item(gate, "more of all kinds")) {
        search_more(gate);
        gate_end_item(gate);
    }
}
