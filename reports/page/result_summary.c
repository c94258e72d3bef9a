#include "result_summary.h"

#include "gmd_size.h"
#include "gmd_utf8.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

enum { SETTING_TEXT = 300 };

static int64_t number_of(const json_t *row, const char *key)
{
    return json_integer_value(json_object_get(row, key));
}

static const char *size_of(const json_t *row, const char *key, char text[24])
{
    int64_t bytes = number_of(row, key);
    return gmd_format_size(bytes > 0 ? (uint64_t)bytes : 0, text);
}

/* --- advise ---------------------------------------------------------------------------------- */

static const char *setting_text(const json_t *setting, char text[SETTING_TEXT])
{
    char conf[SETTING_TEXT - 40];
    const char *given = json_string_value(json_object_get(setting, "conf"));
    gmd_utf8_copy_line(conf, sizeof conf, given ? given : "");
    snprintf(text, SETTING_TEXT, *conf ? "PYTORCH_CUDA_ALLOC_CONF=%s" : "PyTorch's defaults%s",
             conf);
    return text;
}

static const json_t *recorded_setting(const json_t *settings)
{
    for (size_t i = 0; i < json_array_size(settings); i++) {
        const json_t *setting = json_array_get(settings, i);
        if (json_is_true(json_object_get(setting, "recorded"))) {
            return setting;
        }
    }
    return NULL;
}

/* "; the recorded settings need 512.0 MiB (-8.2 %)" */
static void put_gain(const json_t *best, const json_t *now, char *text, size_t size)
{
    char bytes[24];
    double needed = (double)number_of(best, "smallest_capacity"),
           before = (double)number_of(now, "smallest_capacity");
    *text = '\0';
    if (now && now != best && needed > 0 && before > 0) {
        snprintf(text, size, "; the recorded settings need %s (%+.1f %%)",
                 size_of(now, "smallest_capacity", bytes), (needed - before) / before * 100);
    }
}

/* The best setting is the first, and the recorded one where no other is worth a change. */
void summary_of_advice(const json_t *root, char *text, size_t size)
{
    const json_t *settings = json_object_get(root, "settings");
    const json_t *best = json_array_get(settings, 0), *now = recorded_setting(settings);
    char setting[SETTING_TEXT], needed[24], gain[120];
    bool is_capacity_known = number_of(best, "smallest_capacity") > 0;
    size_of(best, "smallest_capacity", needed);
    setting_text(best, setting);
    put_gain(best, now, gain, sizeof gain);
    if (!best) {
        snprintf(text, size, "No settings were tried");
    } else if (!json_is_true(json_object_get(best, "fits"))) {
        snprintf(text, size,
                 is_capacity_known ? "It does not fit; it would with %s, in %s"
                                   : "It does not fit; most requests are served with %s",
                 setting, needed);
    } else if (best == now && json_array_size(settings) > 1) {
        snprintf(text, size, "No setting is better than the recorded ones, %s, which need %s",
                 setting, needed);
    } else {
        snprintf(text, size, is_capacity_known ? "Best: %s, which needs %s%s" : "Best: %s", setting,
                 needed, gain);
    }
}

/* --- diff, bench, diagnose -------------------------------------------------------------------- */

void summary_of_diff(const json_t *root, char *text, size_t size)
{
    char before[24], after[24], change[24];
    int64_t bytes = number_of(root, "change");
    const char *moment = json_string_value(json_object_get(root, "moment"));
    gmd_format_size(bytes < 0 ? (uint64_t)0 - (uint64_t)bytes : (uint64_t)bytes, change);
    snprintf(text, size, "Allocated at the %.20s: %s before, %s after (%s%s)",
             moment ? moment : "peak", size_of(root, "before", before),
             size_of(root, "after", after), bytes < 0 ? "-" : "+", change);
}

static void put_count(const json_t *rows, const char *what, char *text, size_t size)
{
    size_t count = json_array_size(rows);
    snprintf(text, size, "%zu %s%s", count, what, count == 1 ? "" : "s");
}

void summary_of_bench(const json_t *root, char *text, size_t size)
{
    put_count(json_object_get(root, "results"), "measurement", text, size);
}

void summary_of_diagnosis(const json_t *root, char *text, size_t size)
{
    put_count(json_object_get(root, "findings"), "finding", text, size);
}
