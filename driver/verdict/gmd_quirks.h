/* gmd_quirks.h - known deviations of a recorded version of PyTorch, which replay --check has the
 * reference allocator keep to, so that a recording is matched to the byte (--quirks). */
#ifndef GMD_QUIRKS_H
#define GMD_QUIRKS_H

#include "gmd_known.h"

#include <stdint.h>

typedef struct quirk_kind {
    const char *name;  /* as the allocator knows it, too: gmd_set_quirk */
    const char *known; /* the verdict on it, which is no news while it is on, as in gmd_known.h */
} quirk_kind;

enum { GMD_QUIRK_KINDS = 5 };
extern const quirk_kind quirk_kinds[GMD_QUIRK_KINDS];

#define GMD_QUIRKS_ALL ((1u << GMD_QUIRK_KINDS) - 1)

/* `all`, `none`, or names separated by commas, as a set of 1 << index. */
gmd_status gmd_quirks_parse(const char *text, uint32_t *set, gmd_error *error);

/* Adds the verdicts on the quirks of a set to what is known, each once its quirk has mattered. */
gmd_status gmd_quirks_mask(gmd_known *known, uint32_t set, gmd_error *error);

#endif
