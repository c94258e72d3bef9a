/* fuzz_exhaustive.h - gmd fuzz --exhaustive DEPTH. */
#ifndef GMD_CLI_FUZZ_EXHAUSTIVE_H
#define GMD_CLI_FUZZ_EXHAUSTIVE_H

#include "course.h"
#include "results.h"

/* The value of --exhaustive: 1 to 8. */
bool cli_parse_depth(const char *text, uint32_t *depth);

typedef struct cli_exhaustive_scope {
    uint32_t depth;
    bool with_pools, with_captures;
    double seconds; /* 0: until it is done */
} cli_exhaustive_scope;

/* `course`, empty at first, has how it went, and `results` borrow it. */
gmd_status cli_exhaustive(const cli_options *given, const cli_exhaustive_scope *scope,
                          cli_course *course, cli_results *results, gmd_error *error);

#endif
