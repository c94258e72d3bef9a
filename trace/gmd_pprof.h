/* gmd_pprof.h - the numbers of the fields of pprof's profile.proto, for who writes one and who
 * reads one (https://github.com/google/pprof/blob/main/proto/profile.proto). */
#ifndef GMD_PPROF_H
#define GMD_PPROF_H

enum {
    PPROF_SAMPLE_TYPE = 1,
    PPROF_SAMPLE = 2,
    PPROF_LOCATION = 4,
    PPROF_FUNCTION = 5,
    PPROF_STRING_TABLE = 6,
    PPROF_DEFAULT_SAMPLE_TYPE = 14,
    PPROF_TYPE_TYPE = 1,
    PPROF_TYPE_UNIT = 2,
    PPROF_SAMPLE_LOCATION_ID = 1,
    PPROF_SAMPLE_VALUE = 2,
    PPROF_SAMPLE_LABEL = 3,
    PPROF_LABEL_KEY = 1,
    PPROF_LABEL_TEXT = 2,
    PPROF_LABEL_NUMBER = 3,
    PPROF_LOCATION_ID = 1,
    PPROF_LOCATION_LINE = 4,
    PPROF_LINE_FUNCTION_ID = 1,
    PPROF_LINE_LINE = 2,
    PPROF_FUNCTION_ID = 1,
    PPROF_FUNCTION_NAME = 2,
    PPROF_FUNCTION_FILE = 4,
};

#define GMD_PPROF_NO_FRAMES "(no frames were recorded)" /* what gmd writes for such a stack */

#endif
