#include "findings.h"

#include "gmd_clock.h"
#include "gmd_command.h"
#include "gmd_grow.h"
#include "gmd_min.h"
#include "gmd_rounds.h"
#include "gmd_search.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MINIMIZE_SECONDS 10 /* for each finding, as long as there are few */
#define MINIMIZE_FEW     4
#define MINIMIZE_HASTE   2
#define MINIMIZE_TRIES   1500
#define HANG_SECONDS     0.5 /* of a request, while a hang is minimised */

/* --- while parts run --------------------------------------------------------------------- */

static void tell_minimising(void *context, size_t requests, uint64_t tries)
{
    (void)requests;
    (void)tries;
    gate_tell(context, "minimising");
}

void gate_open_findings(gate_state *gate)
{
    gate->found = (gmd_findings){.out_directory = gate->options->run->cases.directory,
                                 .origin = gate->origin,
                                 .allocator = gate->run.subject.allocator,
                                 .minimize_seconds = MINIMIZE_SECONDS,
                                 .minimize_tries = MINIMIZE_TRIES,
                                 .hang_seconds = HANG_SECONDS,
                                 .progress = tell_minimising,
                                 .context = gate,
                                 .tell = gate->options->tell,
                                 .listener = gate->options->listener};
}

void gate_close_findings(gate_state *gate)
{
    gmd_findings_free(&gate->found);
    free(gate->marks);
}

void gate_take_findings(gate_state *gate)
{
    if (gate->mark_count == gate->found.count) {
        return;
    }
    if (!GMD_GROW(&gate->marks, &gate->mark_capacity, gate->found.count)) {
        gate_out_of_memory(gate, "findings");
        return;
    }
    gate->found.minimize_seconds =
        gate->found.count < MINIMIZE_FEW ? MINIMIZE_SECONDS : MINIMIZE_HASTE;
    while (gate->mark_count < gate->found.count) {
        finding_mark *m = &gate->marks[gate->mark_count++];
        *m = (finding_mark){.seconds = gmd_clock_s() - gate->start};
        snprintf(m->part, sizeof m->part, "%s", gate->part->name);
        snprintf(m->item, sizeof m->item, "%s", gate->item ? gate->item->name : "");
        const gmd_finding *f = &gate->found.items[gate->mark_count - 1];
        if (f->unwritten[0]) {
            gate_note(gate, "a case could not be written: %s", f->unwritten);
        }
    }
}

void gate_add_finding(gate_state *gate, gmd_runner *runner, const gmd_trace *trace,
                      const gmd_violation *violation)
{
    gmd_error error;
    gmd_violation copy = *violation; /* the next run overwrites it */
    gmd_status status = gmd_findings_add(&gate->found, runner, trace, &copy, 0, 0, &error);
    gate_fail(gate, status, &error);
    gate_take_findings(gate);
    if (gate->item) {
        gate->item->hits++;
    }
}

bool gate_is_known(gate_state *gate, const gmd_violation *violation)
{
    bool is_known = gmd_findings_hit(&gate->found, violation);
    if (is_known && gate->item) {
        gate->item->hits++;
    }
    return is_known;
}

/* --- as they are reported: the worst first ----------------------------------------------- */

static int compare_findings(const void *left, const void *right)
{
    const gmd_gate_finding *a = left, *b = right;
    int x = gmd_severity(a->violation.oracle), y = gmd_severity(b->violation.oracle);
    if (x != y) {
        return x < y ? -1 : 1;
    }
    return strcmp(a->cause, b->cause);
}

/* The case by itself; where none was written, the item of the battery. */
static void write_replay(const gate_state *gate, const finding_mark *mark,
                         const gmd_violation *violation, char *out, size_t size)
{
    bool is_round = mark->is_round || gmd_rounds_is_growth(violation); /* a campaign repeats, too */
    bool has_case = violation->case_path[0], is_run = has_case && !is_round;
    char number[40], item[sizeof mark->part + sizeof mark->item + 1];
    gmd_command c = gmd_command_begin(out, size, is_run ? "gmd run" : "gmd gate");
    if (is_run) {
        gmd_command_word(&c, violation->case_path);
    }
    gmd_command_option(&c, "--allocator", gate->run.subject.allocator);
    gmd_command_more(&c, gate->options->subject_words);
    if (has_case && is_round) {
        gmd_command_option(&c, "--rounds", violation->case_path);
    } else if (!has_case) {
        gmd_command_more(&c, gate->options->battery_words);
        snprintf(number, sizeof number, "%" PRIu64, gate->run.seed);
        gmd_command_option(&c, "--seed", number);
        gmd_command_more(&c, gate->options->is_quick ? "--quick" : "");
        gmd_command_option(&c, "--conf", gate->conf_is_fixed ? gate->confs[0] : NULL);
        snprintf(item, sizeof item, "%s/%s", mark->part, mark->item);
        gmd_command_option(&c, "--only", item);
    } else if (gmd_is_hang(violation)) {
        snprintf(number, sizeof number, "%g", gate->run.process.call_budget_s);
        gmd_command_option(&c, "--timeout", number);
    }
    gmd_command_end(&c);
}

void gate_write_findings(gate_state *gate)
{
    size_t count = gmd_min(gate->found.count, gate->mark_count);
    gmd_gate_finding *list = calloc(count + 1, sizeof *list);
    if (!list) {
        gate_out_of_memory(gate, "findings");
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const gmd_finding *from = &gate->found.items[i];
        const finding_mark *mark = &gate->marks[i];
        gmd_gate_finding *to = &list[i];
        to->violation = from->violation;
        to->case_requests = from->requests;
        snprintf(to->unfinished, sizeof to->unfinished, "%s", from->unfinished);
        to->hits = from->hits;
        to->seconds = mark->seconds;
        gmd_identity_print(&from->cause, to->cause);
        snprintf(to->part, sizeof to->part, "%s", mark->part);
        snprintf(to->item, sizeof to->item, "%s", mark->item);
        write_replay(gate, mark, &from->violation, to->replay, sizeof to->replay);
    }
    qsort(list, count, sizeof *list, compare_findings);
    gate->result->findings = list;
    gate->result->finding_count = count;
}
