#include "gmd_quirks.h"

#include <stdbool.h>
#include <string.h>

const quirk_kind quirk_kinds[GMD_QUIRK_KINDS] = {
    {"spurious_oom", "oom_retry"},
    {"expandable_limit", "peak_bound bound=limit"},
    {"reservation_left", "leak.reservations"},
    {"oversize_expandable", "oom_retry"},
    {"held_pool", "oom_retry"},
};

static bool is_name(const char *text, size_t length, const char *name)
{
    return strlen(name) == length && strncmp(text, name, length) == 0;
}

gmd_status gmd_quirks_parse(const char *text, uint32_t *set, gmd_error *error)
{
    *set = strcmp(text, "all") == 0 ? GMD_QUIRKS_ALL : 0;
    if (*set || strcmp(text, "none") == 0) {
        return GMD_OK;
    }
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ","), which = 0;
        while (which < GMD_QUIRK_KINDS && !is_name(at, length, quirk_kinds[which].name)) {
            which++;
        }
        if (which == GMD_QUIRK_KINDS) {
            return gmd_fail(error, GMD_BAD_INPUT,
                            "'%.*s' is no quirk: expected all, none, or names out of spurious_oom, "
                            "expandable_limit, reservation_left, oversize_expandable, held_pool",
                            length < 60 ? (int)length : 60, at);
        }
        *set |= 1u << which;
        at += length;
        if (!*at) {
            return GMD_OK;
        }
    }
}

gmd_status gmd_quirks_mask(gmd_known *known, uint32_t set, gmd_error *error)
{
    gmd_status status = GMD_OK;
    for (size_t i = 0; i < GMD_QUIRK_KINDS && status == GMD_OK; i++) {
        if (set & 1u << i) {
            const quirk_kind *kind = &quirk_kinds[i];
            status = known_add_quirk(known, kind->known, kind->name, error);
        }
    }
    return status;
}
