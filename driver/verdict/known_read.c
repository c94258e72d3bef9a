/* known_read.c - lists of known defects (gmd_known.h), line by line. */
#include "gmd_known.h"

#include "known_conditions.h"

#include "gmd_file.h"
#include "gmd_grow.h"
#include "gmd_spelling.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* The entry as it is read, in parts of the line. */
typedef struct reading {
    const char *path; /* and the number of the line, for messages */
    size_t number;
    const gmd_kind_entry *kind; /* NULL: any of `oracle` */
    const char *oracle;
    known_entry entry;
    gmd_error *error;
} reading;

/* --- an entry ---------------------------------------------------------------------------- */

static gmd_status take(gmd_known *known, const reading *r, const char *words,
                       const char *conditions)
{
    if (!GMD_GROW(&known->entries, &known->capacity, known->count + 1)) {
        return gmd_fail(r->error, GMD_NO_MEMORY, "no host memory for the known defects");
    }
    known_entry *e = &known->entries[known->count++];
    *e = r->entry;
    e->oracle = strdup(r->oracle);
    e->words = strdup(words);
    e->conditions = strdup(conditions);
    e->spoils = conditions_have_end(conditions);
    return e->oracle && e->words && e->conditions
               ? GMD_OK
               : gmd_fail(r->error, GMD_NO_MEMORY, "no host memory for the known defects");
}

/* `conditions`: what stands behind the first bar; NULL: there is none. */
static gmd_status finish(gmd_known *known, const reading *r, const char *words,
                         const char *conditions)
{
    gmd_status status = conditions_check(conditions, r->path, r->number, r->error);
    return status == GMD_OK ? take(known, r, words, conditions ? conditions : "") : status;
}

static const char *near_kinds(gmd_near *near, const char *name)
{
    gmd_near_begin(near, name);
    for (size_t i = 0; i < GMD_KIND_COUNT; i++) {
        gmd_near_offer(near, strchr(name, '.') ? gmd_kinds[i].name : gmd_kinds[i].oracle);
    }
    return gmd_near_text(near);
}

/* An oracle's name, or a kind's. */
static gmd_status read_name(reading *r, const char *name)
{
    gmd_near near;
    r->kind = gmd_kind_find(name);
    r->oracle = r->kind ? r->kind->oracle : name;
    if (strchr(name, '.') && !r->kind) {
        return gmd_fail(r->error, GMD_BAD_INPUT,
                        "%s:%zu: expected a kind that 'gmd run --list-oracles' lists, found "
                        "'%.80s'%s",
                        r->path, r->number, name, near_kinds(&near, name));
    }
    if (!gmd_oracle_is_named(r->oracle)) {
        return gmd_fail(r->error, GMD_BAD_INPUT,
                        "%s:%zu: expected 'ORACLE', 'ORACLE.KIND' or 'ORACLE: WORDS', found the "
                        "unknown oracle '%.80s'%s",
                        r->path, r->number, name, near_kinds(&near, name));
    }
    return GMD_OK;
}

/* --- "leak: 2 streams are left | end", as lists had it before there were kinds -------------- */

static gmd_status read_words(gmd_known *known, reading *r, char *name, char *colon)
{
    *colon = '\0';
    char *words = colon + 1;
    words[strcspn(words, "#")] = '\0';
    char *bar = strchr(words, '|');
    if (bar) {
        *bar = '\0';
    }
    gmd_status status = read_name(r, trim(name));
    if (status == GMD_OK && r->kind) {
        return gmd_fail(r->error, GMD_BAD_INPUT,
                        "%s:%zu: a kind goes without words of the message: expected '%s', or "
                        "'%s: WORDS'",
                        r->path, r->number, r->kind->name, r->oracle);
    }
    return status == GMD_OK ? finish(known, r, trim(words), bar ? bar + 1 : NULL) : status;
}

/* --- "progress.crash signal=SIGSEGV -at | end" ---------------------------------------------- */

static bool is_about(const reading *r, size_t kind)
{
    return r->kind ? r->kind == &gmd_kinds[kind] : strcmp(gmd_kinds[kind].oracle, r->oracle) == 0;
}

/* Whether the entry is about one of the first `count` kinds that can have the party. */
static bool has_party(const reading *r, size_t count, const char *name)
{
    bool has = false;
    for (size_t i = 0; i < count && !has; i++) {
        has = is_about(r, i) && gmd_kind_has_party(&gmd_kinds[i], name);
    }
    return has;
}

