#include "recorded_conf.h"

#include "gmd_size.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

__attribute__((format(printf, 2, 3))) static void append(char conf[TRIAL_CONF], const char *format,
                                                         ...)
{
    size_t length = strlen(conf);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(conf + length, TRIAL_CONF - length, format, arguments);
    va_end(arguments);
}

static void append_roundup(char conf[TRIAL_CONF], const uint64_t *divisions)
{
    bool is_any = false;
    for (int i = 0; i < GMD_ROUNDUP_INTERVALS; i++) {
        is_any = is_any || divisions[i] > 1;
    }
    if (!is_any) {
        return;
    }
    append(conf, "%sroundup_power2_divisions:[", *conf ? "," : "");
    for (int i = 0; i < GMD_ROUNDUP_INTERVALS - 1; i++) {
        append(conf, "%d:%" PRIu64 ",", 1 << i, divisions[i]);
    }
    append(conf, ">:%" PRIu64 "]", divisions[GMD_ROUNDUP_INTERVALS - 1]);
}

void recorded_conf(const gmd_snapshot *snapshot, char conf[TRIAL_CONF])
{
    const gmd_snapshot_settings *s = &snapshot->settings;
    snprintf(conf, TRIAL_CONF, "%s", snapshot->conf ? snapshot->conf : "");
    if (*conf) {
        return;
    }
    if (s->is_expandable) {
        append(conf, "expandable_segments:True");
    }
    if (s->max_split_bytes && s->max_split_bytes < UINT64_MAX / 2) {
        append(conf, "%smax_split_size_mb:%" PRIu64, *conf ? "," : "",
               s->max_split_bytes / GMD_MIB);
    }
    if (s->gc_threshold > 0) {
        append(conf, "%sgarbage_collection_threshold:%g", *conf ? "," : "", s->gc_threshold);
    }
    append_roundup(conf, s->roundup_divisions);
}
