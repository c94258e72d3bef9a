/* list.c - the scenarios of a folder, and opening one by its name. */
#include "gmd_script.h"

#include "gmd_spelling.h"
#include "gmd_text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_SOURCE ((off_t)1 << 20)

static int is_scenario(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && gmd_text_ends_with(entry->d_name, ".lua");
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name); /* not by locale: the same everywhere */
}

gmd_status gmd_scenario_each(const char *directory, void (*visit)(void *context, const char *name),
                             void *context, gmd_error *error)
{
    struct dirent **entries;
    int count = scandir(directory, &entries, is_scenario, by_name);
    if (count < 0) {
        return gmd_fail(error, GMD_BAD_INPUT, "%s: cannot read the folder of scenarios: %s",
                        directory, strerror(errno));
    }
    for (int i = 0; i < count; i++) {
        char *name = entries[i]->d_name;
        name[strlen(name) - 4] = '\0';
        visit(context, name);
        free(entries[i]);
    }
    free(entries);
    return GMD_OK;
}

typedef struct known {
    char text[560];
    size_t length;
    gmd_near near;
} known;

static void add_known(void *context, const char *name)
{
    known *list = context;
    if (list->length < sizeof list->text) {
        int added = snprintf(list->text + list->length, sizeof list->text - list->length, "%s%s",
                             list->length ? ", " : "", name);
        list->length += added > 0 ? (size_t)added : 0;
    }
    gmd_near_offer(&list->near, name);
}

static gmd_status unknown(const char *name, const char *directory, gmd_error *error)
{
    known list = {.text = ""};
    gmd_near_begin(&list.near, name);
    gmd_status status = gmd_scenario_each(directory, add_known, &list, error);
    if (status != GMD_OK) {
        return status;
    }
    return gmd_fail(error, GMD_BAD_INPUT, "unknown scenario '%.60s'%s; there are: %s", name,
                    gmd_near_text(&list.near), list.length ? list.text : "none");
}

/* Returns the whole file, or NULL with a message. The size may change while the file is read. */
static char *read_source(const char *path, size_t *length, gmd_error *error)
{
    int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct stat status;
    if (file < 0 || fstat(file, &status) != 0) {
        gmd_fail(error, GMD_BAD_INPUT, "%s: %s", path, strerror(errno));
        if (file >= 0) {
            close(file);
        }
        return NULL;
    }
    char *source = NULL;
    if (!S_ISREG(status.st_mode) || status.st_size > MAX_SOURCE) {
        gmd_fail(error, GMD_BAD_INPUT, "%s: a scenario is a regular file of at most 1 MiB", path);
    } else if (!(source = malloc((size_t)status.st_size + 1))) {
        gmd_fail(error, GMD_NO_MEMORY, "%s: no memory to read it", path);
    } else {
        ssize_t got = 0;
        *length = 0;
        while (*length < (size_t)status.st_size &&
               (got = read(file, source + *length, (size_t)status.st_size - *length)) > 0) {
            *length += (size_t)got;
        }
        if (got < 0) {
            gmd_fail(error, GMD_BAD_INPUT, "%s: %s", path, strerror(errno));
            free(source);
            source = NULL;
        }
    }
    close(file);
    return source;
}

/* Messages name the file as the user gave it, or its last part where that is long. */
static void name_chunk(gmd_scenario *scenario, const char *path)
{
    const char *shown = strlen(path) > 55 ? gmd_file_name(path) : path;
    snprintf(scenario->chunk, sizeof scenario->chunk, "@%s", shown);
}

static gmd_status open_file(gmd_scenario **scenario, const char *path, const char *shown,
                            gmd_error *error)
{
    gmd_scenario *opened = calloc(1, sizeof *opened);
    if (!opened) {
        return gmd_fail(error, GMD_NO_MEMORY, "%s: no memory", path);
    }
    name_chunk(opened, shown);
    opened->source = read_source(path, &opened->length, error);
    gmd_status status = opened->source ? script_read_declaration(opened, error) : GMD_BAD_INPUT;
    if (status != GMD_OK) {
        gmd_scenario_close(opened);
        return status;
    }
    *scenario = opened;
    return GMD_OK;
}

gmd_status gmd_scenario_open(gmd_scenario **scenario, const char *name, const char *directory,
                             gmd_error *error)
{
    char path[4096], file[256];
    *scenario = NULL;
    if (gmd_text_ends_with(name, ".lua")) {
        return open_file(scenario, name, name, error);
    }
    bool is_plain = name[0] && name[0] != '.' && !strchr(name, '/') && strlen(name) < 200;
    if (!is_plain) {
        return unknown(name, directory, error);
    }
    snprintf(file, sizeof file, "%s.lua", name);
    if ((size_t)snprintf(path, sizeof path, "%s/%s", directory, file) >= sizeof path) {
        return gmd_fail(error, GMD_BAD_INPUT, "the path of the scenarios is too long");
    }
    if (access(path, F_OK) != 0) {
        return unknown(name, directory, error);
    }
    return open_file(scenario, path, file, error);
}

void gmd_scenario_close(gmd_scenario *scenario)
{
    if (!scenario) {
        return;
    }
    for (size_t i = 0; i < scenario->param_count; i++) {
        free(scenario->params[i].key);
        free(scenario->params[i].text);
        free(scenario->params[i].help);
    }
    for (size_t i = 0; i < scenario->tag_count; i++) {
        free(scenario->tags[i]);
    }
    free(scenario->params);
    free(scenario->name);
    free(scenario->summary);
    free(scenario->source);
    free(scenario);
}

const char *gmd_scenario_name(const gmd_scenario *scenario)
{
    return scenario->name;
}

const char *gmd_scenario_summary(const gmd_scenario *scenario)
{
    return scenario->summary;
}

const char *gmd_scenario_tag_at(const gmd_scenario *scenario, size_t index)
{
    return index < scenario->tag_count ? scenario->tags[index] : NULL;
}

bool gmd_scenario_has_tag(const gmd_scenario *scenario, const char *tag)
{
    for (size_t i = 0; i < scenario->tag_count; i++) {
        if (strcmp(scenario->tags[i], tag) == 0) {
            return true;
        }
    }
    return false;
}

bool gmd_scenario_param_at(const gmd_scenario *scenario, size_t index, gmd_scenario_param *param)
{
    if (index >= scenario->param_count) {
        return false;
    }
    const struct declared_param *declared = &scenario->params[index];
    *param = (gmd_scenario_param){declared->key, declared->text, declared->help};
    return true;
}

bool gmd_scenario_declares(const gmd_scenario *scenario, const char *key)
{
    gmd_scenario_param param;
    for (size_t i = 0; gmd_scenario_param_at(scenario, i, &param); i++) {
        if (strcmp(param.key, key) == 0) {
            return true;
        }
    }
    return false;
}