/* "signal, at", each once. */
static void list_parties(const reading *r, char *text, size_t size)
{
    char name[GMD_PARTY_NAME];
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < GMD_KIND_COUNT; i++) {
        const char *at = is_about(r, i) ? gmd_kinds[i].parties : "";
        while (gmd_kind_next_party(&at, name)) {
            if (!has_party(r, i, name) && used < size) {
                used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "", name);
            }
        }
    }
}

static gmd_status refuse_party(const reading *r, const char *name)
{
    char list[200];
    list_parties(r, list, sizeof list);
    return gmd_fail(r->error, GMD_BAD_INPUT, "%s:%zu: %s has no party '%s': %s%s", r->path,
                    r->number, r->kind ? r->kind->name : r->oracle, name,
                    *list ? "its parties are " : "it has none", list);
}

static gmd_status refuse_text(const reading *r, const char *at)
{
    return gmd_fail(r->error, GMD_BAD_INPUT,
                    "%s:%zu: expected '|' or parties, each once: NAME=VALUE and NAME=\"VALUE\" (up "
                    "to %d), and -NAME for one that is not there; found '%.80s'",
                    r->path, r->number, GMD_PARTY_MAX, at);
}

/* NULL: no party's name stands there, or the entry has it already. */
static const char *take_name(const reading *r, const char *at, char name[GMD_PARTY_NAME])
{
    size_t length = strcspn(at, "= \t\r|#\"");
    if (length == 0 || length >= GMD_PARTY_NAME) {
        return NULL;
    }
    snprintf(name, GMD_PARTY_NAME, "%.*s", (int)length, at);
    bool is_there = gmd_identity_party(&r->entry.wanted, name) != NULL;
    for (uint32_t i = 0; i < r->entry.absent_count; i++) {
        is_there = is_there || strcmp(r->entry.absent[i], name) == 0;
    }
    return is_there ? NULL : at + length;
}

/* NAME=VALUE or NAME="VALUE". Where it ends; NULL: it is none. */
static const char *read_value(const char *at, const char *name, gmd_identity *into)
{
    if (*at++ != '=') {
        return NULL;
    }
    bool is_quoted = *at == '"';
    at += is_quoted;
    size_t length = strcspn(at, is_quoted ? "\"" : " \t\r|#");
    if (length == 0 || (is_quoted && at[length] != '"')) {
        return NULL;
    }
    char *value = strndup(at, length); /* what is too long is cut as that of a violation is */
    bool is_added = value && gmd_identity_add(into, name, value);
    free(value);
    return is_added ? at + length + is_quoted : NULL;
}

/* "-NAME". Likewise. */
static const char *read_absence(const char *at, const char *name, known_entry *entry)
{
    bool ends = !*at || strchr(" \t\r|#", *at);
    if (!ends || entry->absent_count == KNOWN_ABSENT_MAX) {
        return NULL;
    }
    snprintf(entry->absent[entry->absent_count++], GMD_PARTY_NAME, "%s", name);
    return at;
}

/* One party; moves `*at` behind it. */
static gmd_status read_party(reading *r, const char **at)
{
    char name[GMD_PARTY_NAME];
    bool is_absent = **at == '-';
    const char *end = take_name(r, *at + is_absent, name);
    if (end) {
        end = is_absent ? read_absence(end, name, &r->entry)
                        : read_value(end, name, &r->entry.wanted);
    }
    if (!end) {
        return refuse_text(r, *at);
    }
    *at = end;
    return has_party(r, GMD_KIND_COUNT, name) ? GMD_OK : refuse_party(r, name);
}

static gmd_status read_kind(gmd_known *known, reading *r, char *line)
{
    size_t length = strcspn(line, " \t\r|#");
    char *name = strndup(line, length);
    if (!name) {
        return gmd_fail(r->error, GMD_NO_MEMORY, "no host memory for a known defect");
    }
    gmd_status status = read_name(r, name);
    snprintf(r->entry.wanted.kind, sizeof r->entry.wanted.kind, "%s", r->kind ? r->kind->name : "");
    const char *at = line + length + strspn(line + length, " \t\r");
    while (status == GMD_OK && *at && *at != '|' && *at != '#') {
        status = read_party(r, &at);
        at += strspn(at, " \t\r");
    }
    if (status == GMD_OK) {
        line[(size_t)(at - line) + strcspn(at, "#")] = '\0';
        status = finish(known, r, "", *at ? at + 1 : NULL);
    }
    free(name);
    return status;
}

/* --- a list -------------------------------------------------------------------------------- */

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
