/* gmd_compared_result.h - what `gmd run`, `replay` or `diagnose` wrote with --json, as one side of
 * a diff. */
#ifndef GMD_COMPARED_RESULT_H
#define GMD_COMPARED_RESULT_H

#include "gmd_diff_input.h"

/* Lines and categories as far as the JSON has them, and figures of each run. `name` is that of the
 * file in messages, and stays as long as the input. GMD_BAD_INPUT: it is no JSON, or none of these;
 * the input is then empty. */
gmd_status gmd_compared_result_parse(gmd_diff_input *input, const char *text, size_t size,
                                     const char *name, bool is_of_end, gmd_error *error);

#endif
