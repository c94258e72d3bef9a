#include "gmd_known.h"

#include "gmd_file.h"
#include "gmd_grow.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool gmd_oracle_is_named(const char *name)
{
    return gmd_severity(name) != INT_MAX;
}

void gmd_oracle_names(char *text, size_t size)
{
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0; i < GMD_JUDGE_COUNT && length < size; i++) {
        length += (size_t)snprintf(text + length, size - length, "%s%s", i ? ", " : "",
                                   gmd_judges[i].name);
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

/* The entry as it is read, in parts of the line. */
typedef struct reading {
    const char *path; /* and the number of the line, for messages */
    size_t number;
    known_entry entry;
    gmd_error *error;
} reading;

static gmd_status take(gmd_known *known, const reading *r, const char *oracle, const char *words,
                       const char *conditions)
{
    if (!GMD_GROW(&known->entries, &known->capacity, known->count + 1)) {
        return gmd_fail(r->error, GMD_NO_MEMORY, "no host memory for the known defects");
    }
    known_entry *e = &known->entries[known->count++];
    *e = r->entry;
    e->oracle = strdup(oracle);
    e->words = strdup(words);
    e->conditions = strdup(conditions);
    e->spoils = has_condition(conditions, "end");
    return e->oracle && e->words && e->conditions
               ? GMD_OK
               : gmd_fail(r->error, GMD_NO_MEMORY, "no host memory for the known defects");
}

/* Finds the oracle that is named, and what stands behind its first bar; NULL: nothing does. */
static gmd_status finish(gmd_known *known, const reading *r, const char *oracle, const char *words,
                         const char *conditions)
{
    if (!gmd_oracle_is_named(oracle)) {
        return gmd_fail(r->error, GMD_BAD_INPUT,
                        "%s:%zu: expected 'ORACLE', 'ORACLE.KIND' or 'ORACLE: WORDS', found the "
                        "unknown oracle '%.80s'",
                        r->path, r->number, oracle);
    }
    gmd_status status = check_conditions(conditions, r->path, r->number, r->error);
    return status == GMD_OK ? take(known, r, oracle, words, conditions ? conditions : "") : status;
}

/* "leak: 2 streams are left | end", as lists had it before there were kinds. */
static gmd_status read_words(gmd_known *known, reading *r, char *oracle, char *colon)
{
    *colon = '\0';
    char *words = colon + 1;
    words[strcspn(words, "#")] = '\0';
    char *bar = strchr(words, '|');
    if (bar) {
        *bar = '\0';
    }
    return finish(known, r, trim(oracle), trim(words), bar ? bar + 1 : NULL);
}

/* One of NAME=VALUE and NAME="VALUE"; where it ends, NULL: it is none. */
static const char *read_party(const char *at, gmd_identity *into)
{
    char name[GMD_PARTY_NAME], value[GMD_PARTY_VALUE];
    size_t length = strcspn(at, "= \t\r|#\"");
    if (length == 0 || length >= sizeof name || at[length] != '=') {
        return NULL;
    }
    snprintf(name, sizeof name, "%.*s", (int)length, at);
    at += length + 1;
    bool is_quoted = *at == '"';
    at += is_quoted;
    length = strcspn(at, is_quoted ? "\"" : " \t\r|#");
    if (length == 0 || length >= sizeof value || (is_quoted && at[length] != '"')) {
        return NULL;
    }
    snprintf(value, sizeof value, "%.*s", (int)length, at);
    return gmd_identity_add(into, name, value) ? at + length + is_quoted : NULL;
}

/* "progress.crash signal=SIGSEGV at=free | end" */
static gmd_status read_kind(gmd_known *known, reading *r, char *line)
{
    char name[GMD_KIND_NAME], oracle[24];
    size_t length = strcspn(line, " \t\r|#");
    snprintf(name, sizeof name, "%.*s", (int)length, line);
    const gmd_kind_entry *kind = gmd_kind_find(name);
    if (strchr(name, '.') && !kind) {
        return gmd_fail(r->error, GMD_BAD_INPUT,
                        "%s:%zu: expected a kind that 'gmd run --list-oracles' lists, found '%s'",
                        r->path, r->number, name);
    }
    snprintf(oracle, sizeof oracle, "%s", kind ? kind->oracle : name);
    snprintf(r->entry.wanted.kind, sizeof r->entry.wanted.kind, "%s", kind ? kind->name : "");
    const char *at = line + length + strspn(line + length, " \t\r");
    while (*at && *at != '|' && *at != '#') {
        const char *end = read_party(at, &r->entry.wanted);
        if (!end) {
            return gmd_fail(r->error, GMD_BAD_INPUT,
                            "%s:%zu: expected '|' or up to %d of NAME=VALUE and NAME=\"VALUE\", "
                            "found '%.80s'",
                            r->path, r->number, GMD_PARTY_MAX, at);
        }
        at = end + strspn(end, " \t\r");
    }
    line[(size_t)(at - line) + strcspn(at, "#")] = '\0';
    return finish(known, r, oracle, "", *at ? at + 1 : NULL);
}

static gmd_status read_line(gmd_known *known, char *line, const char *quirk, const char *path,
                            size_t number, gmd_error *error)
{
    reading r = {.path = path, .number = number, .entry = {.quirk = quirk}, .error = error};
    char *name = line + strspn(line, " \t\r");
    char *behind = name + strcspn(name, " \t\r:|#");
    char *next = behind + strspn(behind, " \t\r");
    if (*name == '\0' || *name == '#') {
        return GMD_OK;
    }
    return *next == ':' ? read_words(known, &r, name, next) : read_kind(known, &r, name);
}

static gmd_status add(gmd_known *known, const char *line, const char *quirk, const char *name,
                      gmd_error *error)
{
    char *copy = strdup(line);
    gmd_status status = copy ? read_line(known, copy, quirk, name, 1, error)
                             : gmd_fail(error, GMD_NO_MEMORY, "no host memory for a known defect");
    free(copy);
    return status;
}

gmd_status known_add(gmd_known *known, const char *line, const char *name, gmd_error *error)
{
    return add(known, line, NULL, name, error);
}

gmd_status known_add_quirk(gmd_known *known, const char *line, const char *quirk, gmd_error *error)
{
    return add(known, line, quirk, quirk, error);
}

/* All or none: on failure what was added is freed. */
static gmd_status move_entries(gmd_known *to, gmd_known *from, gmd_error *error)
{
    if (!from->count) {
        return GMD_OK;
    }
    if (!GMD_GROW(&to->entries, &to->capacity, to->count + from->count)) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for the known defects");
    }
    memcpy(to->entries + to->count, from->entries, from->count * sizeof *to->entries);
    to->count += from->count;
    from->count = 0;
    return GMD_OK;
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
        status = read_line(&added, line, NULL, path, number, error);
    }
    status = status == GMD_OK ? move_entries(known, &added, error) : status;
    gmd_known_free(&added);
    free(text);
    return status;
}

