#include "case_files.h"

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

gmd_status gmd_gate_read_case(gmd_trace *trace, const char *path, gmd_error *error)
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

gmd_status gmd_gate_each_case(gmd_gate *gate,
                              void (*visit)(void *context, const char *root, const char *name),
                              gmd_error *error)
{
    char root[4200];
    snprintf(root, sizeof root, "%s/cases", gate->run.subject.lib_directory);
    case_list *list = calloc(1, sizeof *list);
    if (!list) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for cases");
    }
    list_cases(list, root);
    gmd_status status = list->count ? GMD_OK
                                    : gmd_fail(error, GMD_FAILED,
                                               "%s: no cases there: is gmd installed whole?", root);
    for (size_t i = 0; i < list->count; i++) {
        visit(gate, root, list->names[i]);
    }
    free(list);
    return status;
}

gmd_status gmd_gate_read_named(gmd_trace *trace, const char *root, const char *name,
                               gmd_error *error)
{
    char path[4600];
    snprintf(path, sizeof path, "%s/%s.gmd", root, name);
    gmd_status status = gmd_gate_read_case(trace, path, error);
    return status == GMD_OK ? GMD_OK : GMD_FAILED; /* it came with gmd */
}
