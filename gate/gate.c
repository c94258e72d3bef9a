#include "gate.h"
#include "gmd_log.h"

#include "gmd_search.h"
#include "plan.h"

#include "gmd_grow.h"
#include "gmd_text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FINDINGS_MAX          24 /* whoever has so many mends some first */
#define UNCONFIRMED_HANGS_MAX 2
#define HANGS_MAX             3  /* each takes as long as all other runs of a part */
#define MINIMIZE_SECONDS      10 /* for each finding, as long as there are few */
#define MINIMIZE_FEW          4
#define MINIMIZE_HASTE        2
#define MINIMIZE_TRIES        1500
#define HANG_SECONDS          1 /* of a request, while a hang is minimised */

void gmd_gate_fail(gmd_gate *gate, gmd_status status, const gmd_error *error)
{
    if (gate->status == GMD_OK && status != GMD_OK) {
        gate->status = status;
        *gate->error = *error;
    }
}

/* --- when it is over --------------------------------------------------------------------- */

static void give_up(gmd_gate *gate, const char *why)
{
    if (!gate->gives_up) {
        gate->gives_up = 1;
        snprintf(gate->result->ended_early, sizeof gate->result->ended_early, "%s", why);
    }
}

static void decide_to_give_up(gmd_gate *gate)
{
    const volatile sig_atomic_t *interrupted = gate->options->is_interrupted;
    uint64_t hangs = 0;
    for (size_t i = 0; i < gate->found.count; i++) {
        hangs += gmd_is_hang(&gate->found.items[i].violation) ? gate->found.items[i].hits : 0;
    }
    if (interrupted && *interrupted) {
        give_up(gate, "interrupted");
    } else if (gate->options->fails_fast && gate->found.count) {
        give_up(gate, "--fail-fast: the first finding ends the gate");
    } else if (hangs >= HANGS_MAX) {
        give_up(gate, "the allocator hangs again and again: waiting for more of it tells nothing");
    } else if (gate->found.count >= FINDINGS_MAX) {
        give_up(gate, "enough was found: what is left may only be its consequences");
    }
}

bool gmd_gate_is_over(gmd_gate *gate)
{
    decide_to_give_up(gate);
    return gate->status != GMD_OK || gate->gives_up;
}

/* --- items ------------------------------------------------------------------------------- */

void gmd_gate_tell(gmd_gate *gate, const char *doing)
{
    if (!gate->options->progress) {
        return;
    }
    gmd_gate_progress p = {.part = gate->part ? gate->part->name : "",
                           .item = gate->item ? gate->item->name : "",
                           .findings = gate->found.count,
                           .seconds = gmd_clock_s() - gate->start,
                           .doing = doing};
    for (size_t i = 0; i < gate->result->part_count; i++) {
        p.runs += gmd_gate_part_runs(&gate->result->parts[i]);
        p.requests += gmd_gate_part_requests(&gate->result->parts[i]);
    }
    gate->options->progress(gate->options->context, &p);
}

static gmd_gate_item *add_item(gmd_gate *gate, const char *name)
{
    gmd_gate_part *p = gate->part;
    if (!GMD_GROW(&p->items, &p->item_capacity, p->item_count + 1)) {
        gmd_error error;
        gmd_gate_fail(gate, gmd_fail(&error, GMD_NO_MEMORY, "no host memory for results"), &error);
        return NULL;
    }
    gmd_gate_item *item = &p->items[p->item_count++];
    *item = (gmd_gate_item){.fate = GMD_GATE_PASSED};
    snprintf(item->name, sizeof item->name, "%s", name);
    return item;
}

/* --only: "cases" or "cases/general/rmm2489". */
static bool is_asked_for(const gmd_gate *gate, const char *item)
{
    const char *only = gate->options->only;
    size_t part = strlen(gate->part->name);
    if (!only) {
        return true;
    }
    bool is_part = strncmp(only, gate->part->name, part) == 0;
    return is_part && (!only[part] || (only[part] == '/' && strcmp(only + part + 1, item) == 0));
}

