/* truth_beside.c - the recorder's files beside a history. */
#include "gmd_truth.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* NAME of NAME.pickle[.gz]; false: the history is not called so. */
static bool stem_of(const char *path, char *stem, size_t size)
{
    const char *end = strstr(path, ".pickle");
    for (const char *later; end && (later = strstr(end + 1, ".pickle")) != NULL;) {
        end = later;
    }
    return end && (size_t)snprintf(stem, size, "%.*s", (int)(end - path), path) < size;
}

static gmd_status read_if_there(const char *stem, const char *suffix, gmd_truth *truth,
                                gmd_status (*reader)(const char *, gmd_truth *, gmd_error *),
                                gmd_error *error)
{
    char path[4200];
    snprintf(path, sizeof path, "%s%s", stem, suffix);
    return access(path, F_OK) == 0 ? reader(path, truth, error) : GMD_OK;
}

gmd_status gmd_truth_read_beside(const char *history_path, gmd_truth *truth, gmd_error *error)
{
    char stem[4096];
    if (!stem_of(history_path, stem, sizeof stem)) {
        return GMD_OK;
    }
    gmd_status status = read_if_there(stem, ".json", truth, gmd_truth_read_json, error);
    return status == GMD_OK ? read_if_there(stem, ".ops.jsonl.gz", truth, gmd_truth_read_ops, error)
                            : status;
}
