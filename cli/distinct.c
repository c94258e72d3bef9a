#include "distinct.h"

#include "gmd_text.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The inputs of the command, and the one that is to be named. */
typedef struct inputs {
    const char *const *paths;
    size_t count;
    const char *own;
} inputs;

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

/* Whether another file ends alike. */
static bool is_shared(const inputs *all, const char *tail, size_t parts)
{
    for (size_t i = 0; i < all->count; i++) {
        if (strcmp(all->paths[i], all->own) != 0 &&
            strcmp(tail_of(all->paths[i], parts), tail) == 0) {
            return true;
        }
    }
    return false;
}

const char *cli_distinct_name(const char *path, const char *const *paths, size_t count)
{
    const inputs all = {paths, count, path};
    const char *tail;
    size_t parts = 1;
    do {
        tail = tail_of(path, parts);
    } while (tail > path && is_shared(&all, tail, parts++));
    return tail;
}

void cli_tell_apart(gmd_outcome *outcome, const char *const *paths, size_t count)
{
    const char *name = cli_distinct_name(outcome->path, paths, count);
    bool is_shared_name = name != gmd_file_name(outcome->path);
    if (is_shared_name && strlen(name) < sizeof outcome->name) {
        snprintf(outcome->name, sizeof outcome->name, "%s", name);
    }
}
