/* listing.h - `gmd run --list` and `--list-oracles`: what scenarios and verdicts there are. */
#ifndef GMD_CLI_LISTING_H
#define GMD_CLI_LISTING_H

#include "gmd_scenario.h"

/* Prints a line for each scenario of `directory`: name, tags, summary. */
gmd_status cli_list_all(const char *directory, gmd_error *error);

/* Prints a scenario with its parameters. */
gmd_status cli_list_one(const char *name, const char *directory, gmd_error *error);

/* Prints what each oracle checks, and below it the kinds of its verdicts. */
void cli_list_oracles(void);

#endif
