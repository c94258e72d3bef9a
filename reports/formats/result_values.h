/* result_values.h - values of a JSON result, taken by their keys, with a message and a place for
 * each that is not what it should be. jansson reads the text.
 *
 * The first failure stays: after it every function does nothing, so that a reader asks for all that
 * it wants and looks once. */
#ifndef GMD_REPORTS_RESULT_VALUES_H
#define GMD_REPORTS_RESULT_VALUES_H

#include "gmd_case_listing.h"
#include "gmd_error.h"
#include "gmd_outcome.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct result_reader {
    const json_t *root;
    const char *name; /* of the file */
    gmd_error *error;
    gmd_status status; /* of all until now */
} result_reader;

typedef enum result_type {
    RESULT_BOOL,
    RESULT_NUMBER,
    RESULT_STRING,
    RESULT_ARRAY,
    RESULT_OBJECT,
} result_type;

/* Keeps the first failure, GMD_BAD_INPUT: "NAME: scenarios[2].check: " and the message, with the
 * place of `at`, an object or an array in the tree. */
__attribute__((format(printf, 3, 4))) void result_refuse(result_reader *r, const json_t *at,
                                                         const char *format, ...);

/* The member of that type. NULL: there is none, or null, which is a failure where it is
 * `needed`; or after a failure. */
const json_t *result_member(result_reader *r, const json_t *object, const char *key,
                            result_type type, bool needed);

/* The string in `text`, cut after a character where it does not fit; NULL: nothing is done. */
void result_copy(result_reader *r, const json_t *string, char *text, size_t size);

/* A needed string, copied; the whole of it, in the tree ("": failed). */
void result_text(result_reader *r, const json_t *object, const char *key, char *text, size_t size);
const char *result_string(result_reader *r, const json_t *object, const char *key);

/* A needed whole number from 0 to `most`. */
uint64_t result_number(result_reader *r, const json_t *object, const char *key, uint64_t most);
/* A whole number, or null: GMD_STAT_UNKNOWN. */
uint64_t result_figure(result_reader *r, const json_t *object, const char *key);
bool result_bool(result_reader *r, const json_t *object, const char *key);
/* A needed number of seconds, from 0. */
double result_seconds(result_reader *r, const json_t *object, const char *key);

/* A needed figure of whatever unit, from 0 to RESULT_QUANTITY_MAX, with or without a fraction.
 */
#define RESULT_QUANTITY_MAX 0x1p63
double result_quantity(result_reader *r, const json_t *object, const char *key);

/* The index of a needed string among the words, of which the last is followed by NULL; 0: failed.
 */
unsigned result_word(result_reader *r, const json_t *object, const char *key,
                     const char *const *words);

/* A needed array of up to `most` values of the type. NULL, which has no values: failed. */
const json_t *result_array(result_reader *r, const json_t *object, const char *key,
                           result_type type, size_t most);

/* What each oracle said, of the needed key "oracles", into a list of GMD_ORACLE_MAX. */
void result_oracles(result_reader *r, const json_t *object, gmd_oracle_result *oracles,
                    uint32_t *count);

/* Keeps the failure that there is no host memory, if it is the first. */
void result_fail_memory(result_reader *r);

/* The optional key "case_lines" of a violation or finding. */
void result_listing(result_reader *r, const json_t *object, gmd_case_listing *listing);

/* "kind" and "parties" of a violation; an older gmd wrote none. */
void result_identity(result_reader *r, const json_t *object, const char *oracle,
                     gmd_identity *identity);

/* "request" of a violation, and "at_end", which an older gmd did not write. */
void result_moment(result_reader *r, const json_t *object, gmd_violation *violation);

/* "limit", which only what lies outside a contract has. */
void result_limit(result_reader *r, const json_t *object, gmd_violation *violation);

#endif