bool gmd_gate_begin(gmd_gate *gate, const char *name)
{
    if (gmd_gate_is_over(gate) || !is_asked_for(gate, name)) {
        return false;
    }
    gate->item = add_item(gate, name);
    gate->item_start = gmd_clock_s();
    snprintf(gate->origin, sizeof gate->origin, "found by: gmd gate --seed %" PRIu64 " (%s/%s)",
             gate->run.seed, gate->part->name, name);
    gmd_gate_tell(gate, "running");
    return gate->item != NULL;
}

void gmd_gate_count(gmd_gate *gate, uint64_t runs, uint64_t requests, uint64_t known)
{
    gate->result->known_count += known;
    gate->item->runs += runs;
    gate->item->requests += requests;
}

void gmd_gate_end(gmd_gate *gate)
{
    if (gate->item) {
        gate->item->seconds = gmd_clock_s() - gate->item_start;
        bool was_refused = !gate->item->runs && gate->item->detail[0];
        gate->item->fate = gate->item->hits ? GMD_GATE_FAILED
                           : was_refused    ? GMD_GATE_SKIPPED
                                            : GMD_GATE_PASSED;
        gate->part->was_run = gate->part->was_run || gate->item->runs || gate->item->hits;
    }
    gate->item = NULL;
}

void gmd_gate_skip(gmd_gate *gate, const char *name, const char *reason, ...)
{
    gmd_gate_item *item = is_asked_for(gate, name) ? add_item(gate, name) : NULL;
    if (item) {
        va_list arguments;
        va_start(arguments, reason);
        vsnprintf(item->detail, sizeof item->detail, reason, arguments);
        va_end(arguments);
        item->fate = GMD_GATE_SKIPPED;
    }
}

void gmd_gate_note(gmd_gate *gate, const char *text, ...)
{
    if (gate->item && !gate->item->detail[0]) {
        va_list arguments;
        va_start(arguments, text);
        vsnprintf(gate->item->detail, sizeof gate->item->detail, text, arguments);
        va_end(arguments);
    }
}

uint64_t gmd_gate_runs(const gmd_gate *gate, uint64_t full, uint64_t quick)
{
    return gate->options->is_quick ? quick : full;
}

gmd_run_options gmd_gate_options_as_given(const gmd_gate *gate)
{
    gmd_run_options options = gate->run;
    options.conditions.conf = gate->options->run->conditions.conf;
    return options;
}

bool gmd_gate_set_conf(gmd_gate *gate, gmd_trace *trace, const char *conf)
{
    gmd_error error;
    gmd_status status =
        gmd_conditions_set_conf(&trace->conditions, conf && *conf ? conf : NULL, &error);
    gmd_gate_fail(gate, status, &error);
    return status == GMD_OK;
}

/* --- findings ---------------------------------------------------------------------------- */

void gmd_gate_take_findings(gmd_gate *gate)
{
    if (gate->mark_count == gate->found.count) {
        return;
    }
    gmd_gate_mark *marks = realloc(gate->marks, gate->found.count * sizeof *marks);
    if (!marks) {
        gmd_error error;
        gmd_gate_fail(gate, gmd_fail(&error, GMD_NO_MEMORY, "no host memory for findings"), &error);
        return;
    }
    gate->marks = marks;
    gate->found.minimize_seconds =
        gate->found.count < MINIMIZE_FEW ? MINIMIZE_SECONDS : MINIMIZE_HASTE;
    while (gate->mark_count < gate->found.count) {
        gmd_gate_mark *m = &marks[gate->mark_count++];
        *m = (gmd_gate_mark){.seconds = gmd_clock_s() - gate->start};
        snprintf(m->part, sizeof m->part, "%s", gate->part->name);
        snprintf(m->item, sizeof m->item, "%s", gate->item ? gate->item->name : "");
    }
}

