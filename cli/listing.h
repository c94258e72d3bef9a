/* listing.h - `gmd run --list`: what scenarios there are. */
#ifndef GMD_CLI_LISTING_H
#define GMD_CLI_LISTING_H

#include "gmd_scenario.h"

/* Prints a line for each scenario of `directory`: name, tags, summary. */
gmd_status cli_list_all(const char *directory, gmd_error *error);

/* Prints a scenario with its parameters. */
gmd_status cli_list_one(const char *name, const char *directory, gmd_error *error);

#endif
