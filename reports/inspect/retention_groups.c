/* retention_groups.c - surviving tensors put together by the way in which they are held. */
#define _GNU_SOURCE /* asprintf */
#include "retention_groups.h"

#include "gmd_grow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct held_row {
    char *key; /* equal for those held alike */
    uint32_t row;
} held_row;

static int by_key(const void *a, const void *b)
{
    const held_row *left = a, *right = b;
    int order = strcmp(left->key, right->key);
    return order ? order : (left->row > right->row) - (left->row < right->row);
}

static int by_size(const void *a, const void *b)
{
    const retention_group *left = a, *right = b;
    if (left->used != right->used) {
        return left->used < right->used ? 1 : -1;
    }
    return (left->row > right->row) - (left->row < right->row);
}

static bool add_row(retention_group *group, const gmd_inspection *inspection, uint32_t index)
{
    const gmd_tensor_row *row = gmd_inspection_tensor(inspection, index);
    if (!row) {
        return false;
    }
    if (group->tensors++ == 0) {
        gmd_inspection_path(inspection, row, true, group->pattern, sizeof group->pattern);
        group->row = index;
        group->holder = row->holder;
        group->line = row->line;
    }
    group->line = group->line == row->line ? group->line : 0;
    if (row->shares == GMD_INSPECT_NONE) { /* each block once */
        group->used += row->used;
        group->rounding += row->used > row->asked ? row->used - row->asked : 0;
    }
    return true;
}

static void free_rows(held_row *rows, uint32_t count)
{
    for (uint32_t i = 0; rows && i < count; i++) {
        free(rows[i].key);
    }
    free(rows);
}

static char *key_of(const gmd_inspection *inspection, const gmd_tensor_row *row, bool by_shape)
{
    char pattern[sizeof((retention_group *)0)->pattern], owner[sizeof pattern] = "", *key = NULL;
    gmd_inspection_path(inspection, row, true, pattern, sizeof pattern);
    if (!by_shape) {
        return strdup(pattern);
    }
    const gmd_tensor_row *shared =
        row->shares == GMD_INSPECT_NONE ? NULL : gmd_inspection_tensor(inspection, row->shares);
    if (shared) {
        gmd_inspection_path(inspection, shared, false, owner, sizeof owner);
    }
    int length = asprintf(&key, "%s %s %s %s", pattern, gmd_inspection_text(inspection, row->shape),
                          gmd_inspection_text(inspection, row->dtype), owner);
    return length < 0 ? NULL : key;
}

static held_row *keys_of(const gmd_inspection *inspection, bool by_shape, uint32_t *count)
{
    const gmd_tensor_row *row;
    held_row *rows = calloc(GMD_INSPECT_TENSOR_MAX, sizeof *rows);
    *count = 0;
    while (rows && (row = gmd_inspection_tensor(inspection, *count))) {
        rows[*count] = (held_row){key_of(inspection, row, by_shape), *count};
        if (!rows[*count].key) {
            free_rows(rows, *count);
            return NULL;
        }
        (*count)++;
    }
    return rows;
}

const char *retention_group_name(const gmd_inspection *inspection, const retention_group *group,
                                 char *text, size_t size)
{
    const gmd_tensor_row *row = gmd_inspection_tensor(inspection, group->row);
    if (group->tensors == 1 && row) {
        return gmd_inspection_path(inspection, row, false, text, size);
    }
    snprintf(text, size, "%s", group->pattern);
    return text;
}

retention_group *retention_groups_of(const gmd_inspection *inspection, bool by_shape, size_t *count)
{
    uint32_t row_count;
    held_row *rows = keys_of(inspection, by_shape, &row_count);
    retention_group *groups = NULL;
    size_t capacity = 0;
    *count = 0;
    if (!rows || row_count == 0) {
        free_rows(rows, 0);
        return NULL;
    }
    qsort(rows, row_count, sizeof *rows, by_key);
    for (uint32_t i = 0; i < row_count; i++) {
        bool is_new = i == 0 || strcmp(rows[i].key, rows[i - 1].key) != 0;
        if (is_new && !GMD_GROW(&groups, &capacity, *count + 1)) {
            break;
        }
        if (is_new) {
            groups[(*count)++] = (retention_group){.tensors = 0};
        }
        add_row(&groups[*count - 1], inspection, rows[i].row);
    }
    free_rows(rows, row_count);
    if (*count > 0) {
        qsort(groups, *count, sizeof *groups, by_size);
    }
    return groups;
}
