/* gmd_result_json.h - the JSON of a result as a tree, for those who read of it what is in no
 * report. */
#ifndef GMD_RESULT_JSON_H
#define GMD_RESULT_JSON_H

#include "gmd_error.h"

#include <jansson.h>
#include <stddef.h>

/* GMD_BAD_INPUT: it is no JSON, "NAME:LINE:COLUMN: ...". */
gmd_status gmd_result_json_load(json_t **root, const char *text, size_t size, const char *name,
                                gmd_error *error);

#endif
