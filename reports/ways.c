/* ways.c - surviving tensors put together by the way in which they are held. */
#include "inspect.h"

#include <stdlib.h>
#include <string.h>

typedef struct held_row {
    char *pattern;
    uint32_t row;
} held_row;

static int by_pattern(const void *a, const void *b)
{
    const held_row *left = a, *right = b;
    int order = strcmp(left->pattern, right->pattern);
    return order ? order : (left->row > right->row) - (left->row < right->row);
}

static int by_size(const void *a, const void *b)
{
    const gmd_way *left = a, *right = b;
    if (left->used != right->used) {
        return left->used < right->used ? 1 : -1;
    }
    return (left->row > right->row) - (left->row < right->row);
}

static bool add_row(gmd_way *way, const gmd_inspection *inspection, uint32_t index)
{
    const gmd_tensor_row *row = gmd_inspection_tensor(inspection, index);
    if (!row) {
        return false;
    }
    if (way->tensors++ == 0) {
        gmd_inspection_path(inspection, row, true, way->pattern, sizeof way->pattern);
        way->row = index;
        way->holder = row->holder;
        way->line = row->line;
    }
    way->line = way->line == row->line ? way->line : 0;
    way->used += row->shares == GMD_INSPECT_NONE ? row->used : 0; /* each block once */
    return true;
}

static void free_rows(held_row *rows, uint32_t count)
{
    for (uint32_t i = 0; rows && i < count; i++) {
        free(rows[i].pattern);
    }
    free(rows);
}

static held_row *patterns_of(const gmd_inspection *inspection, uint32_t *count)
{
    const gmd_tensor_row *row;
    held_row *rows = calloc(GMD_INSPECT_TENSOR_MAX, sizeof *rows);
    *count = 0;
    while (rows && (row = gmd_inspection_tensor(inspection, *count))) {
        char pattern[sizeof((gmd_way *)0)->pattern];
        gmd_inspection_path(inspection, row, true, pattern, sizeof pattern);
        rows[*count] = (held_row){strdup(pattern), *count};
        if (!rows[*count].pattern) {
            free_rows(rows, *count);
            return NULL;
        }
        (*count)++;
    }
    return rows;
}

gmd_way *gmd_ways_of_holding(const gmd_inspection *inspection, size_t *count)
{
    uint32_t row_count;
    held_row *rows = patterns_of(inspection, &row_count);
    gmd_way *ways = NULL;
    size_t capacity = 0;
    *count = 0;
    if (!rows || row_count == 0) {
        free_rows(rows, 0);
        return NULL;
    }
    qsort(rows, row_count, sizeof *rows, by_pattern);
    for (uint32_t i = 0; i < row_count; i++) {
        bool is_new = i == 0 || strcmp(rows[i].pattern, rows[i - 1].pattern) != 0;
        if (is_new && *count == capacity) {
            capacity = capacity ? 2 * capacity : 64;
            gmd_way *larger = realloc(ways, capacity * sizeof *larger);
            if (!larger) {
                break;
            }
            ways = larger;
        }
        if (is_new) {
            ways[(*count)++] = (gmd_way){.tensors = 0};
        }
        add_row(&ways[*count - 1], inspection, rows[i].row);
    }
    free_rows(rows, row_count);
    if (*count > 0) {
        qsort(ways, *count, sizeof *ways, by_size);
    }
    return ways;
}
