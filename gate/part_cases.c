/* part_cases.c - the cases that ship with gmd: what a defect of a real allocator needs to show.
 *
 * What a case `expect`s is the answer of the allocator that it was written for; here only the
 * oracles judge, so that another policy is no defect. */
#include "gate.h"
#include "plan.h"

#include "gmd_file.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_LENGTH 88
#define LIST_MAX        1024

typedef struct case_list {
    char names[LIST_MAX][NAME_MAX_LENGTH]; /* "torch-2.11/spurious_oom" */
    size_t count;
} case_list;

/* --- the files --------------------------------------------------------------------------- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void list_folder(case_list *list, const char *root, const char *group)
{
    char path[4400];
    snprintf(path, sizeof path, "%s/%s", root, group);
    DIR *folder = opendir(path);
    const struct dirent *entry;
    while (folder && (entry = readdir(folder)) && list->count < LIST_MAX) {
        size_t length = strlen(entry->d_name);
        bool is_case = length > 4 && strcmp(entry->d_name + length - 4, ".gmd") == 0;
        if (is_case && strlen(group) + length < NAME_MAX_LENGTH) {
            snprintf(list->names[list->count++], NAME_MAX_LENGTH, "%.60s/%.*s", group,
                     (int)length - 4, entry->d_name);
        }
    }
    if (folder) {
        closedir(folder);
    }
}

static void list_cases(case_list *list, const char *root)
{
    DIR *folder = opendir(root);
    const struct dirent *entry;
    while (folder && (entry = readdir(folder))) {
        if (entry->d_name[0] != '.') {
            list_folder(list, root, entry->d_name);
        }
    }
    if (folder) {
        closedir(folder);
    }
    qsort(list->names, list->count, sizeof list->names[0], compare_names);
}

static gmd_status read_case(gmd_trace *trace, const char *path, gmd_error *error)
{
    uint8_t *text = NULL;
    size_t size = 0;
    gmd_status status = gmd_file_read(path, &text, &size, error);
    if (status == GMD_OK) {
        status = gmd_trace_parse(trace, (const char *)text, size, path, error);
    }
    free(text);
    for (size_t i = 0; status == GMD_OK && i < trace->count; i++) {
        if (trace->requests[i].op == GMD_OP_ALLOC) {
            trace->requests[i].expect = GMD_EXPECT_ANY;
        }
    }
    return status;
}

/* --- one case ---------------------------------------------------------------------------- */

/* The threads between each other's calls, in many orders. */
static void interleave(gmd_gate *gate, gmd_runner *runner, const gmd_trace *trace)
{
    uint64_t count = gmd_gate_runs(gate, gmd_gate_plan_interleavings.full,
                                   gmd_gate_plan_interleavings.quick);
    gmd_scout_trace *traces = calloc(count, sizeof *traces);
    gmd_error error = {""};
    size_t made = 0;
    gmd_status status = traces ? GMD_OK : gmd_fail(&error, GMD_NO_MEMORY, "no host memory");
    while (made < count && status == GMD_OK) {
        status = gmd_trace_copy(&traces[made].trace, trace, &error);
        if (status == GMD_OK) {
            gmd_schedule_free(&traces[made].trace.interleave);
            traces[made].trace.interleave = (gmd_schedule){
                .kind = GMD_SCHEDULE_SEEDED, .seed = gmd_random_derive(gate->run.seed, made) % 1000000};
            made++;
        }
    }
    gmd_gate_fail(gate, status, &error);
    gmd_gate_scout(gate, runner, traces, made);
    while (made) {
        gmd_trace_free(&traces[--made].trace);
    }
    free(traces);
}

static void play_under(gmd_gate *gate, gmd_runner *runner, gmd_trace *trace,
                       const gmd_schedule *schedule)
{
    bool is_stated = trace->schedule.kind != GMD_SCHEDULE_UNSTATED;
    if (!is_stated) {
        trace->schedule = *schedule;
    }
    bool was_taken = gmd_gate_play(gate, runner, trace);
    if (was_taken && trace->threads.count > 1) {
        interleave(gate, runner, trace);
    }
    if (!is_stated) {
        trace->schedule = (gmd_schedule){.kind = GMD_SCHEDULE_UNSTATED};
    }
}

static void play_case(gmd_gate *gate, gmd_trace *trace, const char *conf)
{
    gmd_runner runner;
    gmd_runner_init(&runner, &gate->run);
    bool is_stated = trace->schedule.kind != GMD_SCHEDULE_UNSTATED;
    uint64_t schedules = is_stated ? 1
                                   : gmd_gate_runs(gate, gmd_gate_plan_schedule_count.full,
                                                   gmd_gate_plan_schedule_count.quick);
    if (gmd_gate_set_conf(gate, trace, conf)) {
        for (uint64_t i = 0; i < schedules && !gmd_gate_is_over(gate); i++) {
            play_under(gate, &runner, trace, &gmd_gate_plan_schedules[i]);
        }
    }
    gmd_runner_close(&runner);
}

/* Settings that a case states are part of what it needs. */
static void choose_settings(gmd_gate *gate, const char *name, gmd_trace *trace)
{
    const char *own = trace->conf ? trace->conf : "";
    const char *fixed = gate->conf_is_fixed ? gate->confs[0] : NULL;
    if (*own && !fixed && !gate->abilities.has_settings) {
        gmd_gate_skip(gate, name, "needs the settings '%s', and the allocator exports no "
                      "gmd_configure", own);
        return;
    }
    if (!gmd_gate_begin(gate, name)) {
        return;
    }
    char *copy = trace->conf ? strdup(trace->conf) : NULL;
    play_case(gate, trace, fixed ? fixed : copy);
    free(copy);
    gmd_gate_end(gate);
}

static void run_case(gmd_gate *gate, const char *root, const char *name)
{
    char path[4600];
    gmd_trace trace;
    gmd_error error;
    snprintf(path, sizeof path, "%s/%s.gmd", root, name);
    gmd_status status = read_case(&trace, path, &error);
    if (status != GMD_OK) {
        gmd_gate_fail(gate, GMD_FAILED, &error);
        return;
    }
    const char *lacks = gmd_gate_lacks(&gate->abilities, &trace);
    if (lacks) {
        gmd_gate_skip(gate, name, "%s", lacks);
    } else {
        choose_settings(gate, name, &trace);
    }
    gmd_trace_free(&trace);
}

void gmd_gate_cases(gmd_gate *gate)
{
    char root[4200];
    snprintf(root, sizeof root, "%s/cases", gate->run.lib_directory);
    case_list *list = calloc(1, sizeof *list);
    gmd_error error;
    if (!list) {
        gmd_gate_fail(gate, gmd_fail(&error, GMD_NO_MEMORY, "no host memory for cases"), &error);
        return;
    }
    list_cases(list, root);
    if (!list->count) {
        gmd_gate_fail(gate, gmd_fail(&error, GMD_FAILED, "%s: no cases there: is gmd installed whole?",
                                     root), &error);
    }
    for (size_t i = 0; i < list->count && !gmd_gate_is_over(gate); i++) {
        run_case(gate, root, list->names[i]);
    }
    free(list);
}
