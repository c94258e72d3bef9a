#include "selection.h"

#include "gmd_grow.h"
#include "gmd_spelling.h"
#include "gmd_text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define TAG_PREFIX "tag:"

static gmd_status add(cli_selection *selection, const char *name, bool is_of_group,
                      gmd_error *error)
{
    if (!GMD_GROW(&selection->items, &selection->capacity, selection->count + 1)) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for the list of scenarios");
    }
    char *copy = strdup(name);
    if (!copy) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for the list of scenarios");
    }
    selection->items[selection->count++] =
        (cli_selected){copy, gmd_text_ends_with(name, ".gmd"), is_of_group};
    return GMD_OK;
}

static bool has(const cli_selection *selection, const char *name)
{
    for (size_t i = 0; i < selection->count; i++) {
        if (strcmp(selection->items[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* --- groups ------------------------------------------------------------------------------ */

typedef struct group {
    cli_selection *selection;
    const char *tag; /* NULL: all scenarios */
    const char *directory;
    size_t found;
    char tags[256]; /* there are, for the message */
    gmd_near near;  /* of them, those that are spelt like `tag` */
    gmd_status status;
    gmd_error *error;
} group;

static void note_tags(group *g, const gmd_scenario *scenario)
{
    const char *tag;
    for (size_t i = 0; (tag = gmd_scenario_tag_at(scenario, i)); i++) {
        char bounded[64];
        size_t used = strlen(g->tags);
        if (g->tag) {
            gmd_near_offer(&g->near, tag);
        }
        snprintf(bounded, sizeof bounded, "%s%.50s", used ? ", " : "", tag);
        if (!strstr(g->tags, tag) && used + strlen(bounded) < sizeof g->tags) {
            memcpy(g->tags + used, bounded, strlen(bounded) + 1);
        }
    }
}

static void add_member(void *context, const char *name)
{
    group *g = context;
    gmd_scenario *scenario = NULL;
    if (g->status != GMD_OK) {
        return;
    }
    g->status = gmd_scenario_open(&scenario, name, g->directory, g->error);
    if (g->status != GMD_OK) {
        return;
    }
    note_tags(g, scenario);
    if (!g->tag || gmd_scenario_has_tag(scenario, g->tag)) {
        g->found++;
        if (!has(g->selection, name)) {
            g->status = add(g->selection, name, true, g->error);
        }
    }
    gmd_scenario_close(scenario);
}

static gmd_status add_group(cli_selection *selection, const char *tag, const char *directory,
                            gmd_error *error)
{
    group g = {.selection = selection, .tag = tag, .directory = directory, .error = error};
    gmd_near_begin(&g.near, tag);
    gmd_status status = gmd_scenario_each(directory, add_member, &g, error);
    if (status == GMD_OK) {
        status = g.status;
    }
    if (status == GMD_OK && g.found == 0) {
        status =
            tag ? gmd_fail(error, GMD_BAD_INPUT, "no scenario has the tag '%.60s'%s; there are: %s",
                           tag, gmd_near_text(&g.near), *g.tags ? g.tags : "none")
                : gmd_fail(error, GMD_BAD_INPUT, "%.300s: there are no scenarios", directory);
    }
    return status;
}

/* --- all of it --------------------------------------------------------------------------- */

static gmd_status refuse_file(const char *name, bool is_folder, gmd_error *error)
{
    return gmd_fail(error, GMD_BAD_INPUT,
                    "%.300s is %sneither a .gmd trace nor a .lua scenario; a recorded history "
                    "(.pickle, .pickle.gz) is what 'gmd replay' and 'gmd diagnose' read, a "
                    "result (.json) 'gmd report'",
                    name, is_folder ? "a folder, and " : "");
}

static gmd_status refuse_missing(const char *name, gmd_error *error)
{
    bool is_history = gmd_text_ends_with(name, ".pickle") || gmd_text_ends_with(name, ".gz");
    return gmd_fail(error, GMD_BAD_INPUT, "%.300s: cannot be read: %s%s", name, strerror(errno),
                    is_history ? "; 'gmd replay' and 'gmd diagnose' read recorded histories" : "");
}

/* A file of another kind is what another command reads, and a path that leads nowhere is no
 * scenario that is misspelt; but a folder may be called as a scenario is. */
static gmd_status check_named(const char *name, const char *directory, gmd_error *error)
{
    struct stat info;
    bool is_there = stat(name, &info) == 0, is_folder = is_there && S_ISDIR(info.st_mode);
    bool is_path =
        strchr(name, '/') || gmd_text_ends_with(name, ".pickle") || gmd_text_ends_with(name, ".gz");
    if (!gmd_text_ends_with(name, ".lua") && !is_there && is_path) {
        return refuse_missing(name, error);
    }
    if (!gmd_text_ends_with(name, ".lua") && is_there && !is_folder) {
        return refuse_file(name, false, error);
    }
    gmd_scenario *scenario = NULL;
    gmd_status status = gmd_scenario_open(&scenario, name, directory, error);
    gmd_scenario_close(scenario);
    return status != GMD_OK && is_folder ? refuse_file(name, true, error) : status;
}

/* --- a parameter without its value ------------------------------------------------------- */

/* What is no scenario, and the parameter of a named scenario that it is, or is spelt like. */
typedef struct lone_key {
    const char *name;
    gmd_near near; /* the scenarios that are spelt like it */
    char of[64];   /* the scenario; empty: none has it */
    char key[GMD_SPELLING_MAX + 1], value[64];
    size_t distance; /* 0: it is the parameter */
} lone_key;

static void offer_scenario(void *context, const char *name)
{
    gmd_near_offer(context, name);
}

static void look_in(lone_key *lone, const char *named, const char *directory)
{
    enum { NEAR = 2 };
    gmd_scenario *scenario = NULL;
    gmd_scenario_param param;
    gmd_error error;
    if (gmd_scenario_open(&scenario, named, directory, &error) != GMD_OK) {
        return;
    }
    for (size_t i = 0; gmd_scenario_param_at(scenario, i, &param); i++) {
        size_t distance = gmd_spelling_distance(lone->name, strlen(lone->name), param.key);
        if (distance <= NEAR && distance < strlen(param.key) / 2 + 1 &&
            (!*lone->of || distance < lone->distance)) {
            snprintf(lone->of, sizeof lone->of, "%s", gmd_scenario_name(scenario));
            snprintf(lone->key, sizeof lone->key, "%s", param.key);
            snprintf(lone->value, sizeof lone->value, "%s", param.default_value);
            lone->distance = distance;
        }
    }
    gmd_scenario_close(scenario);
}

/* `gmd run lora leak`: the error says how a parameter is written. Others stay what they are. */
static gmd_status explain_lone_key(const char *name, const char *const *inputs, size_t count,
                                   const char *directory, gmd_error *error)
{
    lone_key lone = {.name = name};
    gmd_error ignored;
    gmd_near_begin(&lone.near, name);
    gmd_scenario_each(directory, offer_scenario, &lone.near, &ignored);
    for (size_t i = 0; i < count; i++) {
        if (inputs[i] != name && !gmd_text_ends_with(inputs[i], ".gmd")) {
            look_in(&lone, inputs[i], directory);
        }
    }
    if (!*lone.of || (lone.distance && *gmd_near_text(&lone.near))) {
        return GMD_BAD_INPUT;
    }
    return lone.distance
               ? gmd_fail(error, GMD_BAD_INPUT,
                          "'%.60s' is no scenario; a parameter is KEY=VALUE: did you mean %s=%s? "
                          "('gmd run --list %s' lists them)",
                          name, lone.key, lone.value, lone.of)
               : gmd_fail(error, GMD_BAD_INPUT,
                          "'%.60s' is a parameter of %s and needs a value, KEY=VALUE: %s=%s, for "
                          "example ('gmd run --list %s' lists them)",
                          name, lone.of, lone.key, lone.value, lone.of);
}

static gmd_status add_named(cli_selection *selection, const char *name, const char *directory,
                            gmd_error *error)
{
    gmd_status status =
        gmd_text_ends_with(name, ".gmd") ? GMD_OK : check_named(name, directory, error);
    return status == GMD_OK ? add(selection, name, false, error) : status;
}

gmd_status cli_select(cli_selection *selection, const char *const *inputs, size_t count,
                      const char *directory, const char **failed, gmd_error *error)
{
    gmd_status status = GMD_OK;
    for (size_t i = 0; i < count && status == GMD_OK; i++) {
        *failed = inputs[i];
        if (strcmp(inputs[i], "all") == 0) {
            status = add_group(selection, NULL, directory, error);
        } else if (strncmp(inputs[i], TAG_PREFIX, strlen(TAG_PREFIX)) == 0) {
            status = add_group(selection, inputs[i] + strlen(TAG_PREFIX), directory, error);
        } else {
            status = add_named(selection, inputs[i], directory, error);
            if (status == GMD_BAD_INPUT && !strpbrk(inputs[i], "/.")) {
                status = explain_lone_key(inputs[i], inputs, count, directory, error);
            }
        }
    }
    return status;
}

/* Each value of a parameter by itself: which are combined does not matter. */
static gmd_status check_values(gmd_scenario *scenario, const cli_values *list, gmd_error *error)
{
    gmd_status status = GMD_OK;
    for (size_t i = 0; i < list->count && status == GMD_OK; i++) {
        const gmd_param param = {list->key, list->values[i]};
        status = gmd_scenario_check(scenario, &param, 1, error);
    }
    return status;
}

/* Marks in `taken` the parameters that the scenario declares; one that was named must have all. */
static gmd_status check_scenario(const cli_selected *selected, const cli_variants *variants,
                                 const char *directory, bool taken[CLI_PARAM_MAX], gmd_error *error)
{
    gmd_scenario *scenario = NULL;
    gmd_status status = gmd_scenario_open(&scenario, selected->name, directory, error);
    for (size_t k = 0; k < variants->count && status == GMD_OK; k++) {
        bool is_declared = gmd_scenario_declares(scenario, variants->lists[k].key);
        taken[k] |= is_declared;
        if (is_declared || !selected->is_of_group) {
            status = check_values(scenario, &variants->lists[k], error);
        }
    }
    gmd_scenario_close(scenario);
    return status;
}

gmd_status cli_selection_check(const cli_selection *selection, const cli_variants *variants,
                               const char *directory, gmd_error *error)
{
    bool taken[CLI_PARAM_MAX] = {false};
    size_t members = 0;
    gmd_status status = GMD_OK;
    for (size_t i = 0; i < selection->count && status == GMD_OK; i++) {
        const cli_selected *selected = &selection->items[i];
        if (!selected->is_trace) {
            status = check_scenario(selected, variants, directory, taken, error);
        }
        members += selected->is_of_group;
    }
    bool are_all_of_groups = members && members == selection->count;
    for (size_t k = 0; are_all_of_groups && status == GMD_OK && k < variants->count; k++) {
        if (!taken[k]) {
            status =
                gmd_fail(error, GMD_BAD_INPUT, "none of the %zu scenarios has a parameter '%.60s'",
                         members, variants->lists[k].key);
        }
    }
    return status;
}

void cli_selection_free(cli_selection *selection)
{
    for (size_t i = 0; i < selection->count; i++) {
        free(selection->items[i].name);
    }
    free(selection->items);
    *selection = (cli_selection){0};
}
