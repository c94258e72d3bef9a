#include "gmd_contract.h"

#include "gmd_file.h"
#include "gmd_promises.h"
#include "gmd_size.h"
#include "gmd_spelling.h"
#include "gmd_text.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char first_line[] = "gmd-profile 1";
static const char ending[] = ".profile";
static const char promise_word[] = "promise";

typedef struct reading {
    gmd_contract contract;
    uint32_t seen; /* bit CLAUSE */
    const char *name;
    size_t number; /* of the line, from 1 */
    gmd_error *error;
} reading;

/* --- a line ------------------------------------------------------------------------------ */

static gmd_status refuse_word(const reading *r, const char *word)
{
    gmd_near near;
    gmd_near_begin(&near, word);
    for (int i = 0; i < GMD_CLAUSE_COUNT; i++) {
        gmd_near_offer(&near, gmd_clause_rows[i].name);
    }
    gmd_near_offer(&near, promise_word);
    return gmd_fail(r->error, GMD_BAD_INPUT, "%s:%zu: '%.80s': there is no such clause%s", r->name,
                    r->number, word, gmd_near_text(&near));
}

static gmd_status refuse_term(const reading *r, const gmd_clause_row *row, const char *value)
{
    char names[120] = "a size";
    size_t length = 0;
    for (size_t i = 0; i < GMD_TERMS_MAX && row->terms[i].name; i++) {
        bool is_last = i + 1 == GMD_TERMS_MAX || !row->terms[i + 1].name;
        length += (size_t)snprintf(names + length, sizeof names - length, "%s%s",
                                   i == 0    ? ""
                                   : is_last ? " or "
                                             : ", ",
                                   row->terms[i].name);
    }
    return gmd_fail(r->error, GMD_BAD_INPUT, "%s:%zu: %s '%.80s': expected %s", r->name, r->number,
                    row->name, value, names);
}

static gmd_status take_term(reading *r, gmd_clause clause, const char *value)
{
    const gmd_clause_row *row = &gmd_clause_rows[clause];
    if (r->seen >> clause & 1) {
        return gmd_fail(r->error, GMD_BAD_INPUT, "%s:%zu: %s was stated before", r->name, r->number,
                        row->name);
    }
    r->seen |= 1u << clause;
    if (clause == GMD_CLAUSE_LARGEST) {
        return gmd_parse_size(value, &r->contract.largest) && r->contract.largest
                   ? GMD_OK
                   : refuse_term(r, row, value);
    }
    for (uint8_t i = 0; i < GMD_TERMS_MAX && row->terms[i].name; i++) {
        if (strcmp(row->terms[i].name, value) == 0) {
            r->contract.terms[clause] = i;
            return GMD_OK;
        }
    }
    return refuse_term(r, row, value);
}

static gmd_status take_promises(reading *r, const char *value)
{
    gmd_status status = gmd_promises_parse(value, &r->contract.promises, r->error);
    if (status != GMD_OK) {
        char place[300];
        snprintf(place, sizeof place, "%.200s:%zu: %s", r->name, r->number, promise_word);
        gmd_error_prefix(r->error, place);
    }
    return status;
}

/* What is left of a line without its comment and the spaces around; in place. */
static char *trim(char *line)
{
    line[strcspn(line, "#\r")] = '\0';
    line += strspn(line, " \t");
    size_t length = strlen(line);
    while (length && strchr(" \t", line[length - 1])) {
        line[--length] = '\0';
    }
    return line;
}

static gmd_status read_line(reading *r, char *line)
{
    char *word = trim(line);
    if (!*word) {
        return GMD_OK;
    }
    char *value = word + strcspn(word, " \t");
    if (*value) {
        *value++ = '\0';
        value += strspn(value, " \t");
    }
    if (strcmp(word, promise_word) == 0) {
        return take_promises(r, value);
    }
    for (int i = 0; i < GMD_CLAUSE_COUNT; i++) {
        if (strcmp(word, gmd_clause_rows[i].name) == 0) {
            return take_term(r, (gmd_clause)i, value);
        }
    }
    return refuse_word(r, word);
}

/* --- names of clauses -------------------------------------------------------------------- */

static gmd_status refuse_name(const char *name, size_t length, gmd_error *error)
{
    char names[200] = "all";
    size_t used = strlen(names);
    for (int i = 0; i < GMD_CLAUSE_COUNT; i++) {
        used +=
            (size_t)snprintf(names + used, sizeof names - used, ", %s", gmd_clause_rows[i].name);
    }
    return gmd_fail(error, GMD_BAD_INPUT, "'%.*s': expected some of %s, separated by commas",
                    (int)length, name, names);
}

