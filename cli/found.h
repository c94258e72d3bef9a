/* found.h - a finding is told when it is found: whatever comes later cannot lose it. */
#ifndef GMD_CLI_FOUND_H
#define GMD_CLI_FOUND_H

#include "options.h"

#include "gmd_board.h"

typedef struct cli_found {
    const cli_options *options;
    const char *command; /* "fuzz" */
    double start;        /* on gmd_clock_s */
} cli_found;

/* For gmd_findings.tell; the listener is a cli_found. A line on standard output, on standard error
 * where a report goes there; with --quiet none. That there will be no file of a case is an error,
 * and told in any case. */
void cli_tell_found(void *listener, const gmd_finding *finding);

#endif