void gmd_known_free(gmd_known *known)
{
    for (size_t i = 0; i < known->count; i++) {
        free(known->entries[i].oracle);
        free(known->entries[i].words);
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

size_t gmd_known_count_words(const gmd_known *known)
{
    size_t count = 0;
    for (size_t i = 0; i < known->count; i++) {
        count += known->entries[i].words[0] != '\0';
    }
    return count;
}

static bool is_of_oracle(const gmd_identity *identity, const char *oracle)
{
    size_t length = strlen(oracle);
    return strncmp(identity->kind, oracle, length) == 0 && identity->kind[length] == '.';
}

static bool is_wanted(const known_entry *e, const gmd_identity *identity, const char *message)
{
    bool is = is_of_oracle(identity, e->oracle) && strstr(message, e->words) &&
              (!e->wanted.kind[0] || strcmp(e->wanted.kind, identity->kind) == 0);
    for (uint32_t i = 0; is && i < e->wanted.party_count; i++) {
        const char *value = gmd_identity_party(identity, e->wanted.parties[i].name);
        is = value && strcmp(value, e->wanted.parties[i].value) == 0;
    }
    return is;
}

const known_entry *known_find(const gmd_known *known, const known_context *context,
                              const gmd_identity *identity, const char *message)
{
    for (size_t i = 0; known && i < known->count; i++) {
        const known_entry *e = &known->entries[i];
        if (is_wanted(e, identity, message) && holds(known, e) && are_met(context, e->conditions)) {
            return e;
        }
    }
    return NULL;
}
