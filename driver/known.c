#include "gmd_known.h"

#include "gmd_file.h"
#include "gmd_oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char expectation[] = "expect"; /* not an oracle's, but judged like one */

bool gmd_oracle_is_named(const char *name)
{
    for (size_t i = 0; gmd_oracles[i]; i++) {
        if (strcmp(gmd_oracles[i]->name, name) == 0) {
            return true;
        }
    }
    return strcmp(name, expectation) == 0;
}

void gmd_oracle_names(char *text, size_t size)
{
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0; gmd_oracles[i] && length < size; i++) {
        length += (size_t)snprintf(text + length, size - length, "%s, ", gmd_oracles[i]->name);
    }
    if (length < size) {
        snprintf(text + length, size - length, "%s", expectation);
    }
}

/* Cuts leading and trailing white space off, in place. */
static char *trim(char *text)
{
    text += strspn(text, " \t\r");
    size_t length = strlen(text);
    while (length && strchr(" \t\r", text[length - 1])) {
        text[--length] = '\0';
    }
    return text;
}

gmd_status gmd_known_add(gmd_known *known, const char *oracle, const char *cause, gmd_error *error)
{
    return gmd_known_add_quirk(known, oracle, cause, NULL, error);
}

gmd_status gmd_known_add_quirk(gmd_known *known, const char *oracle, const char *cause,
                               const char *quirk, gmd_error *error)
{
    gmd_known_entry *entries = realloc(known->entries, (known->count + 1) * sizeof *entries);
    if (entries) {
        known->entries = entries;
        entries[known->count] = (gmd_known_entry){strdup(oracle), strdup(cause), quirk};
        known->count++;
    }
    return entries && entries[known->count - 1].oracle && entries[known->count - 1].cause
               ? GMD_OK
               : gmd_fail(error, GMD_NO_MEMORY, "no host memory for the known defects");
}

static gmd_status read_line(gmd_known *known, char *line, const char *path, size_t number,
                            gmd_error *error)
{
    line[strcspn(line, "#")] = '\0';
    char *oracle = trim(line);
    if (!*oracle) {
        return GMD_OK;
    }
    char *colon = strchr(oracle, ':');
    char *cause = colon ? trim(colon + 1) : "";
    if (colon) {
        *colon = '\0';
        oracle = trim(oracle);
    }
    if (!gmd_oracle_is_named(oracle)) {
        return gmd_fail(
            error, GMD_BAD_INPUT,
            "%s:%zu: expected 'ORACLE' or 'ORACLE: CAUSE', found the unknown oracle '%.80s'", path,
            number, oracle);
    }
    return gmd_known_add(known, oracle, cause, error);
}

gmd_status gmd_known_read(gmd_known *known, const char *path, gmd_error *error)
{
    uint8_t *text = NULL;
    size_t size = 0;
    gmd_status status = gmd_file_read(path, &text, &size, error);
    if (status != GMD_OK) {
        return status;
    }
    gmd_known added = {0};
    char *rest = (char *)text;
    if (memchr(text, 0, size)) {
        status = gmd_fail(error, GMD_BAD_INPUT, "%s: is not a text file", path);
    }
    for (size_t number = 1; status == GMD_OK && rest; number++) {
        char *line = rest;
        rest = strchr(line, '\n');
        if (rest) {
            *rest++ = '\0';
        }
        status = read_line(&added, line, path, number, error);
    }
    for (size_t i = 0; status == GMD_OK && i < added.count; i++) {
        status = gmd_known_add(known, added.entries[i].oracle, added.entries[i].cause, error);
    }
    gmd_known_free(&added);
    free(text);
    return status;
}

void gmd_known_free(gmd_known *known)
{
    for (size_t i = 0; i < known->count; i++) {
        free(known->entries[i].oracle);
        free(known->entries[i].cause);
    }
    free(known->entries);
    *known = (gmd_known){0};
}

static bool holds(const gmd_known *known, const gmd_known_entry *e)
{
    gmd_known_count_fn *count = known->quirk_count ? *known->quirk_count : NULL;
    return !e->quirk || (count && count(e->quirk) > 0);
}

bool gmd_known_has(const gmd_known *known, const char *oracle, const char *message)
{
    for (size_t i = 0; known && i < known->count; i++) {
        if (strcmp(known->entries[i].oracle, oracle) == 0 &&
            strstr(message, known->entries[i].cause) && holds(known, &known->entries[i])) {
            return true;
        }
    }
    return false;
}
