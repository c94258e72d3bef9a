/* page_inputs.h - gmd report INPUT... -o FILE.html: recordings, cases, scenarios and results on one
 * page. */
#ifndef GMD_CLI_PAGE_INPUTS_H
#define GMD_CLI_PAGE_INPUTS_H

#include "options.h"

#include <stddef.h>

enum { CLI_PAGE_INPUTS_MAX = 64 };

typedef struct cli_page_inputs {
    const char *const *items;
    size_t count;
    bool (*is_recording)(const char *input); /* else it is run, if it is no JSON result */
    char *const *params;                     /* of those that are run */
    size_t param_count;
} cli_page_inputs;

/* Writes the page; the exit status is that of the worst input. */
int cli_page_of_inputs(const cli_options *options, const cli_page_inputs *inputs, const char *path);

#endif
