/* told.c - the findings as they are told: the worst first, each with the command that shows it
 * again. */
#include "gate.h"

#include "search.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The worst first: memory that is not the caller's alone, then no answer, then wrong answers, then
 * what is left, then figures. */
static size_t badness(const char *oracle)
{
    static const char *const order[] = {
        "overlap",   "backing",  "private_pool", "stream_order", "data",      "size",
        "misuse",    "progress", "api_misuse",   "oom_retry",    "leak",      "peak_bound",
        "alignment", "snapshot", "device_state", "accounting",   "reference", "determinism"};
    size_t count = sizeof order / sizeof *order, i = 0;
    while (i < count && strcmp(order[i], oracle) != 0) {
        i++;
    }
    return i;
}

static int compare_findings(const void *left, const void *right)
{
    const gmd_gate_finding *a = left, *b = right;
    size_t x = badness(a->violation.oracle), y = badness(b->violation.oracle);
    if (x != y) {
        return x < y ? -1 : 1;
    }
    return strcmp(a->cause, b->cause);
}

void gmd_gate_quote(const char *word, char *out, size_t size)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "/._-+,:=@%";
    if (*word && strspn(word, plain) == strlen(word)) {
        snprintf(out, size, "%s", word);
        return;
    }
    size_t at = (size_t)snprintf(out, size, "'");
    for (const char *c = word; *c && at < size; c++) {
        at += (size_t)snprintf(out + at, size - at, *c == '\'' ? "'\\''" : "%c", *c);
    }
    if (at < size) {
        snprintf(out + at, size - at, "'");
    }
}

static void write_replay(const gmd_gate *gate, const gmd_gate_mark *mark,
                         const gmd_violation *violation, char *out, size_t size)
{
    char allocator[512], file[512], timeout[40] = "";
    gmd_gate_quote(gate->run.allocator, allocator, sizeof allocator);
    gmd_gate_quote(violation->case_path, file, sizeof file);
    if (gmd_is_hang(violation)) {
        snprintf(timeout, sizeof timeout, " --timeout %g", gate->run.call_budget_s);
    }
    bool has_case = violation->case_path[0];
    if (has_case && mark->is_round) {
        snprintf(out, size, "gmd gate --allocator %.400s --rounds %.400s", allocator, file);
    } else if (has_case) {
        snprintf(out, size, "gmd run %.400s --allocator %.400s%s", file, allocator, timeout);
    } else {
        char item[200], conf[200] = "";
        snprintf(file, sizeof file, "%s/%s", mark->part, mark->item);
        gmd_gate_quote(file, item, sizeof item);
        if (gate->conf_is_fixed) {
            gmd_gate_quote(gate->confs[0], conf, sizeof conf);
        }
        snprintf(out, size, "gmd gate --allocator %.400s --seed %" PRIu64 "%s%s%s --only %s",
                 allocator, gate->run.seed, gate->options->is_quick ? " --quick" : "",
                 conf[0] ? " --conf " : "", conf, item);
    }
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
        snprintf(to->cause, sizeof to->cause, "%s", from->cause.text);
        snprintf(to->part, sizeof to->part, "%s", mark->part);
        snprintf(to->item, sizeof to->item, "%s", mark->item);
        write_replay(gate, mark, &from->violation, to->replay, sizeof to->replay);
    }
    qsort(list, count, sizeof *list, compare_findings);
    gate->result->findings = list;
    gate->result->finding_count = count;
}
