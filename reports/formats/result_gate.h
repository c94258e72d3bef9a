/* result_gate.h - the key "gate" of a JSON result, read back. */
#ifndef GMD_REPORTS_RESULT_GATE_H
#define GMD_REPORTS_RESULT_GATE_H

#include "result_values.h"

#include "gmd_gate_result.h"

/* Reads an object with the key "gate". What follows from the rest (sums, categories, commands) is
 * made anew, not read. Names of parts are those of the tree, which has to outlive `gate`; it is to
 * be freed in any case. */
void result_gate(result_reader *r, const json_t *root, gmd_gate_result *gate);

#endif
