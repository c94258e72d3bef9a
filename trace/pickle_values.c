#include "pickle_values.h"

const char *pickle_kind_name(pickle_kind kind)
{
    static const char *const names[] = {
        [PICKLE_NOTHING] = "nothing",
        [PICKLE_NONE] = "None",
        [PICKLE_BOOL] = "a boolean",
        [PICKLE_NATURAL] = "an integer",
        [PICKLE_NEGATIVE] = "a negative integer",
        [PICKLE_FLOAT] = "a float",
        [PICKLE_STRING] = "a string",
        [PICKLE_BYTES] = "bytes",
        [PICKLE_LIST] = "a list",
        [PICKLE_TUPLE] = "a tuple",
        [PICKLE_SET] = "a set",
        [PICKLE_DICT] = "a dict",
        [PICKLE_RECORD] = "another record",
        [PICKLE_NOTED] = "another record's list",
    };
    return names[kind];
}
