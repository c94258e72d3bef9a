#include "diff_figures.h"

#include <stdlib.h>
#include <string.h>

typedef struct named_figure {
    const gmd_diff_figure *figure;
    bool is_matched;
} named_figure;

static int compare_names(const void *a, const void *b)
{
    const named_figure *x = a, *y = b;
    return strcmp(x->figure->name, y->figure->name);
}

static named_figure *list_by_name(const gmd_diff_input *input)
{
    named_figure *list = malloc((input->figure_count + 1) * sizeof *list);
    for (size_t i = 0; list && i < input->figure_count; i++) {
        list[i] = (named_figure){&input->figures[i], false};
    }
    if (list && input->figure_count) {
        qsort(list, input->figure_count, sizeof *list, compare_names);
    }
    return list;
}

static named_figure *find(named_figure *list, size_t count, const gmd_diff_figure *figure)
{
    const named_figure key = {figure, false};
    return count ? bsearch(&key, list, count, sizeof *list, compare_names) : NULL;
}

static void add(gmd_diff *diff, const gmd_diff_figure *before, const gmd_diff_figure *after)
{
    diff->figures[diff->figure_count++] = (gmd_diff_figure_row){before, after};
}

bool diff_figures_match(gmd_diff *diff)
{
    const gmd_diff_input *before = diff->before, *after = diff->after;
    named_figure *list = list_by_name(after);
    diff->figures =
        malloc((before->figure_count + after->figure_count + 1) * sizeof *diff->figures);
    bool has_memory = list && diff->figures;
    for (size_t i = 0; has_memory && i < before->figure_count; i++) {
        named_figure *same = find(list, after->figure_count, &before->figures[i]);
        add(diff, &before->figures[i], same ? same->figure : NULL);
        if (same) {
            same->is_matched = true;
        }
    }
    for (size_t i = 0; has_memory && i < after->figure_count; i++) {
        named_figure *own = find(list, after->figure_count, &after->figures[i]);
        if (own && !own->is_matched) {
            add(diff, NULL, &after->figures[i]);
        }
    }
    free(list);
    return has_memory;
}
