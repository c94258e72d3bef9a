/* result_values.h - values of a JSON result, taken by their keys, with a message and a place for
 * each that is not what it should be. jansson reads the text.
 *
 * The first failure stays: after it every function does nothing, so that a reader asks for all that
 * it wants and looks once. */
#ifndef GMD_REPORTS_RESULT_VALUES_H
#define GMD_REPORTS_RESULT_VALUES_H

#include "gmd_error.h"
#include "gmd_outcome.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gmd_result_reader {
    const json_t *root;
    const char *name; /* of the file */
    gmd_error *error;
    gmd_status status; /* of all until now */
} gmd_result_reader;

typedef enum gmd_result_type {
    GMD_RESULT_BOOL,
    GMD_RESULT_NUMBER,
    GMD_RESULT_STRING,
    GMD_RESULT_ARRAY,
    GMD_RESULT_OBJECT,
} gmd_result_type;

/* Keeps the first failure, GMD_BAD_INPUT: "NAME: scenarios[2].check: " and the message, with the
 * place of `at`, an object or an array in the tree. */
__attribute__((format(printf, 3, 4))) void gmd_result_refuse(gmd_result_reader *r, const json_t *at,
                                                             const char *format, ...);

/* The member of that type. NULL: there is none, or null, which is a failure where it is
 * `needed`; or after a failure. */
const json_t *gmd_result_member(gmd_result_reader *r, const json_t *object, const char *key,
                                gmd_result_type type, bool needed);

/* The string in `text`, cut after a character where it does not fit; NULL: nothing is done. */
void gmd_result_copy(gmd_result_reader *r, const json_t *string, char *text, size_t size);

/* A needed string, copied; the whole of it, in the tree ("": failed). */
void gmd_result_text(gmd_result_reader *r, const json_t *object, const char *key, char *text,
                     size_t size);
const char *gmd_result_string(gmd_result_reader *r, const json_t *object, const char *key);

/* A needed whole number from 0 to `most`. */
uint64_t gmd_result_number(gmd_result_reader *r, const json_t *object, const char *key,
                           uint64_t most);
/* A whole number, or null: GMD_STAT_UNKNOWN. */
uint64_t gmd_result_figure(gmd_result_reader *r, const json_t *object, const char *key);
bool gmd_result_bool(gmd_result_reader *r, const json_t *object, const char *key);
/* A needed number of seconds, from 0. */
double gmd_result_seconds(gmd_result_reader *r, const json_t *object, const char *key);

/* A needed figure of whatever unit, from 0 to GMD_RESULT_QUANTITY_MAX, with or without a fraction.
 */
#define GMD_RESULT_QUANTITY_MAX 0x1p63
double gmd_result_quantity(gmd_result_reader *r, const json_t *object, const char *key);

/* The index of a needed string among the words, of which the last is followed by NULL; 0: failed.
 */
int gmd_result_word(gmd_result_reader *r, const json_t *object, const char *key,
                    const char *const *words);

/* A needed array of up to `most` values of the type. NULL, which has no values: failed. */
const json_t *gmd_result_array(gmd_result_reader *r, const json_t *object, const char *key,
                               gmd_result_type type, size_t most);

/* What each oracle said, of the needed key "oracles", into a list of GMD_ORACLE_MAX. */
void gmd_result_oracles(gmd_result_reader *r, const json_t *object, gmd_oracle_result *oracles,
                        uint32_t *count);

/* Keeps the failure that there is no host memory, if it is the first. */
void gmd_result_fail_memory(gmd_result_reader *r);

/* "kind" and "parties" of a violation; an older gmd wrote none. */
void gmd_result_identity(gmd_result_reader *r, const json_t *object, gmd_identity *identity);

#endif
