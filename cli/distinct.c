#include "distinct.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct runs {
    gmd_outcome *const *outcomes;
    size_t count;
} runs;

/* The last `parts` parts of the path, all of it where it has no more. */
static const char *tail_of(const char *path, size_t parts)
{
    const char *at = path + strlen(path);
    for (; at > path; at--) {
        if (at[-1] == '/' && --parts == 0) {
            break;
        }
    }
    return at;
}

/* Whether a run of the same name is of another file that ends alike; 0 parts: any other file. */
static bool is_shared(const runs *all, const gmd_outcome *outcome, const char *tail, size_t parts)
{
    for (size_t i = 0; i < all->count; i++) {
        const gmd_outcome *other = all->outcomes[i];
        if (*other->path && strcmp(other->name, outcome->name) == 0 &&
            strcmp(other->path, outcome->path) != 0 &&
            (parts == 0 || strcmp(tail_of(other->path, parts), tail) == 0)) {
            return true;
        }
    }
    return false;
}

/* NULL: the name that it has tells it apart. */
static const char *new_name(const runs *all, const gmd_outcome *outcome)
{
    if (!*outcome->path || !is_shared(all, outcome, NULL, 0)) {
        return NULL;
    }
    const char *tail;
    size_t parts = 1;
    do {
        tail = tail_of(outcome->path, parts);
    } while (tail > outcome->path && is_shared(all, outcome, tail, parts++));
    return strlen(tail) < sizeof outcome->name ? tail : NULL;
}

void cli_tell_apart(gmd_outcome *const *outcomes, size_t count)
{
    const runs all = {outcomes, count};
    const char **names = calloc(count + 1, sizeof *names);
    for (size_t i = 0; names && i < count; i++) {
        names[i] = new_name(&all, outcomes[i]);
    }
    for (size_t i = 0; names && i < count; i++) { /* only now: they are compared by what they had */
        if (names[i]) {
            snprintf(outcomes[i]->name, sizeof outcomes[i]->name, "%s", names[i]);
        }
    }
    free(names);
}
