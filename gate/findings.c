/* findings.c - the findings as they are told: the worst first, each with the command that shows it
 * again. */
#include "gate.h"

#include "gmd_command.h"
#include "gmd_search.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
static void write_replay(const gmd_gate *gate, const gmd_gate_mark *mark,
                         const gmd_violation *violation, char *out, size_t size)
{
    bool has_case = violation->case_path[0], is_run = has_case && !mark->is_round;
    char number[40], item[sizeof mark->part + sizeof mark->item + 1];
    gmd_command c = gmd_command_begin(out, size, is_run ? "gmd run" : "gmd gate");
    if (is_run) {
        gmd_command_word(&c, violation->case_path);
    }
    gmd_command_option(&c, "--allocator", gate->run.subject.allocator);
    gmd_command_more(&c, gate->options->subject_words);
    if (has_case && mark->is_round) {
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

void gmd_gate_tell_findings(gmd_gate *gate)
{
    size_t count = gate->found.count < gate->mark_count ? gate->found.count : gate->mark_count;
    gmd_gate_finding *list = calloc(count + 1, sizeof *list);
    if (!list) {
        gmd_error error;
        gmd_gate_fail(gate, gmd_fail(&error, GMD_NO_MEMORY, "no host memory for findings"), &error);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const gmd_finding *from = &gate->found.items[i];
        const gmd_gate_mark *mark = &gate->marks[i];
        gmd_gate_finding *to = &list[i];
        to->violation = from->violation;
        to->case_requests = from->requests;
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
