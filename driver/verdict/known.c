/* known.c - whether a violation is in the list of known defects. */
#include "gmd_known.h"

#include "known_conditions.h"

#include <limits.h>
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

bool gmd_known_join(const gmd_known *const lists[], size_t list_count, gmd_known *all)
{
    size_t count = 0;
    for (size_t i = 0; i < list_count; i++) {
        count += lists[i] ? lists[i]->count : 0;
    }
    *all = (gmd_known){.entries = calloc(count + 1, sizeof *all->entries)};
    for (size_t i = 0; all->entries && i < list_count; i++) {
        if (lists[i] && lists[i]->count) {
            memcpy(&all->entries[all->count], lists[i]->entries,
                   lists[i]->count * sizeof *all->entries);
            all->count += lists[i]->count;
        }
        if (lists[i] && lists[i]->quirk_count) {
            all->quirk_count = lists[i]->quirk_count;
        }
    }
    return all->entries != NULL;
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
    for (uint32_t i = 0; is && i < e->absent_count; i++) {
        is = !gmd_identity_party(identity, e->absent[i]);
    }
    return is;
}

const known_entry *known_find(const gmd_known *known, const known_context *context,
                              const gmd_identity *identity, const char *message)
{
    for (size_t i = 0; known && i < known->count; i++) {
        const known_entry *e = &known->entries[i];
        if (is_wanted(e, identity, message) && holds(known, e) &&
            conditions_are_met(context, e->conditions)) {
            return e;
        }
    }
    return NULL;
}
