/* kind.c - the list of oracles as tables, and identities. */
#include "gmd_kind.h"

#include "gmd_utf8.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define KIND_ENTRY(oracle, kind, meaning, parties)                                                 \
    {#oracle "." #kind, #oracle, sizeof(parties) > 1 ? meaning ": " parties : meaning, parties},
#define ORACLE_ENTRY(name, severity, holds) {#name, holds, severity, true},
#define VOICE_ENTRY(name, severity, holds)  {#name, holds, severity, false},
#define ASSERT_KIND_FITS(oracle, kind, meaning, parties)                                           \
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

bool gmd_kind_next_party(const char **at, char name[GMD_PARTY_NAME])
{
    const char *from = *at + strspn(*at, "[], ");
    size_t length = strcspn(from, "[], ");
    snprintf(name, GMD_PARTY_NAME, "%.*s", (int)length, from);
    *at = from + length;
    return length > 0;
}

bool gmd_kind_has_party(const gmd_kind_entry *kind, const char *name)
{
    char party[GMD_PARTY_NAME];
    for (const char *at = kind->parties; gmd_kind_next_party(&at, party);) {
        if (strcmp(party, name) == 0) {
            return true;
        }
    }
    return false;
}

/* --- identities -------------------------------------------------------------------------- */

/* What stands for a character that a line of a known list cannot hold between quotation marks, or
 * that a terminal does not show as it is; NULL: the character itself. */
static const char *stand_in(uint32_t c)
{
    return c == GMD_REPLACEMENT_CHARACTER ? "?"
           : gmd_utf8_is_control(c)       ? " "
           : c == '"'                     ? "'"
                                          : NULL;
}

/* No character is cut in its middle. */
static void copy(char *to, size_t size, const char *from)
{
    size_t used = 0;
    const char *next = from;
    for (uint32_t c = gmd_utf8_next(&next); c; from = next, c = gmd_utf8_next(&next)) {
        const char *shown = stand_in(c);
        size_t length = shown ? 1 : (size_t)(next - from);
        if (used + length >= size) {
            break;
        }
        memcpy(to + used, shown ? shown : from, length);
        used += length;
    }
    to[used] = '\0';
}

void gmd_party_text(const char *from, char value[GMD_PARTY_VALUE])
{
    copy(value, GMD_PARTY_VALUE, from);
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

void gmd_identity_known_line(const gmd_identity *identity, char text[GMD_IDENTITY_TEXT])
{
    char name[GMD_PARTY_NAME];
    gmd_identity_print(identity, text);
    const gmd_kind_entry *kind = gmd_kind_find(identity->kind);
    size_t used = strlen(text);
    for (const char *at = kind ? kind->parties : ""; gmd_kind_next_party(&at, name);) {
        if (!gmd_identity_party(identity, name) && used < GMD_IDENTITY_TEXT) {
            used += (size_t)snprintf(text + used, GMD_IDENTITY_TEXT - used, " -%s", name);
        }
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
        if (gmd_kind_has_party(kind, party->name)) {
            gmd_identity_add(&whole, party->name, party->value);
        }
    }
    *identity = whole;
}
