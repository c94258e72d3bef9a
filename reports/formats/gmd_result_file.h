/* gmd_result_file.h - what `gmd run`, `replay`, `fuzz` or `gate` wrote with --json, as the report
 * that it was made of: the other writers make of it what they made of the run.
 *
 * What only JSON and the terminal tell (inspections) and what comes of a run's events (timelines,
 * journals) is not there. Texts that a writer made longer (U+FFFD for a byte) and that no longer
 * fit are cut after a character. Thread safety: one result, one thread. */
#ifndef GMD_RESULT_FILE_H
#define GMD_RESULT_FILE_H

#include "gmd_error.h"
#include "gmd_report.h"

#include <stddef.h>

typedef struct gmd_result_file gmd_result_file;

/* `name` is that of the file in messages. GMD_BAD_INPUT: it is no JSON ("NAME:LINE:COLUMN: ..."),
 * or not such a result ("NAME: scenarios[2].check: ..."); numbers of 2^63 and more are not read. On
 * failure `*result` is NULL. */
gmd_status gmd_result_file_parse(gmd_result_file **result, const char *text, size_t size,
                                 const char *name, gmd_error *error);
void gmd_result_file_free(gmd_result_file *result);

/* Without rules; valid as long as the result. */
gmd_report gmd_result_file_report(const gmd_result_file *result);

#endif
