#include "gmd_recorded_settings.h"

#include "gmd_size.h"

#include <stdlib.h>
#include <string.h>

#define SMALL_REQUESTS GMD_MIB /* and below */

/* The value of "NAME:VALUE" in a string of settings, as a number; `absent` where it is not there.
 */
static double number_in(const char *conf, const char *name, double absent)
{
    size_t length = strlen(name);
    for (const char *at = conf; at && (at = strstr(at, name)); at += length) {
        bool begins = at == conf || at[-1] == ',' || at[-1] == ' ';
        if (begins && at[length] == ':') {
            char *end;
            double value = strtod(at + length + 1, &end);
            return end > at + length + 1 ? value : absent;
        }
    }
    return absent;
}

static uint64_t bytes_in(const char *conf, const char *name, uint64_t absent)
{
    double mib = number_in(conf, name, -1);
    return mib > 0 && mib < 1e12 ? (uint64_t)mib * GMD_MIB : absent;
}

gmd_recorded_settings gmd_recorded_settings_of(const gmd_snapshot *snapshot)
{
    const gmd_snapshot_settings *values = &snapshot->settings;
    const char *conf = snapshot->conf;
    gmd_recorded_settings s = {
        .max_split_bytes = values->max_split_bytes,
        .max_non_split_rounding_bytes = bytes_in(conf, "max_non_split_rounding_mb", 20 * GMD_MIB),
        .large_segment_bytes = bytes_in(conf, "large_segment_size_mb", 20 * GMD_MIB),
        .gc_threshold = values->gc_threshold,
        .is_expandable =
            values->is_expandable || (conf && strstr(conf, "expandable_segments:True")),
        .is_exact = snapshot->recorder != GMD_RECORDER_PYTORCH,
    };
    if (!s.max_split_bytes) {
        s.max_split_bytes = bytes_in(conf, "max_split_size_mb", UINT64_MAX);
    }
    if (s.gc_threshold <= 0) {
        s.gc_threshold = number_in(conf, "garbage_collection_threshold", 0);
    }
    memcpy(s.roundup_divisions, values->roundup_divisions, sizeof s.roundup_divisions);
    return s;
}

static uint64_t round_up(uint64_t size, uint64_t unit)
{
    return size > UINT64_MAX - (unit - 1) ? UINT64_MAX / unit * unit
                                          : (size + unit - 1) / unit * unit;
}

static unsigned log2_of(uint64_t value)
{
    return 63 - (unsigned)__builtin_clzll(value);
}

/* Between two powers of two a request is rounded up to the next of so many equal steps. */
static uint64_t round_to_step(uint64_t size, uint64_t divisions)
{
    uint64_t step = ((uint64_t)1 << log2_of(size)) >> log2_of(divisions);
    return step ? round_up(size, step) : size;
}

uint64_t gmd_recorded_block_size(const gmd_recorded_settings *s, uint64_t requested)
{
    if (s->is_exact) {
        return requested;
    }
    if (requested < GMD_RECORDED_BLOCK_UNIT) {
        return GMD_RECORDED_BLOCK_UNIT;
    }
    unsigned log = log2_of(requested);
    unsigned interval = log > 20 ? log - 20 : 0;
    interval = interval < GMD_ROUNDUP_INTERVALS ? interval : GMD_ROUNDUP_INTERVALS - 1;
    uint64_t divisions = s->roundup_divisions[interval];
    bool is_stepped = divisions > 1 && (requested - 1) / divisions >= GMD_RECORDED_BLOCK_UNIT;
    return is_stepped ? round_to_step(requested, divisions)
                      : round_up(requested, GMD_RECORDED_BLOCK_UNIT);
}

bool gmd_recorded_is_small(const gmd_recorded_settings *s, uint64_t requested)
{
    return gmd_recorded_block_size(s, requested) <= SMALL_REQUESTS;
}

uint64_t gmd_recorded_segment_size(const gmd_recorded_settings *s, uint64_t requested)
{
    uint64_t size = gmd_recorded_block_size(s, requested);
    if (size <= SMALL_REQUESTS) {
        return 2 * GMD_MIB;
    }
    return size < 10 * GMD_MIB ? s->large_segment_bytes : round_up(size, 2 * GMD_MIB);
}

bool gmd_recorded_serves(const gmd_recorded_settings *s, uint64_t segment_bytes, uint64_t requested)
{
    uint64_t size = gmd_recorded_block_size(s, requested);
    if (size < s->max_split_bytes) {
        return segment_bytes >= size && segment_bytes < s->max_split_bytes;
    }
    return segment_bytes >= size && segment_bytes - size < s->max_non_split_rounding_bytes;
}