void gmd_gate_found(gmd_gate *gate, gmd_runner *runner, const gmd_trace *trace,
                    const gmd_violation *violation)
{
    gmd_error error;
    gmd_violation copy = *violation; /* the next run overwrites it */
    gmd_status status = gmd_findings_add(&gate->found, runner, trace, &copy, 0, 0, &error);
    gmd_gate_fail(gate, status, &error);
    gmd_gate_take_findings(gate);
    if (gate->item) {
        gate->item->hits++;
    }
}

bool gmd_gate_is_known(gmd_gate *gate, const gmd_violation *violation)
{
    bool is_known = gmd_findings_hit(&gate->found, violation);
    if (is_known && gate->item) {
        gate->item->hits++;
    }
    return is_known;
}

static void tell_minimising(void *context, size_t requests, uint64_t tries)
{
    (void)requests;
    (void)tries;
    gmd_gate_tell(context, "minimising");
}

/* --- runs -------------------------------------------------------------------------------- */

bool gmd_gate_play(gmd_gate *gate, gmd_runner *runner, const gmd_trace *trace)
{
    const gmd_outcome *outcome;
    gmd_error error;
    gmd_status status = gmd_runner_run(runner, trace, &outcome, &error);
    if (status != GMD_OK) {
        if (status != GMD_BAD_INPUT) {
            gmd_gate_fail(gate, status, &error);
        }
        gmd_gate_note(gate, "refused: %s", error.text);
        return false;
    }
    gmd_gate_count(gate, 1, outcome->requests, outcome->known_count);
    if (outcome->violation_count) {
        if (!gmd_gate_is_known(gate, &outcome->violations[0])) {
            gmd_gate_found(gate, runner, trace, &outcome->violations[0]);
        }
    } else if (outcome->verdict == GMD_ERROR) {
        gmd_gate_note(gate, "refused: %s", outcome->error);
        return false;
    }
    return true;
}

/* A suspect counts for what it shows by itself. */
static void look_again(gmd_gate *gate, gmd_runner *runner, const gmd_trace *trace,
                       const gmd_outcome *suspected)
{
    uint64_t hits = gate->item->hits;
    gmd_violation first = {.oracle = "progress", .message = "it did not end"};
    if (suspected->violation_count) {
        first = suspected->violations[0]; /* the next run overwrites it */
        if (gmd_gate_is_known(gate, &first)) {
            return;
        }
    }
    if (gmd_gate_play(gate, runner, trace) && gate->item->hits == hits) {
        gate->unconfirmed_hangs += gmd_is_hang(&first);
        gmd_gate_note(gate, "shown only after other runs in the same process: %s: %s", first.oracle,
                      first.message);
    }
}

/* An allocator that hangs once a process has made so many requests would hang in all of these. */
static bool run_alone(gmd_gate *gate, gmd_runner *runner, const gmd_persistent_input *traces,
                      size_t count)
{
    bool is_alone = gate->unconfirmed_hangs >= UNCONFIRMED_HANGS_MAX;
    for (size_t i = 0; i < count && is_alone && !gmd_gate_is_over(gate); i++) {
        gmd_gate_play(gate, runner, &traces[i].trace);
    }
    return is_alone;
}

void gmd_gate_run_persistent(gmd_gate *gate, gmd_runner *runner, gmd_persistent_input *traces,
                             size_t count)
{
    for (size_t at = 0; at < count && !gmd_gate_is_over(gate);) {
        if (run_alone(gate, runner, &traces[at], count - at)) {
            return;
        }
        gmd_persistent_result persistent;
        gmd_error error;
        gmd_status status =
            gmd_runner_run_persistent(runner, &traces[at], count - at, &persistent, &error);
        if (status != GMD_OK) {
            if (status != GMD_BAD_INPUT) {
                gmd_gate_fail(gate, status, &error);
            }
            gmd_gate_note(gate, "refused: %s", error.text);
            return;
        }
        gmd_gate_count(gate, persistent.passed, persistent.requests, persistent.known);
        gate->lapses += persistent.lapses;
        at += persistent.passed;
        if (persistent.is_suspect) {
            look_again(gate, runner, &traces[at++].trace, persistent.outcome);
        } else if (!persistent.passed || traces[0].expects_lapses) {
            return;
        } else if (at < count) {
            count = at + 1; /* its threads spin outside the scheduler's control: one more will do */
            traces[at].expects_lapses = true;
        }
    }
}

