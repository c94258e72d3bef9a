#include "candidates.h"

#include "elf_file.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define MOST_BYTES 200 /* of the list of names */

typedef struct candidates {
    char mangled[128]; /* gmd_malloc or gmd_free as C++ names it */
    char names[MOST_BYTES];
    size_t used;
    bool are_more;
} candidates;

/* The Itanium C++ ABI writes the length of a name before it: _Z10gmd_mallocmiP11CUstream_st. */
static bool is_mangled(const char *name)
{
    return strncmp(name, "_Z10gmd_malloc", 14) == 0 || strncmp(name, "_Z8gmd_free", 11) == 0;
}

static bool says_memory(const char *name)
{
    static const char *const words[] = {"alloc", "free", "release"};
    char lower[128];
    size_t length = 0;
    for (; name[length] && length + 1 < sizeof lower; length++) {
        lower[length] = (char)tolower((unsigned char)name[length]);
    }
    lower[length] = '\0';
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strstr(lower, words[i])) {
            return true;
        }
    }
    return false;
}

static bool is_printable(const char *name)
{
    while (isgraph((unsigned char)*name)) {
        name++;
    }
    return *name == '\0';
}

static void consider(void *context, const char *name)
{
    candidates *c = context;
    size_t length = strlen(name);
    if (!is_printable(name)) {
        return;
    }
    if (is_mangled(name) && length < sizeof c->mangled && !*c->mangled) {
        memcpy(c->mangled, name, length + 1);
    } else if (strncmp(name, "_Z", 2) != 0 && says_memory(name)) {
        if (c->used + length + 3 > sizeof c->names) {
            c->are_more = true;
            return;
        }
        c->used += (size_t)snprintf(c->names + c->used, sizeof c->names - c->used, "%s%s",
                                    c->used ? ", " : "", name);
    }
}

void candidates_tell(const char *path, char *out, size_t size)
{
    candidates c = {0};
    elf_file_each_function(path, consider, &c);
    out[0] = '\0';
    if (*c.mangled) {
        snprintf(out, size, "; it exports %s: declare both functions extern \"C\"", c.mangled);
    } else if (c.used) {
        snprintf(out, size, "; it exports %s%s", c.names, c.are_more ? ", ..." : "");
    }
}
