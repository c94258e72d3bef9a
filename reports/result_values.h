/* result_values.h - values of a JSON result, taken by their keys, with a message and a place for
 * each that is not what it should be.
 *
 * The first failure stays: after it every function does nothing, so that a reader asks for all that
 * it wants and looks once. */
#ifndef GMD_REPORTS_RESULT_VALUES_H
#define GMD_REPORTS_RESULT_VALUES_H

#include "json_tree.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gmd_result_reader {
    const gmd_json_tree *tree;
    gmd_error *error;
    gmd_status status; /* of all until now */
} gmd_result_reader;

/* Keeps the first failure: GMD_BAD_INPUT at the value. */
__attribute__((format(printf, 3, 4))) void
gmd_result_refuse(gmd_result_reader *r, const gmd_json_value *at, const char *format, ...);

/* The member of that type. NULL: there is none, or null, which is a failure where it is
 * `needed`; or after a failure. */
const gmd_json_value *gmd_result_member(gmd_result_reader *r, const gmd_json_value *object,
                                        const char *key, gmd_json_type type, bool needed);

/* The value's text in `text`, cut after a character where it does not fit. */
void gmd_result_copy(gmd_result_reader *r, const gmd_json_value *value, char *text, size_t size);

/* A needed string, copied; the whole of it, in the tree ("": failed). */
void gmd_result_text(gmd_result_reader *r, const gmd_json_value *object, const char *key,
                     char *text, size_t size);
const char *gmd_result_string(gmd_result_reader *r, const gmd_json_value *object, const char *key);

/* A needed whole number from 0 to `most`. */
uint64_t gmd_result_number(gmd_result_reader *r, const gmd_json_value *object, const char *key,
                           uint64_t most);
/* A whole number, or null: GMD_STAT_UNKNOWN. */
uint64_t gmd_result_figure(gmd_result_reader *r, const gmd_json_value *object, const char *key);
bool gmd_result_bool(gmd_result_reader *r, const gmd_json_value *object, const char *key);
/* A needed number of seconds, from 0. */
double gmd_result_seconds(gmd_result_reader *r, const gmd_json_value *object, const char *key);

/* The index of a needed string among the words, of which the last is followed by NULL; 0: failed.
 */
int gmd_result_word(gmd_result_reader *r, const gmd_json_value *object, const char *key,
                    const char *const *words);

/* A needed array of up to `most` values of the type; its first one. NULL: it is empty, or failed.
 */
const gmd_json_value *gmd_result_array(gmd_result_reader *r, const gmd_json_value *object,
                                       const char *key, gmd_json_type type, uint32_t most);

#endif
