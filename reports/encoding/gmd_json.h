/* gmd_json.h - writes JSON as it goes, without building a tree.
 *
 * The output is made to be diffed: two spaces of indentation, keys in the order of the calls,
 * integers exact, doubles with six decimals. Inside an object each call takes a key, inside an
 * array and at the top `key` is NULL; wrong nesting is a bug of the caller and fails an assertion.
 * Write errors stay in ferror() of the stream. */
#ifndef GMD_JSON_H
#define GMD_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define GMD_JSON_DEPTH_MAX 16

typedef struct gmd_json {
    FILE *out;
    int depth; /* of open objects and arrays */
    struct {
        bool is_object;
        bool one_line; /* its members, and theirs, stay on one line */
        bool has_members;
    } levels[GMD_JSON_DEPTH_MAX];
} gmd_json;

void gmd_json_start(gmd_json *json, FILE *out);
/* Every object and array must be closed. Ends the text with a newline. */
void gmd_json_finish(gmd_json *json);

void gmd_json_object(gmd_json *json, const char *key);
void gmd_json_array(gmd_json *json, const char *key);
/* An object on one line, for the rows of a table. */
void gmd_json_row(gmd_json *json, const char *key);
/* Closes the innermost object or array. */
void gmd_json_end(gmd_json *json);

/* Control characters and quotes are escaped; each byte that is not part of valid UTF-8 is written
 * as U+FFFD. NULL is written as null. */
void gmd_json_string(gmd_json *json, const char *key, const char *value);
void gmd_json_u64(gmd_json *json, const char *key, uint64_t value);
void gmd_json_i64(gmd_json *json, const char *key, int64_t value);
/* JSON has no word for an infinity or a NaN: they become null. */
void gmd_json_double(gmd_json *json, const char *key, double value);
/* With as many digits as it takes to read the same number again, six decimals at least. */
void gmd_json_exact(gmd_json *json, const char *key, double value);
void gmd_json_bool(gmd_json *json, const char *key, bool value);
void gmd_json_null(gmd_json *json, const char *key);

#endif
