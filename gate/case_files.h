/* case_files.h - the .gmd files that ship with gmd, in folders of lib/gmd/cases. */
#ifndef GMD_GATE_CASE_FILES_H
#define GMD_GATE_CASE_FILES_H

#include "gmd_trace.h"

/* Folders whose files are for other parts than "cases". */
#define ROUND_CASES "rounds/"
#define SWEEP_CASES "sweep/"

/* Calls `visit` with each case's name ("torch-2.11/spurious_oom"), sorted. */
gmd_status case_files_each(const char *lib_directory,
                           void (*visit)(void *context, const char *root, const char *name),
                           void *context, gmd_error *error);

/* Reads a case. What it `expect`s is the answer of the allocator that it was written for. That is
 * dropped, so that only the oracles judge: another policy is no defect. */
gmd_status case_file_read(gmd_trace *trace, const char *path, gmd_error *error);
gmd_status case_file_read_named(gmd_trace *trace, const char *root, const char *name,
                                gmd_error *error);

#endif
