/* result_file.h - the JSON of a result, for those who read of it what is in no report. */
#ifndef GMD_REPORTS_RESULT_FILE_H
#define GMD_REPORTS_RESULT_FILE_H

#include "gmd_result_file.h"

#include <jansson.h>

/* Valid as long as the result. */
const json_t *result_file_root(const gmd_result_file *result);

#endif
