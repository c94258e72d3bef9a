#include "candidates.h"

#include "elf_file.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define MOST_BYTES 200 /* of a list of names */
#define NAME_MAX   128

typedef struct name_list {
    char text[MOST_BYTES];
    size_t used;
    bool are_more;
} name_list;

typedef struct candidates {
    const char *malloc_name, *free_name;
    char mangled[NAME_MAX];       /* one of these two, as C++ writes it */
    name_list memory, cxx_memory; /* functions whose names say that they allocate or free */
    name_list others;             /* the rest of C's */
} candidates;

static void add_name(name_list *list, const char *name)
{
    size_t length = strlen(name);
    if (list->used + length + 3 > sizeof list->text) {
        list->are_more = true;
        return;
    }
    list->used += (size_t)snprintf(list->text + list->used, sizeof list->text - list->used, "%s%s",
                                   list->used ? ", " : "", name);
}

static bool says_memory(const char *name)
{
    static const char *const words[] = {"alloc", "free", "release"};
    char lower[NAME_MAX];
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

/* One part of a C++ name, which its length stands before; moves `*at` behind it. */
static bool read_part(const char **at, char part[NAME_MAX])
{
    size_t length = 0;
    const char *c = *at;
    for (; isdigit((unsigned char)*c) && length < NAME_MAX; c++) {
        length = length * 10 + (size_t)(*c - '0');
    }
    if (length == 0 || length >= NAME_MAX || strnlen(c, length) < length) {
        return false;
    }
    memcpy(part, c, length);
    part[length] = '\0';
    *at = c + length;
    return true;
}

/* The function as a person writes it, "pool_alloc" of _Z10pool_allocmi and "Pool::alloc" of
 * _ZN4Pool5allocEm (Itanium C++ ABI). False: it is no function by its own name, but the standard
 * library's, a template's, a constructor, an operator. */
static bool read_cxx_name(const char *symbol, char name[NAME_MAX])
{
    char part[NAME_MAX];
    size_t used = 0;
    bool is_nested = strncmp(symbol, "_ZN", 3) == 0;
    const char *at = symbol + (is_nested ? 3 : 2);
    at += is_nested && *at == 'K'; /* a const member */
    do {
        size_t left = NAME_MAX - used;
        if (!read_part(&at, part) || strlen(part) + 3 > left || strcmp(part, "__gnu_cxx") == 0) {
            return false;
        }
        used += (size_t)snprintf(name + used, left, "%s%s", used ? "::" : "", part);
    } while (is_nested && *at != 'E');
    return *at != 'I' && *at != '\0'; /* parameters follow, "v" at least */
}

static void consider_cxx(candidates *c, const char *symbol)
{
    char name[NAME_MAX];
    if (!read_cxx_name(symbol, name)) {
        return;
    }
    bool is_meant = strcmp(name, c->malloc_name) == 0 || strcmp(name, c->free_name) == 0;
    if (is_meant && !*c->mangled && strlen(symbol) < sizeof c->mangled) {
        snprintf(c->mangled, sizeof c->mangled, "%s", symbol);
    }
    const char *last = strrchr(name, ':');
    if (says_memory(last ? last : name)) {
        add_name(&c->cxx_memory, name);
    }
}

static void consider(void *context, const char *name)
{
    candidates *c = context;
    if (!is_printable(name)) {
        return;
    }
    if (strncmp(name, "_Z", 2) == 0) {
        consider_cxx(c, name);
    } else if (strcmp(name, "_init") != 0 && strcmp(name, "_fini") != 0) {
        add_name(says_memory(name) ? &c->memory : &c->others, name);
    }
}

static void tell_list(const name_list *list, const char *then, char *out, size_t size)
{
    snprintf(out, size, "; it exports %s%s%s", list->text, list->are_more ? ", ..." : "", then);
}

void candidates_tell(const char *path, const char *malloc_name, const char *free_name, char *out,
                     size_t size)
{
    candidates c = {.malloc_name = malloc_name, .free_name = free_name};
    bool is_read = elf_file_each_function(path, consider, &c);
    out[0] = '\0';
    if (*c.mangled) {
        snprintf(out, size, "; it exports %s: declare both functions extern \"C\"", c.mangled);
    } else if (c.memory.used) {
        tell_list(&c.memory, "", out, size);
    } else if (c.cxx_memory.used) {
        tell_list(&c.cxx_memory, " as C++ functions: gmd calls two that are declared extern \"C\"",
                  out, size);
    } else if (c.others.used) {
        tell_list(&c.others, "", out, size);
    } else if (is_read) {
        snprintf(out, size,
                 "; it exports no functions of C: they are static, hidden "
                 "(-fvisibility=hidden) or not declared extern \"C\"");
    }
}
