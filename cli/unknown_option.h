/* unknown_option.h - options that a command does not have. */
#ifndef CLI_UNKNOWN_OPTION_H
#define CLI_UNKNOWN_OPTION_H

#include <argp.h>
#include <stdbool.h>

/* Prints a message with the options that are spelt like the first one that the command, argv[0],
 * does not have. Abbreviations that getopt_long takes, or calls ambiguous, are known. */
bool cli_tell_unknown_option(const struct argp *argp, int argc, char **argv);

#endif
