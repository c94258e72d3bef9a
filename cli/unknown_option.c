#include "unknown_option.h"

#include "gmd_spelling.h"

#include <stdio.h>
#include <string.h>

/* An option as it was written, and what is known like it. */
typedef struct written {
    const char *name; /* after the dashes */
    size_t length;    /* up to '=' */
    bool is_known, takes_next;
    gmd_near near;
} written;

static bool takes_text(const struct argp_option *option)
{
    return option->arg && !(option->flags & OPTION_ARG_OPTIONAL);
}

/* An alias has the argument of the option before it. */
static void compare(written *w, const struct argp_option *option, const struct argp_option *aliased)
{
    char name[GMD_SPELLING_MAX];
    if (!option->name) {
        return;
    }
    if (strncmp(option->name, w->name, w->length) == 0) {
        w->is_known = true;
        w->takes_next = takes_text(aliased) && w->name[w->length] != '=';
    }
    snprintf(name, sizeof name, "--%s", option->name);
    gmd_near_offer(&w->near, name);
}

static void compare_all(written *w, const struct argp *argp)
{
    const struct argp_option *aliased = argp->options;
    for (const struct argp_option *o = argp->options; o && (o->name || o->key || o->doc); o++) {
        aliased = o->flags & OPTION_ALIAS ? aliased : o;
        compare(w, o, aliased);
    }
    for (const struct argp_child *child = argp->children; child && child->argp; child++) {
        compare_all(w, child->argp);
    }
}

static bool short_takes_text(const struct argp *argp, char key)
{
    for (const struct argp_option *o = argp->options; o && (o->name || o->key || o->doc); o++) {
        if (o->key == key) {
            return takes_text(o);
        }
    }
    for (const struct argp_child *child = argp->children; child && child->argp; child++) {
        if (short_takes_text(child->argp, key)) {
            return true;
        }
    }
    return false;
}

/* -o FILE, also after others that take nothing: -qo FILE. */
static bool cluster_takes_next(const struct argp *argp, const char *keys)
{
    while (*keys && !short_takes_text(argp, *keys)) {
        keys++;
    }
    return *keys && !keys[1];
}

static void tell(const struct argp *argp, const char *program, written *w)
{
    bool takes_parameters = argp->args_doc && strstr(argp->args_doc, "KEY=VALUE");
    const char *near = gmd_near_text(&w->near);
    fprintf(stderr, "%s: unrecognized option '--%.*s'%s", program, (int)w->length, w->name, near);
    if (!*near && takes_parameters && w->name[w->length] == '=') {
        fprintf(stderr, "; a parameter of a scenario has no dashes: %s", w->name);
    }
    fprintf(stderr, "\nTry `%s --help' or `%s --usage' for more information.\n", program, program);
}

bool cli_tell_unknown_option(const struct argp *argp, int argc, char **argv)
{
    static const struct argp_option own[] = {{.name = "help", .key = '?'}, {.name = "usage"}, {0}};
    static const struct argp always = {.options = own};
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (argv[i][0] != '-') {
            continue;
        }
        if (argv[i][1] != '-') {
            i += cluster_takes_next(argp, argv[i] + 1);
            continue;
        }
        char text[GMD_SPELLING_MAX + 1];
        written w = {.name = argv[i] + 2, .length = strcspn(argv[i] + 2, "=")};
        snprintf(text, sizeof text, "--%.*s", (int)w.length, w.name);
        gmd_near_begin(&w.near, text);
        compare_all(&w, argp);
        compare_all(&w, &always);
        if (!w.is_known) {
            tell(argp, argv[0], &w);
            return true;
        }
        i += w.takes_next;
    }
    return false;
}