gmd_status gmd_contract_go_beyond(gmd_contract *contract, const char *names, gmd_error *error)
{
    if (strcmp(names, "all") == 0) {
        contract->beyond = UINT32_MAX;
        return GMD_OK;
    }
    for (const char *name = names;;) {
        size_t length = strcspn(name, ",");
        int clause = 0;
        while (clause < GMD_CLAUSE_COUNT &&
               (strlen(gmd_clause_rows[clause].name) != length ||
                strncmp(gmd_clause_rows[clause].name, name, length) != 0)) {
            clause++;
        }
        if (clause == GMD_CLAUSE_COUNT) {
            return refuse_name(name, length, error);
        }
        contract->beyond |= 1u << clause;
        if (!name[length]) {
            return GMD_OK;
        }
        name += length + 1;
    }
}

/* --- the text ---------------------------------------------------------------------------- */

static gmd_status check_first(const reading *r, char *line)
{
    const char *found = trim(line);
    return strcmp(found, first_line) == 0
               ? GMD_OK
               : gmd_fail(r->error, GMD_BAD_INPUT, "%s:1: expected '%s', found '%.40s'", r->name,
                          first_line, found);
}

gmd_status gmd_contract_parse(gmd_contract *contract, const char *text, size_t size,
                              const char *name, gmd_error *error)
{
    reading r = {.name = name, .error = error};
    if (memchr(text, 0, size)) {
        return gmd_fail(error, GMD_BAD_INPUT, "%s: is not a text file", name);
    }
    char *copy = gmd_text_copy(text, size);
    if (!copy) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for a profile");
    }
    gmd_contract_init(&r.contract);
    snprintf(r.contract.name, sizeof r.contract.name, "%s", gmd_file_name(name));
    gmd_status status = GMD_OK;
    for (char *rest = copy; rest && status == GMD_OK;) {
        char *line = rest;
        rest = strchr(line, '\n');
        if (rest) {
            *rest++ = '\0';
        }
        status = r.number++ ? read_line(&r, line) : check_first(&r, line);
    }
    free(copy);
    if (status == GMD_OK) {
        *contract = r.contract;
    }
    return status;
}

/* --- a file ------------------------------------------------------------------------------ */

/* " (there are cub, rmm_pool)"; empty: there are none. */
static void list_names(const char *folder, char *text, size_t size)
{
    struct dirent **entries;
    size_t length = 0;
    int count = scandir(folder, &entries, NULL, alphasort);
    text[0] = '\0';
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        if (gmd_text_ends_with(name, ending) && length < size - 1) {
            length += (size_t)snprintf(text + length, size - length, "%s%.*s",
                                       length ? ", " : "; there are ",
                                       (int)(strlen(name) - strlen(ending)), name);
        }
        free(entries[i]);
    }
    if (count >= 0) {
        free(entries);
    }
}

static gmd_status find(const char *name, const char *folder, char *path, size_t size,
                       gmd_error *error)
{
    if (strpbrk(name, "/.") || !*name) {
        snprintf(path, size, "%s", name);
        return GMD_OK;
    }
    char names[400];
    snprintf(path, size, "%s/%s%s", folder, name, ending);
    if (access(path, R_OK) == 0) {
        return GMD_OK;
    }
    list_names(folder, names, sizeof names);
    return gmd_fail(error, GMD_BAD_INPUT,
                    "%.80s: no profile of that name comes with gmd%s; a file's name has a slash or "
                    "a dot",
                    name, names);
}

gmd_status gmd_contract_read(gmd_contract *contract, const char *path, const char *folder,
                             gmd_error *error)
{
    char file[4400];
    uint8_t *text = NULL;
    size_t size = 0;
    gmd_status status = find(path, folder, file, sizeof file, error);
    if (status == GMD_OK) {
        status = gmd_file_read(file, &text, &size, error);
    }
    if (status == GMD_OK) {
        status = gmd_contract_parse(contract, (const char *)text, size, file, error);
    }
    free(text);
    return status;
}

const char *gmd_contract_line(const gmd_contract *c, gmd_clause clause,
                              char text[GMD_CONTRACT_LINE])
{
    const gmd_clause_row *row = &gmd_clause_rows[clause];
    char size[24];
    text[0] = '\0';
    if (clause == GMD_CLAUSE_LARGEST && c->largest < UINT64_MAX) {
        snprintf(text, GMD_CONTRACT_LINE, "%s %s", row->name,
                 gmd_format_exact_size(c->largest, size));
    } else if (clause != GMD_CLAUSE_LARGEST && c->terms[clause]) {
        snprintf(text, GMD_CONTRACT_LINE, "%s %s", row->name, row->terms[c->terms[clause]].name);
    }
    return text;
}
