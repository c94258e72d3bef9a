/* variants.h - KEY=VALUE[,VALUE...] of the command line: each combination of values is a variant.
 */
#ifndef GMD_CLI_VARIANTS_H
#define GMD_CLI_VARIANTS_H

#include "gmd_scenario.h"

#define CLI_PARAM_MAX   32
#define CLI_VARIANT_MAX 256 /* combinations of parameter values for one scenario */

typedef struct cli_values {
    const char *key;
    const char *values[CLI_VARIANT_MAX];
    size_t count;
} cli_values;

typedef struct cli_variants {
    cli_values lists[CLI_PARAM_MAX];
    size_t count;
} cli_variants;

/* Whether an argument is KEY=VALUE, and no file: a file whose name begins so is written ./KEY=...
 */
bool cli_is_parameter(const char *text);

/* Takes the texts apart in place; they must outlive the variants. A key twice, an empty value among
 * several and too many combinations are GMD_BAD_INPUT. KEY= alone is the empty text. */
gmd_status cli_variants_parse(cli_variants *variants, char *const *texts, size_t count,
                              gmd_error *error);

/* Those of the parameters that `scenario` declares. */
void cli_variants_declared(const cli_variants *all, const gmd_scenario *scenario,
                           cli_variants *declared);

size_t cli_variants_combinations(const cli_variants *variants);

/* Combination number `choice`: variants->count parameters, and as text "leak=true batch=2". */
void cli_variants_choose(const cli_variants *variants, size_t choice,
                         gmd_param params[CLI_PARAM_MAX], char *text, size_t text_size);

#endif