/* --- all of it --------------------------------------------------------------------------- */

static gmd_status prepare_parts(gmd_gate *gate, gmd_error *error)
{
    gmd_gate_part *parts = calloc(gmd_gate_plan_part_count, sizeof *parts);
    if (!parts) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for results");
    }
    for (size_t i = 0; i < gmd_gate_plan_part_count; i++) {
        const gmd_gate_planned_part *p = &gmd_gate_plan_parts[i];
        parts[i] = (gmd_gate_part){.name = p->name, .category = p->category, .what = p->what};
    }
    gate->result->parts = parts;
    gate->result->part_count = gmd_gate_plan_part_count;
    return GMD_OK;
}

/* --only names a part. */
static gmd_status check_only(const gmd_gate *gate, gmd_error *error)
{
    const char *only = gate->options->only;
    char names[200] = "";
    for (size_t i = 0; only && i < gmd_gate_plan_part_count; i++) {
        const char *name = gmd_gate_plan_parts[i].name;
        size_t length = strlen(name), at = strlen(names);
        if (strncmp(only, name, length) == 0 && (!only[length] || only[length] == '/')) {
            return GMD_OK;
        }
        snprintf(names + at, sizeof names - at, "%s%s", i ? ", " : "", name);
    }
    return only ? gmd_fail(error, GMD_BAD_INPUT,
                           "--only %s: expected a part (%s), or PART/ITEM of an earlier report",
                           only, names)
                : GMD_OK;
}

/* --only names an item that there is, and something of the part can be run. */
static gmd_status check_only_ran(const gmd_gate *gate, gmd_error *error)
{
    const char *reason = NULL;
    for (size_t i = 0; i < gate->result->part_count; i++) {
        const gmd_gate_part *part = &gate->result->parts[i];
        if (part->item_count) {
            return GMD_OK;
        }
        size_t length = strlen(part->name);
        bool is_meant = strncmp(gate->options->only, part->name, length) == 0;
        reason = is_meant && part->reason[0] ? part->reason : reason;
    }
    return reason ? gmd_fail(error, GMD_BAD_INPUT, "--only %s: nothing was run: %s",
                             gate->options->only, reason)
                  : gmd_fail(error, GMD_BAD_INPUT,
                             "--only %s: nothing was run: there is no such item for this allocator "
                             "and these options",
                             gate->options->only);
}

static void fix_conf(gmd_gate *gate)
{
    gate->confs[0] = gate->options->run->conditions.conf;
    gate->conf_count = 1;
    gate->conf_is_fixed = true;
}

static void explore(gmd_gate *gate)
{
    gmd_error error = {""};
    const gmd_run_options with = gmd_gate_options_as_given(gate);
    if (gate->options->run->conditions.conf) {
        fix_conf(gate);
    } else if (gate->abilities.configure) {
        gate->conf_count = gmd_search_taken_confs(&gate->run, gate->confs, GMD_GATE_CONF_MAX);
    }
    gmd_gate_fail(gate, gmd_search_find_space(&gate->space, &with, &error), &error);
    gate->space.has_fraction = gate->abilities.set_memory_fraction;
    gate->space.has_record_stream = gate->abilities.record_stream;
}

/* Nothing else can be told of an allocator that does not outlive its first requests. */
static gmd_status make_first_requests(gmd_gate *gate, gmd_error *error)
{
    gmd_outcome *outcome = calloc(1, sizeof *outcome);
    if (!outcome) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for an outcome");
    }
    gate->part = &gate->result->parts[0];
    const gmd_run_options with = gmd_gate_options_as_given(gate);
    gmd_status status = gmd_gate_find_abilities(&gate->abilities, &with, outcome, error);
    gate->result->oracle_count = outcome->oracle_count;
    memcpy(gate->result->oracles, outcome->oracles, sizeof outcome->oracles);
    bool is_dead =
        outcome->violation_count && strcmp(outcome->violations[0].oracle, "progress") == 0;
    if (status == GMD_OK && is_dead && gate->status == GMD_OK) {
        if (gate->options->run->conditions.conf) {
            fix_conf(gate); /* it is with these that it died */
        }
        gmd_gate_first(gate);
        if (gate->found.count) {
            give_up(gate, "the allocator does not outlive its first requests");
        }
    }
    free(outcome);
    return status;
}

