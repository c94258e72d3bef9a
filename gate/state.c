#include "state.h"

#include "gmd_clock.h"
#include "gmd_grow.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define FINDINGS_MAX 24 /* a user who has so many fixes some of them first */
#define HANGS_MAX    3  /* each takes as long as all other runs of a part */

/* --- when it is over --------------------------------------------------------------------- */

/* Where it had not ended by itself before. */
static void interrupt(gate_state *gate)
{
    if (!gate->gives_up) {
        gate_give_up(gate, "interrupted");
        gate->result->ended_by = GMD_GATE_INTERRUPTED;
    }
}

void gate_fail(gate_state *gate, gmd_status status, const gmd_error *error)
{
    if (status == GMD_INTERRUPTED) {
        interrupt(gate);
    } else if (gate->status == GMD_OK && status != GMD_OK) {
        gate->status = status;
        *gate->error = *error;
    }
}

void gate_out_of_memory(gate_state *gate, const char *what)
{
    gmd_error error;
    gate_fail(gate, gmd_fail(&error, GMD_NO_MEMORY, "no host memory for %s", what), &error);
}

void gate_give_up(gate_state *gate, const char *why)
{
    if (!gate->gives_up) {
        gate->gives_up = 1;
        snprintf(gate->result->ended_early, sizeof gate->result->ended_early, "%s", why);
    }
}

static void decide_to_give_up(gate_state *gate)
{
    const volatile sig_atomic_t *interrupted = gate->options->is_interrupted;
    uint64_t hangs = 0;
    for (size_t i = 0; i < gate->found.count; i++) {
        hangs += gmd_is_hang(&gate->found.items[i].violation) ? gate->found.items[i].hits : 0;
    }
    if (interrupted && *interrupted) {
        interrupt(gate);
    } else if (gate->options->fails_fast && gate->found.count) {
        gate_give_up(gate, "--fail-fast: the first finding ends the gate");
    } else if (hangs >= HANGS_MAX) {
        gate_give_up(gate,
                     "the allocator hangs again and again: waiting for more of it tells nothing");
    } else if (gate->found.count >= FINDINGS_MAX) {
        gate_give_up(gate, "enough was found: what is left may only be its consequences");
    }
}

bool gate_is_over(gate_state *gate)
{
    decide_to_give_up(gate);
    return gate->status != GMD_OK || gate->gives_up;
}

/* --- parts and items --------------------------------------------------------------------- */

bool gate_asks_for_part(const gate_state *gate, const char *part)
{
    const char *only = gate->options->only;
    size_t length = strlen(part);
    return !only || (strncmp(only, part, length) == 0 && (!only[length] || only[length] == '/'));
}

bool gate_asks_for_item(const gate_state *gate, const char *part, const char *item)
{
    const char *slash = gate->options->only ? strchr(gate->options->only, '/') : NULL;
    return gate_asks_for_part(gate, part) && (!slash || strcmp(slash + 1, item) == 0);
}

gmd_gate_part *gate_part_named(const gate_state *gate, const char *name)
{
    size_t i = 0;
    while (i + 1 < gate->result->part_count && strcmp(gate->result->parts[i].name, name) != 0) {
        i++;
    }
    return &gate->result->parts[i];
}

void gate_tell(gate_state *gate, const char *doing)
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

static gmd_gate_item *add_item(gate_state *gate, const char *name)
{
    gmd_gate_part *p = gate->part;
    if (!GMD_GROW(&p->items, &p->item_capacity, p->item_count + 1)) {
        gate_out_of_memory(gate, "results");
        return NULL;
    }
    gmd_gate_item *item = &p->items[p->item_count++];
    *item = (gmd_gate_item){.fate = GMD_GATE_PASSED};
    snprintf(item->name, sizeof item->name, "%s", name);
    return item;
}

bool gate_begin_item(gate_state *gate, const char *name)
{
    if (gate_is_over(gate) || !gate_asks_for_item(gate, gate->part->name, name)) {
        return false;
    }
    gate->item = add_item(gate, name);
    gate->item_start = gmd_clock_s();
    snprintf(gate->origin, sizeof gate->origin, "found by: gmd gate --seed %" PRIu64 " (%s/%s)",
             gate->run.seed, gate->part->name, name);
    gate_tell(gate, "running");
    return gate->item != NULL;
}

/* What was run of an item that did not come to its end is no verdict. NULL: it did. */
static const char *why_cut_short(const gate_state *gate)
{
    return gate->result->ended_by == GMD_GATE_INTERRUPTED ? "interrupted before its end"
           : gate->status != GMD_OK                       ? "ended by a failure of gmd"
                                                          : NULL;
}

void gate_end_item(gate_state *gate)
{
    if (gate->item) {
        gate->item->seconds = gmd_clock_s() - gate->item_start;
        const char *cut_short = why_cut_short(gate);
        bool was_refused = !gate->item->runs && gate->item->detail[0];
        gate->item->fate = gate->item->hits           ? GMD_GATE_FAILED
                           : was_refused || cut_short ? GMD_GATE_SKIPPED
                                                      : GMD_GATE_PASSED;
        if (cut_short && !gate->item->hits) {
            snprintf(gate->item->detail, sizeof gate->item->detail, "%s", cut_short);
        }
        gate->part->was_run = gate->part->was_run || gate->item->runs || gate->item->hits;
    }
    gate->item = NULL;
}

void gate_skip_item(gate_state *gate, const char *name, const char *reason, ...)
{
    bool is_asked_for = gate_asks_for_item(gate, gate->part->name, name);
    gmd_gate_item *item = is_asked_for ? add_item(gate, name) : NULL;
    if (item) {
        va_list arguments;
        va_start(arguments, reason);
        vsnprintf(item->detail, sizeof item->detail, reason, arguments);
        va_end(arguments);
        item->fate = GMD_GATE_SKIPPED;
    }
}

void gate_count(gate_state *gate, uint64_t runs, uint64_t requests, uint64_t known)
{
    gate->result->known_count += known;
    gate->item->runs += runs;
    gate->item->requests += requests;
}

void gate_add_costs(gate_state *gate, const gmd_oracle_result *oracles, uint32_t count)
{
    gmd_gate_result *result = gate->result;
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < result->oracle_count; k++) {
            if (strcmp(result->oracles[k].name, oracles[i].name) == 0) {
                result->oracles[k].asked += oracles[i].asked;
                result->oracles[k].seconds += oracles[i].seconds;
            }
        }
    }
}

void gate_add_troubles(gate_state *gate, const gmd_fork_server_troubles *troubles)
{
    gate->result->restarts += troubles->restarts;
    gate->result->left_behind += troubles->left_behind;
}

void gate_note(gate_state *gate, const char *text, ...)
{
    if (gate->item && !gate->item->detail[0]) {
        va_list arguments;
        va_start(arguments, text);
        vsnprintf(gate->item->detail, sizeof gate->item->detail, text, arguments);
        va_end(arguments);
    }
}

/* --- the plan, for this gate ------------------------------------------------------------- */

uint64_t gate_budget(const gate_state *gate, plan_budget budget)
{
    return gate->options->is_quick ? budget.quick : budget.full;
}
