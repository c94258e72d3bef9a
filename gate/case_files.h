/* case_files.h - the .gmd files that ship with gmd, in folders of lib/gmd/cases. */
#ifndef GMD_GATE_CASE_FILES_H
#define GMD_GATE_CASE_FILES_H

#include "gate.h"

/* Folders whose files are for other parts than "cases". */
#define GMD_GATE_ROUNDS "rounds/"
#define GMD_GATE_SWEEPS "sweep/"

/* Calls `visit` with the gate and each case's name ("torch-2.11/spurious_oom"), sorted. */
gmd_status gmd_gate_each_case(gmd_gate *gate,
                              void (*visit)(void *context, const char *root, const char *name),
                              gmd_error *error);

/* Reads a case. What it `expect`s is the answer of the allocator that it was written for; here only
 * the oracles judge, so that another policy is no defect. */
gmd_status gmd_gate_read_case(gmd_trace *trace, const char *path, gmd_error *error);
gmd_status gmd_gate_read_named(gmd_trace *trace, const char *root, const char *name,
                               gmd_error *error);

#endif
