/* selection.h - what the inputs of `gmd run` stand for: a scenario by its name or file, all of
 * them, those with a tag, or a trace. */
#ifndef GMD_CLI_SELECTION_H
#define GMD_CLI_SELECTION_H

#include "variants.h"

typedef struct cli_selected {
    char *name; /* of a scenario, or the path of a file */
    bool is_trace;
    bool is_of_group; /* by `all` or a tag: takes those parameters that it declares */
} cli_selected;

typedef struct cli_selection {
    cli_selected *items;
    size_t count, capacity;
} cli_selection;

/* "all" and "tag:NAME" become the scenarios of `directory` that they stand for, each once. Every
 * scenario is opened, so that one that cannot be loaded is reported before anything runs. *failed
 * is the input that an error is about. */
gmd_status cli_select(cli_selection *selection, const char *const *inputs, size_t count,
                      const char *directory, const char **failed, gmd_error *error);
/* GMD_BAD_INPUT where no scenario of the groups takes one of the parameters: with a name a scenario
 * itself says so, but a group would be silent. */
gmd_status cli_selection_check(const cli_selection *selection, const cli_variants *variants,
                               const char *directory, gmd_error *error);

void cli_selection_free(cli_selection *selection);

#endif
