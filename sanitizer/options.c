#define _GNU_SOURCE
#include "options.h"

#include "gmd_size.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TIERS "cheap, full, unmap"
#define KEYS                                                                                       \
    "zone, quarantine, quarantine_blocks, interval, fill, frees, fresh, reads, order, unmap, "     \
    "launches, on_finding, most_reports, report"

static const sanitizer_options cheap = {.zone_bytes = 512,
                                        .quarantine_bytes = 1 * GMD_GIB,
                                        .quarantine_blocks = 4096,
                                        .interval_ns = UINT64_C(10000000000),
                                        .is_striped = true,
                                        .gathers = true,
                                        .unmap_bytes = UNMAP_NEVER,
                                        .most_reports = 100};

static const sanitizer_options full = {.zone_bytes = 1 * GMD_MIB,
                                       .quarantine_bytes = 8 * GMD_GIB,
                                       .quarantine_blocks = 65536,
                                       .interval_ns = UINT64_C(1000000000),
                                       .fills_fresh = true,
                                       .watches_reads = true,
                                       .watches_order = true,
                                       .unmap_bytes = UNMAP_NEVER,
                                       .most_reports = 100};

static gmd_status take_tier(sanitizer_options *o, const char *tier, gmd_error *error)
{
    if (strcmp(tier, "cheap") == 0 || strcmp(tier, "1") == 0) {
        *o = cheap;
    } else if (strcmp(tier, "full") == 0) {
        *o = full;
    } else if (strcmp(tier, "unmap") == 0) { /* all of "full", for every block */
        *o = full;
        o->unmap_bytes = 1;
        o->waits_for_launches = true;
    } else {
        return gmd_fail(error, GMD_BAD_INPUT, "sanitizer: there is no tier '%s'; tiers are " TIERS,
                        tier);
    }
    snprintf(o->report, sizeof o->report, "gmd-sanitizer-%ld.jsonl", (long)getpid());
    return GMD_OK;
}

static gmd_status refuse(const char *key, const char *value, const char *wanted, gmd_error *error)
{
    return gmd_fail(error, GMD_BAD_INPUT, "sanitizer: %s is '%s'; it is %s", key, value, wanted);
}

static bool parse_count(const char *value, uint32_t *count)
{
    uint64_t number = 0;
    if (!gmd_parse_u64(value, &number) || number > UINT32_MAX) {
        return false;
    }
    *count = (uint32_t)number;
    return true;
}

static bool parse_choice(const char *value, const char *off, const char *on, bool *is_on)
{
    *is_on = strcmp(value, on) == 0;
    return *is_on || strcmp(value, off) == 0;
}

/* "never", or the size from which on blocks are unmapped. */
static bool parse_unmap(const char *value, uint64_t *bytes)
{
    bool is_never = strcmp(value, "never") == 0;
    if (is_never) {
        *bytes = UNMAP_NEVER;
    }
    return is_never || gmd_parse_size(value, bytes);
}

static gmd_status take_key(sanitizer_options *o, const char *key, const char *value,
                           gmd_error *error)
{
    const char *wanted = NULL;
    if (strcmp(key, "zone") == 0) {
        wanted =
            gmd_parse_size(value, &o->zone_bytes) && o->zone_bytes >= 8 && o->zone_bytes <= GMD_GIB
                ? NULL
                : "a size of 8 B to 1GiB (512, 64KiB)";
    } else if (strcmp(key, "quarantine") == 0) {
        wanted = gmd_parse_size(value, &o->quarantine_bytes) ? NULL : "a size (512MiB, 4GiB)";
    } else if (strcmp(key, "quarantine_blocks") == 0) {
        wanted = parse_count(value, &o->quarantine_blocks) ? NULL : "a number";
    } else if (strcmp(key, "interval") == 0) {
        wanted = gmd_parse_duration(value, &o->interval_ns) ? NULL : "a duration (500ms, 10s)";
    } else if (strcmp(key, "fill") == 0) {
        wanted =
            parse_choice(value, "whole", "striped", &o->is_striped) ? NULL : "whole or striped";
    } else if (strcmp(key, "frees") == 0) {
        wanted =
            parse_choice(value, "at_once", "gathered", &o->gathers) ? NULL : "at_once or gathered";
    } else if (strcmp(key, "fresh") == 0) {
        wanted = parse_choice(value, "as_is", "nan", &o->fills_fresh) ? NULL : "as_is or nan";
    } else if (strcmp(key, "reads") == 0) {
        wanted = parse_choice(value, "unseen", "watched", &o->watches_reads) ? NULL
                                                                             : "unseen or watched";
    } else if (strcmp(key, "order") == 0) {
        wanted = parse_choice(value, "unseen", "watched", &o->watches_order) ? NULL
                                                                             : "unseen or watched";
    } else if (strcmp(key, "unmap") == 0) {
        wanted = parse_unmap(value, &o->unmap_bytes) ? NULL : "never or a size (1, 1MiB)";
    } else if (strcmp(key, "launches") == 0) {
        wanted = parse_choice(value, "queued", "waited_for", &o->waits_for_launches)
                     ? NULL
                     : "queued or waited_for";
    } else if (strcmp(key, "on_finding") == 0) {
        wanted = parse_choice(value, "report", "raise", &o->raises) ? NULL : "report or raise";
    } else if (strcmp(key, "most_reports") == 0) {
        wanted = parse_count(value, &o->most_reports) ? NULL : "a number";
    } else if (strcmp(key, "report") == 0) {
        wanted = *value && strlen(value) < sizeof o->report ? NULL : "the path of a file";
        snprintf(o->report, sizeof o->report, "%s", value);
    } else {
        return gmd_fail(error, GMD_BAD_INPUT, "sanitizer: there is no option '%s'; there are " KEYS,
                        key);
    }
    return wanted ? refuse(key, value, wanted, error) : GMD_OK;
}

gmd_status sanitizer_options_parse(sanitizer_options *options, const char *text, gmd_error *error)
{
    sanitizer_options parsed;
    char copy[4096], *rest = copy;
    if (strlen(text) >= sizeof copy) {
        return gmd_fail(error, GMD_BAD_INPUT, "sanitizer: the options are too long");
    }
    snprintf(copy, sizeof copy, "%s", text);
    char *part = strsep(&rest, ",");
    gmd_status status = take_tier(&parsed, part, error);
    while (status == GMD_OK && (part = strsep(&rest, ",")) != NULL) {
        char *value = strchr(part, ':');
        if (!value) {
            return gmd_fail(error, GMD_BAD_INPUT, "sanitizer: '%s' is no KEY:VALUE; keys are " KEYS,
                            part);
        }
        *value++ = '\0';
        status = take_key(&parsed, part, value, error);
    }
    if (status == GMD_OK) {
        *options = parsed;
    }
    return status;
}
