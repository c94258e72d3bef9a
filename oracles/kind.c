/* kind.c - the list of oracles as tables, and identities. */
#include "gmd_kind.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define KIND_ENTRY(oracle, kind, meaning)   {#oracle "." #kind, #oracle, meaning},
#define ORACLE_ENTRY(name, severity, holds) {#name, holds, severity, true},
#define VOICE_ENTRY(name, severity, holds)  {#name, holds, severity, false},
#define ASSERT_KIND_FITS(oracle, kind, meaning)                                                    \
    _Static_assert(sizeof #oracle "." #kind <= GMD_KIND_NAME, "the name of a kind is too long");

GMD_ORACLE_LIST(GMD_NO_ENTRY, GMD_NO_ENTRY, ASSERT_KIND_FITS)

const gmd_kind_entry gmd_kinds[GMD_KIND_COUNT] = {
    GMD_ORACLE_LIST(GMD_NO_ENTRY, GMD_NO_ENTRY, KIND_ENTRY)};

const gmd_judge_entry gmd_judges[GMD_JUDGE_COUNT] = {
    GMD_ORACLE_LIST(ORACLE_ENTRY, VOICE_ENTRY, GMD_NO_ENTRY)};

const gmd_kind_entry *gmd_kind_find(const char *name)
{
    for (size_t i = 0; i < GMD_KIND_COUNT; i++) {
        if (strcmp(gmd_kinds[i].name, name) == 0) {
            return &gmd_kinds[i];
        }
    }
    return NULL;
}

int gmd_severity(const char *judge)
{
    for (size_t i = 0; i < GMD_JUDGE_COUNT; i++) {
        if (strcmp(gmd_judges[i].name, judge) == 0) {
            return gmd_judges[i].severity;
        }
    }
    return INT_MAX;
}

/* A line of a known list holds it between quotation marks. */
static void clean(char *text)
{
    for (char *c = text; *c; c++) {
        if ((unsigned char)*c < ' ' || *c == 127) {
            *c = ' ';
        } else if (*c == '"') {
            *c = '\'';
        }
    }
}

/* No character of UTF-8 is cut in its middle. */
static void copy(char *to, size_t size, const char *from)
{
    size_t length = strlen(from);
    if (length >= size) {
        length = size - 1;
        while (length && ((unsigned char)from[length] & 0xC0) == 0x80) {
            length--;
        }
    }
    memcpy(to, from, length);
    to[length] = '\0';
    clean(to);
}

const char *gmd_identity_party(const gmd_identity *identity, const char *name)
{
    for (uint32_t i = 0; i < identity->party_count; i++) {
        if (strcmp(identity->parties[i].name, name) == 0) {
            return identity->parties[i].value;
        }
    }
    return NULL;
}

bool gmd_identity_add(gmd_identity *identity, const char *name, const char *value)
{
    gmd_party party;
    copy(party.name, sizeof party.name, name);
    copy(party.value, sizeof party.value, value);
    if (identity->party_count == GMD_PARTY_MAX || gmd_identity_party(identity, party.name)) {
        return false;
    }
    identity->parties[identity->party_count++] = party;
    return true;
}

void gmd_identity_make(gmd_identity *identity, gmd_kind kind, const gmd_given_party *parties)
{
    memset(identity, 0, sizeof *identity);
    copy(identity->kind, sizeof identity->kind, gmd_kinds[kind].name);
    for (; parties && parties->name; parties++) {
        if (parties->value && *parties->value) {
            gmd_identity_add(identity, parties->name, parties->value);
        }
    }
}

bool gmd_identity_equal(const gmd_identity *a, const gmd_identity *b)
{
    bool is_equal = strcmp(a->kind, b->kind) == 0 && a->party_count == b->party_count;
    for (uint32_t i = 0; is_equal && i < a->party_count; i++) {
        is_equal = strcmp(a->parties[i].name, b->parties[i].name) == 0 &&
                   strcmp(a->parties[i].value, b->parties[i].value) == 0;
    }
    return is_equal;
}

bool gmd_identity_is(const gmd_identity *identity, gmd_kind kind)
{
    return strcmp(identity->kind, gmd_kinds[kind].name) == 0;
}

static bool is_one_word(const char *value)
{
    return *value && !strpbrk(value, " |#=");
}

void gmd_identity_print(const gmd_identity *identity, char text[GMD_IDENTITY_TEXT])
{
    size_t used = (size_t)snprintf(text, GMD_IDENTITY_TEXT, "%s", identity->kind);
    for (uint32_t i = 0; i < identity->party_count && used < GMD_IDENTITY_TEXT; i++) {
        const gmd_party *party = &identity->parties[i];
        const char *mark = is_one_word(party->value) ? "" : "\"";
        used += (size_t)snprintf(text + used, GMD_IDENTITY_TEXT - used, " %s=%s%s%s", party->name,
                                 mark, party->value, mark);
    }
}

#define TERMINATE(text) ((text)[sizeof(text) - 1] = '\0')

void gmd_identity_mend(gmd_identity *identity)
{
    gmd_identity whole = {.kind = ""};
    TERMINATE(identity->kind);
    uint32_t count = identity->party_count;
    const gmd_kind_entry *kind = gmd_kind_find(identity->kind);
    copy(whole.kind, sizeof whole.kind, kind ? kind->name : "");
    for (uint32_t i = 0; kind && count <= GMD_PARTY_MAX && i < count; i++) {
        gmd_party *party = &identity->parties[i];
        TERMINATE(party->name);
        TERMINATE(party->value);
        gmd_identity_add(&whole, party->name, party->value);
    }
    *identity = whole;
}
