/* gmd_kind.h - what a verdict is: its kind, out of the list of oracles, and its parties. Causes,
 * deduplication, known lists and reports go by these; the sentence beside them is for people.
 *
 * All of it is plain data, so that it can lie in memory shared with a child process. Thread safety:
 * pure functions. */
#ifndef GMD_KIND_H
#define GMD_KIND_H

#include "gmd_oracle_list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GMD_NO_ENTRY(...)
#define GMD_KIND_CONSTANT(oracle, kind, meaning, parties) gmd_kind_##oracle##_##kind,

typedef enum gmd_kind {
    GMD_ORACLE_LIST(GMD_NO_ENTRY, GMD_NO_ENTRY, GMD_KIND_CONSTANT) GMD_KIND_COUNT
} gmd_kind;

/* GMD_KIND(stream_order, reused_early): a kind that is not in the list does not compile. */
#define GMD_KIND(oracle, kind) gmd_kind_##oracle##_##kind

typedef struct gmd_kind_entry {
    const char *name;    /* "stream_order.reused_early" */
    const char *oracle;  /* "stream_order" */
    const char *meaning; /* one line, with the parties' names */
    const char *parties; /* "signal, [at]" */
} gmd_kind_entry;

extern const gmd_kind_entry gmd_kinds[GMD_KIND_COUNT];

/* NULL: there is no such kind. */
const gmd_kind_entry *gmd_kind_find(const char *name);

/* Who can give a verdict: the oracles, and then the voices, in the order of the list. */
typedef struct gmd_judge_entry {
    const char *name, *holds_when;
    int severity; /* 1: the worst */
    bool is_oracle;
} gmd_judge_entry;

#define GMD_JUDGE_CONSTANT(name, severity, holds_when) gmd_judge_##name,
enum { GMD_ORACLE_LIST(GMD_JUDGE_CONSTANT, GMD_JUDGE_CONSTANT, GMD_NO_ENTRY) GMD_JUDGE_COUNT };

extern const gmd_judge_entry gmd_judges[GMD_JUDGE_COUNT];

/* INT_MAX: nobody of that name can give one. */
int gmd_severity(const char *judge);

/* --- parties ----------------------------------------------------------------------------- */

enum { GMD_PARTY_MAX = 4, GMD_PARTY_NAME = 16, GMD_PARTY_VALUE = 80, GMD_KIND_NAME = 48 };

/* The next party that violations of the kind can have. `*at` is kind->parties at first. False:
 * there are no more. */
bool gmd_kind_next_party(const char **at, char name[GMD_PARTY_NAME]);
bool gmd_kind_has_party(const gmd_kind_entry *kind, const char *name);

/* What tells one defect from another and is the same in every run: a function, a statistic, a lock;
 * never an address, a size or a count. */
typedef struct gmd_party {
    char name[GMD_PARTY_NAME];
    char value[GMD_PARTY_VALUE]; /* UTF-8, printable; without quotation marks */
} gmd_party;

/* A kind and its parties: two violations with the same ones are one defect. */
typedef struct gmd_identity {
    char
        kind[GMD_KIND_NAME]; /* "progress.crash"; empty: not known, as in reports of an older gmd */
    gmd_party parties[GMD_PARTY_MAX];
    uint32_t party_count;
} gmd_identity;

/* A party as a violation is raised with it; one without a value is left out. */
typedef struct gmd_given_party {
    const char *name, *value;
} gmd_given_party;

/* GMD_PARTIES({"function", name}, {"error", code}); or GMD_NO_PARTIES. */
#define GMD_PARTIES(...) ((const gmd_given_party[]){__VA_ARGS__, {NULL, NULL}})
#define GMD_NO_PARTIES   NULL

/* "near_2^64" of a size that wraps around when it is rounded up; else NULL, which leaves the party
 * out. */
static inline const char *gmd_party_bytes(uint64_t bytes)
{
    return bytes > UINT64_MAX - ((uint64_t)1 << 40) ? "near_2^64" : NULL;
}

/* The text as a party has it: what a list cannot hold is replaced, and what does not fit is cut
 * behind a whole character. */
void gmd_party_text(const char *from, char value[GMD_PARTY_VALUE]);

/* `parties` end with one that has no name; NULL: none. */
void gmd_identity_make(gmd_identity *identity, gmd_kind kind, const gmd_given_party *parties);
/* Adds one; false: it has one of that name, or GMD_PARTY_MAX of them. */
bool gmd_identity_add(gmd_identity *identity, const char *name, const char *value);

/* NULL: it has no such party. */
const char *gmd_identity_party(const gmd_identity *identity, const char *name);

bool gmd_identity_equal(const gmd_identity *a, const gmd_identity *b);
bool gmd_identity_is(const gmd_identity *identity, gmd_kind kind);

/* What the defect is called: size.booked_short bytes=near_2^64. As a line of a known list it may
 * cover others, which have further parties. */
enum { GMD_IDENTITY_TEXT = 512 };
void gmd_identity_print(const gmd_identity *identity, char text[GMD_IDENTITY_TEXT]);

/* The line of a known list that covers this identity and no other: also names, behind a '-', the
 * parties of its kind that it does not have: progress.deadlock lock=mutex -lock2. */
void gmd_identity_known_line(const gmd_identity *identity, char text[GMD_IDENTITY_TEXT]);

/* Makes it well formed, whatever is in it: without a kind where that is none, and without parties
 * that the kind does not have. */
void gmd_identity_mend(gmd_identity *identity);

#endif
