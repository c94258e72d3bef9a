#include "parameter_sizes.h"

#include <stdlib.h>

static int compare_sizes(const void *a, const void *b)
{
    const size_count *x = a, *y = b;
    return (x->requested > y->requested) - (x->requested < y->requested);
}

/* There before the first iteration, and through the better part of all. */
static bool stays(const gmd_facts *f, const gmd_lifetime *l)
{
    const gmd_iterations *it = &f->iterations;
    uint32_t born = gmd_iteration_of(it, l->born), freed = gmd_iteration_of(it, l->freed);
    bool is_early = l->born == GMD_BEFORE || born == GMD_SET_UP;
    return is_early && it->count &&
           (l->freed == GMD_NEVER || (freed != GMD_SET_UP && freed * 2 >= it->count));
}

static void list_parameters(parameter_sizes *sizes, const gmd_facts *f)
{
    for (size_t i = 0; i < f->recording.lifetime_count; i++) {
        const gmd_lifetime *l = &f->recording.lifetimes[i];
        if (stays(f, l)) {
            sizes->items[sizes->count++] = (size_count){l->requested, 1, 0};
            sizes->bytes += l->size;
        }
    }
}

static void add_up(parameter_sizes *sizes)
{
    size_t filled = 0;
    for (size_t i = 1; i < sizes->count; i++) {
        if (sizes->items[i].requested == sizes->items[filled].requested) {
            sizes->items[filled].parameters++;
        } else {
            sizes->items[++filled] = sizes->items[i];
        }
    }
    sizes->count = sizes->count ? filled + 1 : 0;
}

gmd_status parameter_sizes_find(parameter_sizes *sizes, const gmd_facts *facts, gmd_error *error)
{
    *sizes = (parameter_sizes){0};
    sizes->items = malloc((facts->recording.lifetime_count + 1) * sizeof *sizes->items);
    if (!sizes->items) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for the sizes of parameters");
    }
    list_parameters(sizes, facts);
    qsort(sizes->items, sizes->count, sizeof *sizes->items, compare_sizes);
    add_up(sizes);
    return GMD_OK;
}

void parameter_sizes_free(parameter_sizes *sizes)
{
    free(sizes->items);
    *sizes = (parameter_sizes){0};
}

size_count *parameter_size(const parameter_sizes *sizes, uint64_t requested)
{
    const size_count key = {.requested = requested};
    return sizes->count ? bsearch(&key, sizes->items, sizes->count, sizeof key, compare_sizes)
                        : NULL;
}

void parameter_sizes_forget(parameter_sizes *sizes)
{
    for (size_t i = 0; i < sizes->count; i++) {
        sizes->items[i].seen = 0;
    }
}
