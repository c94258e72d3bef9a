/* json_tree.h - a JSON text (RFC 8259) as a tree of values, each of which knows its place, so that
 * whoever reads the tree can say where a value is that it did not expect.
 *
 * Beyond the RFC's grammar these are refused: brackets more than GMD_JSON_TREE_DEPTH deep, more
 * than GMD_JSON_TREE_VALUES values, "\u0000" in a string (texts are C strings), and half a pair of
 * surrogates. Thread safety: a tree is only read once it is made. */
#ifndef GMD_REPORTS_JSON_TREE_H
#define GMD_REPORTS_JSON_TREE_H

#include "gmd_error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GMD_JSON_TREE_DEPTH  32
#define GMD_JSON_TREE_VALUES (1u << 26)

typedef enum gmd_json_type {
    GMD_JSON_NULL,
    GMD_JSON_BOOL,
    GMD_JSON_NUMBER,
    GMD_JSON_STRING,
    GMD_JSON_ARRAY,
    GMD_JSON_OBJECT,
} gmd_json_type;

typedef struct gmd_json_value {
    int type;         /* gmd_json_type */
    const char *key;  /* of a member of an object; else NULL */
    const char *text; /* STRING: decoded; NUMBER, BOOL, NULL: at its first character, not ended */
    uint32_t line, column; /* of its first character, from 1; a column is a byte */
    uint32_t next;         /* index of the next of the same parent; 0: it is the last */
    uint32_t count;        /* ARRAY, OBJECT: of values, the first of which follows at once */
} gmd_json_value;

typedef struct gmd_json_tree gmd_json_tree;

/* Takes `text` over in any case: malloc'd, with a zero after its `size` bytes. `name`, which must
 * outlive the tree, is that of the file in messages. On failure `*tree` is NULL, and the error says
 * "NAME:LINE:COLUMN: ...". */
gmd_status gmd_json_tree_parse(gmd_json_tree **tree, char *text, size_t size, const char *name,
                               gmd_error *error);
void gmd_json_tree_free(gmd_json_tree *tree);

const gmd_json_value *gmd_json_root(const gmd_json_tree *tree);
/* NULL: there is none; of any but an ARRAY or an OBJECT. */
const gmd_json_value *gmd_json_first(const gmd_json_tree *tree, const gmd_json_value *parent);
const gmd_json_value *gmd_json_next(const gmd_json_tree *tree, const gmd_json_value *value);
/* The first member with the key; `*is_twice` (NULL: not asked): there is another. NULL: none. */
const gmd_json_value *gmd_json_member(const gmd_json_tree *tree, const gmd_json_value *object,
                                      const char *key, bool *is_twice);

/* Of a NUMBER. False: it is no whole number, or none of that range; is infinite as a double. */
bool gmd_json_to_u64(const gmd_json_value *value, uint64_t *number);
bool gmd_json_to_double(const gmd_json_value *value, double *number);

/* "a number", "an object". */
const char *gmd_json_type_name(int type);

/* GMD_BAD_INPUT, with "NAME:LINE:COLUMN: " and the message. */
__attribute__((format(printf, 4, 5))) gmd_status gmd_json_fail_at(const gmd_json_tree *tree,
                                                                  const gmd_json_value *value,
                                                                  gmd_error *error,
                                                                  const char *format, ...);

#endif
