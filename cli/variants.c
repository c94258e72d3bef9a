#include "variants.h"

#include <stdio.h>
#include <string.h>

bool cli_is_parameter(const char *text)
{
    static const char name[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    size_t length = strspn(text, name);
    return length > 0 && text[length] == '=';
}

/* Takes `text` apart in place. */
static gmd_status split_values(char *text, cli_values *list, gmd_error *error)
{
    char *equals = strchr(text, '=');
    *equals = '\0';
    list->key = text;
    list->count = 0;
    for (char *value = equals + 1; value;) {
        char *comma = strchr(value, ',');
        if (comma) {
            *comma++ = '\0';
        }
        bool is_one_of_many = list->count > 0 || comma;
        if ((!*value && is_one_of_many) || list->count == CLI_VARIANT_MAX) {
            return gmd_fail(
                error, GMD_BAD_INPUT,
                "parameter '%.80s': expected KEY=VALUE[,VALUE...] with 1 to %d values, none "
                "of them empty",
                text, CLI_VARIANT_MAX);
        }
        list->values[list->count++] = value;
        value = comma;
    }
    return GMD_OK;
}

gmd_status cli_variants_parse(cli_variants *variants, char *const *texts, size_t count,
                              gmd_error *error)
{
    variants->count = 0;
    for (size_t i = 0; i < count; i++) {
        cli_values *list = &variants->lists[i];
        gmd_status status = split_values(texts[i], list, error);
        if (status != GMD_OK) {
            return status;
        }
        for (size_t k = 0; k < i; k++) {
            if (strcmp(variants->lists[k].key, list->key) == 0) {
                return gmd_fail(error, GMD_BAD_INPUT, "parameter '%.80s' is given twice",
                                list->key);
            }
        }
        variants->count++;
        if (cli_variants_combinations(variants) > CLI_VARIANT_MAX) {
            return gmd_fail(error, GMD_BAD_INPUT,
                            "the parameters' values make more than %d combinations",
                            CLI_VARIANT_MAX);
        }
    }
    return GMD_OK;
}

void cli_variants_declared(const cli_variants *all, const gmd_scenario *scenario,
                           cli_variants *declared)
{
    declared->count = 0;
    for (size_t i = 0; i < all->count; i++) {
        if (gmd_scenario_declares(scenario, all->lists[i].key)) {
            declared->lists[declared->count++] = all->lists[i];
        }
    }
}

size_t cli_variants_combinations(const cli_variants *variants)
{
    size_t combinations = 1;
    for (size_t i = 0; i < variants->count; i++) {
        combinations *= variants->lists[i].count;
    }
    return combinations;
}

/* In mixed radix over all lists. */
void cli_variants_choose(const cli_variants *variants, size_t choice,
                         gmd_param params[CLI_PARAM_MAX], char *text, size_t text_size)
{
    text[0] = '\0';
    for (size_t i = 0; i < variants->count; i++) {
        const cli_values *list = &variants->lists[i];
        size_t values = list->count ? list->count : 1; /* never 0: split_values sees to it */
        params[i] = (gmd_param){list->key, list->values[choice % values]};
        choice /= values;
        size_t at = strlen(text);
        snprintf(text + at, text_size - at, "%s%s=%s", i ? " " : "", params[i].key,
                 params[i].value);
    }
}