gmd_gate_part *gmd_gate_part_named(const gmd_gate *gate, const char *name)
{
    size_t i = 0;
    while (i + 1 < gate->result->part_count && strcmp(gate->result->parts[i].name, name) != 0) {
        i++;
    }
    return &gate->result->parts[i];
}

/* A part without an item and without a reason would pass for one that found nothing. */
static void demand_items(gmd_gate *gate)
{
    bool is_excused = gate->options->only || gate->part->reason[0] || gmd_gate_is_over(gate);
    if (!gate->part->item_count && !is_excused) {
        gmd_error error;
        gmd_gate_fail(gate,
                      gmd_fail(&error, GMD_FAILED,
                               "%s: nothing there to run in the part '%s': is gmd installed whole?",
                               gate->run.subject.lib_directory, gate->part->name),
                      &error);
    }
}

static void run_parts(gmd_gate *gate)
{
    for (size_t i = 0; i < gmd_gate_plan_part_count && !gmd_gate_is_over(gate); i++) {
        gate->part = &gate->result->parts[i];
        GMD_LOG(GATE, "part %s begins", gate->part->name);
        gmd_gate_plan_parts[i].run(gate);
        gmd_gate_end(gate);
        GMD_LOG(GATE, "part %s ends: %zu items", gate->part->name, gate->part->item_count);
        demand_items(gate);
    }
    gate->part = gmd_gate_part_named(gate, "random");
    gmd_gate_more(gate);
}

static gmd_status run_gate(gmd_gate *gate, gmd_error *error)
{
    gmd_status status = check_only(gate, error);
    if (status == GMD_OK) {
        status = prepare_parts(gate, error);
    }
    if (status == GMD_OK) {
        status = gmd_gate_open_baseline(gate, error);
    }
    if (status == GMD_OK) {
        status = make_first_requests(gate, error);
    }
    if (status != GMD_OK) {
        return status;
    }
    if (!gate->gives_up) {
        explore(gate);
    }
    if (gate->options->rounds_file) {
        gmd_gate_rounds_of_file(gate, gate->options->rounds_file);
    } else {
        run_parts(gate);
    }
    gmd_gate_end(gate);
    gmd_gate_tell_findings(gate);
    if (gate->status == GMD_OK && gate->options->only && !gate->gives_up) {
        status = check_only_ran(gate, error);
    }
    if (gate->status != GMD_OK || status != GMD_OK) {
        return gate->status != GMD_OK ? gate->status : status;
    }
    return gmd_gate_close_baseline(gate, error);
}

gmd_status gmd_gate_run(const gmd_gate_options *options, gmd_gate_result *result, gmd_error *error)
{
    *result = (gmd_gate_result){.seed = options->run->seed, .is_quick = options->is_quick};
    gmd_gate gate = {.options = options,
                     .result = result,
                     .run = *options->run,
                     .found = {.out_directory = options->run->cases.directory,
                               .allocator = options->run->subject.allocator,
                               .minimize_seconds = MINIMIZE_SECONDS,
                               .minimize_tries = MINIMIZE_TRIES,
                               .hang_seconds = HANG_SECONDS,
                               .progress = tell_minimising},
                     .start = gmd_clock_s(),
                     .error = error};
    gate.found.origin = gate.origin;
    gate.found.context = &gate;
    gmd_options_leave_to_traces(&gate.run);
    gate.run.process.shows_progress = false;
    gmd_status status = run_gate(&gate, error);
    result->seconds = gmd_clock_s() - gate.start;
    gmd_findings_free(&gate.found);
    gmd_baseline_free(&gate.baseline);
    free(gate.marks);
    return status;
}
