#include "gmd_known.h"

#include "gmd_file.h"
#include "gmd_oracle.h"

#include <stddef.h>
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

enum { WORDS_MAX = 200 };

/* The next one of "A | B" into `words`, without the spaces around it; "" where nothing stands.
 * False: there is none, and `*at` is NULL then. */
static bool next_condition(const char **at, char words[WORDS_MAX])
{
    if (!*at) {
        return false;
    }
    const char *from = *at + strspn(*at, " \t");
    size_t length = strcspn(from, "|");
    *at = from[length] ? from + length + 1 : NULL;
    snprintf(words, WORDS_MAX, "%.*s", (int)length, from);
    for (size_t end = strlen(words); end && strchr(" \t\r", words[end - 1]); end--) {
        words[end - 1] = '\0';
    }
    return true;
}

static bool has_condition(const char *conditions, const char *wanted)
{
    char words[WORDS_MAX];
    while (next_condition(&conditions, words)) {
        if (strcmp(words, wanted) == 0) {
            return true;
        }
    }
    return false;
}

static gmd_status add(gmd_known *known, const char *oracle, const char *cause,
                      const char *conditions, const char *quirk, gmd_error *error)
{
    known_entry *entries = realloc(known->entries, (known->count + 1) * sizeof *entries);
    if (!entries) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for the known defects");
    }
    known->entries = entries;
    known_entry *e = &entries[known->count++];
    *e = (known_entry){.oracle = strdup(oracle),
                       .cause = strdup(cause),
                       .conditions = strdup(conditions),
                       .spoils = has_condition(conditions, "end"),
                       .quirk = quirk};
    return e->oracle && e->cause && e->conditions
               ? GMD_OK
               : gmd_fail(error, GMD_NO_MEMORY, "no host memory for the known defects");
}

gmd_status known_add(gmd_known *known, const char *oracle, const char *cause,
                     const char *conditions, gmd_error *error)
{
    return add(known, oracle, cause, conditions, NULL, error);
}

gmd_status known_add_quirk(gmd_known *known, const char *oracle, const char *cause,
                           const char *quirk, gmd_error *error)
{
    return add(known, oracle, cause, "", quirk, error);
}

/* --- conditions -------------------------------------------------------------------------- */

/* What follows `keyword` and a space; NULL: `words` begin otherwise, or nothing follows. */
static const char *after(const char *words, const char *keyword)
{
    size_t length = strlen(keyword);
    return strncmp(words, keyword, length) == 0 && words[length] == ' ' && words[length + 1]
               ? words + length + 1
               : NULL;
}

/* Requests that a run has had or not. */
static const struct {
    const char *words;
    size_t flag; /* where in known_context */
} requests[] = {{"destroy", offsetof(known_context, has_destroyed)},
                {"device", offsetof(known_context, has_second_device)},
                {"begin_pool", offsetof(known_context, has_begun_pool)},
                {"begin_capture", offsetof(known_context, has_captured)}};

/* SIZE_MAX: it is no such condition. */
static size_t flag_of(const char *words)
{
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        if (strcmp(words, requests[i].words) == 0) {
            return requests[i].flag;
        }
    }
    return SIZE_MAX;
}

static bool is_condition(const char *words)
{
    return flag_of(words) != SIZE_MAX || strcmp(words, "end") == 0 || after(words, "fault") ||
           after(words, "conf");
}

static bool has_failed(const known_context *context, const char *function)
{
    for (uint32_t i = 0; i < context->fault_count; i++) {
        if (strcmp(context->faults[i], function) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_met(const known_context *context, const char *words)
{
    const char *function = after(words, "fault"), *setting = after(words, "conf");
    size_t flag = flag_of(words);
    return function           ? has_failed(context, function)
           : setting          ? strstr(context->conf, setting) != NULL
           : flag != SIZE_MAX ? *(const bool *)((const char *)context + flag)
                              : true; /* the end */
}

static bool are_met(const known_context *context, const char *conditions)
{
    char words[WORDS_MAX];
    conditions = *conditions ? conditions : NULL;
    while (next_condition(&conditions, words)) {
        if (!context || !is_met(context, words)) {
            return false;
        }
    }
    return true;
}

/* --- reading ----------------------------------------------------------------------------- */

/* Behind every bar something stands: what was forgotten there would hide too much.
 * NULL: there are none. */
static gmd_status check_conditions(const char *conditions, const char *path, size_t number,
                                   gmd_error *error)
{
    char words[WORDS_MAX];
    while (next_condition(&conditions, words)) {
        if (!is_condition(words)) {
            return gmd_fail(error, GMD_BAD_INPUT,
                            "%s:%zu: expected 'fault FUNCTION', 'conf TEXT', 'destroy', 'device', "
                            "'begin_pool', 'begin_capture' or 'end' behind "
                            "'|', found '%s'",
                            path, number, words);
        }
    }
    return GMD_OK;
}

static gmd_status read_line(gmd_known *known, char *line, const char *path, size_t number,
                            gmd_error *error)
{
    line[strcspn(line, "#")] = '\0';
    char *oracle = trim(line);
    if (!*oracle) {
        return GMD_OK;
    }
    char *bar = strchr(oracle, '|');
    const char *conditions = bar ? bar + 1 : NULL;
    if (bar) {
        *bar = '\0';
        oracle = trim(oracle);
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
    gmd_status status = check_conditions(conditions, path, number, error);
    return status == GMD_OK ? known_add(known, oracle, cause, conditions ? conditions : "", error)
                            : status;
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
        const known_entry *e = &added.entries[i];
        status = known_add(known, e->oracle, e->cause, e->conditions, error);
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
        free(known->entries[i].conditions);
    }
    free(known->entries);
    *known = (gmd_known){0};
}

static bool holds(const gmd_known *known, const known_entry *e)
{
    gmd_known_count_fn *count = known->quirk_count ? *known->quirk_count : NULL;
    return !e->quirk || (count && count(e->quirk) > 0);
}

const known_entry *known_find(const gmd_known *known, const known_context *context,
                              const char *oracle, const char *message)
{
    for (size_t i = 0; known && i < known->count; i++) {
        const known_entry *e = &known->entries[i];
        if (strcmp(e->oracle, oracle) == 0 && strstr(message, e->cause) && holds(known, e) &&
            are_met(context, e->conditions)) {
            return e;
        }
    }
    return NULL;
}
