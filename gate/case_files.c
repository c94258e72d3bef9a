#include "case_files.h"

#include "gmd_file.h"
#include "gmd_grow.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_LENGTH 88

typedef char case_name[NAME_MAX_LENGTH]; /* "torch-2.11/spurious_oom" */

typedef struct case_list {
    case_name *names;
    size_t count, capacity;
} case_list;

static int compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* False: no host memory. What is no case is left out. */
static bool add_case(case_list *list, const char *group, const char *file)
{
    size_t length = strlen(file);
    bool is_case = length > 4 && strcmp(file + length - 4, ".gmd") == 0;
    if (!is_case || strlen(group) + length >= NAME_MAX_LENGTH) {
        return true;
    }
    if (!GMD_GROW(&list->names, &list->capacity, list->count + 1)) {
        return false;
    }
    snprintf(list->names[list->count++], NAME_MAX_LENGTH, "%.60s/%.*s", group, (int)length - 4,
             file);
    return true;
}

static bool list_folder(case_list *list, const char *root, const char *group)
{
    char path[4400];
    snprintf(path, sizeof path, "%s/%s", root, group);
    DIR *folder = opendir(path);
    const struct dirent *entry;
    bool has_room = true;
    while (folder && has_room && (entry = readdir(folder))) {
        has_room = add_case(list, group, entry->d_name);
    }
    if (folder) {
        closedir(folder);
    }
    return has_room;
}

static gmd_status list_cases(case_list *list, const char *root, gmd_error *error)
{
    DIR *folder = opendir(root);
    const struct dirent *entry;
    bool has_room = true;
    while (folder && has_room && (entry = readdir(folder))) {
        if (entry->d_name[0] != '.') {
            has_room = list_folder(list, root, entry->d_name);
        }
    }
    if (folder) {
        closedir(folder);
    }
    if (!has_room) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for cases");
    }
    if (!list->count) {
        return gmd_fail(error, GMD_FAILED, "%s: no cases there: is gmd installed whole?", root);
    }
    qsort(list->names, list->count, sizeof list->names[0], compare_names);
    return GMD_OK;
}

gmd_status case_file_read(gmd_trace *trace, const char *path, gmd_error *error)
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

gmd_status case_files_each(const char *lib_directory,
                           void (*visit)(void *context, const char *root, const char *name),
                           void *context, gmd_error *error)
{
    char root[4200];
    snprintf(root, sizeof root, "%s/cases", lib_directory);
    case_list list = {.count = 0};
    gmd_status status = list_cases(&list, root, error);
    for (size_t i = 0; i < list.count && status == GMD_OK; i++) {
        visit(context, root, list.names[i]);
    }
    free(list.names);
    return status;
}

gmd_status case_file_read_named(gmd_trace *trace, const char *root, const char *name,
                                gmd_error *error)
{
    char path[4600];
    snprintf(path, sizeof path, "%s/%s.gmd", root, name);
    gmd_status status = case_file_read(trace, path, error);
    return status == GMD_OK ? GMD_OK : GMD_FAILED; /* it came with gmd */
}
