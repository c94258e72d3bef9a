/* values.h - values of options, checked as argp reads them: a wrong one ends the program with a
 * message that names the option. */
#ifndef GMD_CLI_VALUES_H
#define GMD_CLI_VALUES_H

#include <argp.h>
#include <stddef.h>
#include <stdint.h>

/* A size in bytes, and a whole number, from `low` to `high`. */
void cli_need_size(struct argp_state *state, const char *option, const char *text, uint64_t low,
                   uint64_t high, uint64_t *out);
void cli_need_number(struct argp_state *state, const char *option, const char *text, uint64_t low,
                     uint64_t high, uint64_t *out);

/* A file for a report (NULL: none is asked for) that can be written and is none of the inputs.
 * Before anything runs: hours of work must not end in a report that cannot be written. */
void cli_need_writable(struct argp_state *state, const char *option, const char *path,
                       const char *const *inputs, size_t input_count);

#endif
