#include "values.h"

#include "gmd_size.h"
#include "writable.h"

#include <inttypes.h>

void cli_need_size(struct argp_state *state, const char *option, const char *text, uint64_t low,
                   uint64_t high, uint64_t *out)
{
    if (!gmd_parse_size(text, out) || *out < low || *out > high) {
        char least[24], most[24];
        argp_error(state, "%s %s: expected a size from %s to %s, such as 2560MiB", option, text,
                   gmd_format_exact_size(low, least), gmd_format_exact_size(high, most));
    }
}

void cli_need_number(struct argp_state *state, const char *option, const char *text, uint64_t low,
                     uint64_t high, uint64_t *out)
{
    if (!gmd_parse_u64(text, out) || *out < low || *out > high) {
        argp_error(state, "%s %s: expected a whole number from %" PRIu64 " to %" PRIu64, option,
                   text, low, high);
    }
}

void cli_need_writable(struct argp_state *state, const char *option, const char *path,
                       const char *const *inputs, size_t input_count)
{
    gmd_error error = {""};
    for (size_t i = 0; path && i < input_count; i++) {
        if (cli_is_same_file(path, inputs[i])) {
            argp_error(state, "%s %s: is the same file as a snapshot", option, path);
        }
    }
    if (path && cli_probe_file(path, &error) != GMD_OK) {
        argp_error(state, "%s %s", option, error.text);
    }
}
