#include "gmd_promises.h"

#include "gmd_abi.h"
#include "gmd_min.h"
#include "gmd_spelling.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *oracle;
    unsigned promise;
} names[] = {
    {"misuse", "misuse", GMD_PROMISE_MISUSE},
    {"determinism", "determinism", GMD_PROMISE_DETERMINISM},
    {"pytorch", "reference", GMD_PROMISE_PYTORCH},
    {"coalescing", "snapshot", GMD_PROMISE_COALESCING},
    {"alignment512", "alignment", GMD_PROMISE_ALIGN_512},
    {"prompt", "accounting", GMD_PROMISE_PROMPT},
    {"throws", "progress", GMD_PROMISE_THROWS},
};

const char *gmd_promise_at(uint32_t index, unsigned *promise)
{
    if (index >= sizeof names / sizeof *names) {
        return NULL;
    }
    *promise = names[index].promise;
    return names[index].name;
}

const char *gmd_promise_oracle(unsigned promise)
{
    size_t i = 0;
    while (i + 1 < sizeof names / sizeof *names && names[i].promise != promise) {
        i++;
    }
    return names[i].oracle;
}

static unsigned find(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strlen(names[i].name) == length && strncmp(names[i].name, name, length) == 0) {
            return names[i].promise;
        }
    }
    return 0;
}

static gmd_status refuse(const char *text, const char *name, size_t length, gmd_error *error)
{
    gmd_near near;
    char unknown[GMD_SPELLING_MAX + 2], known[200] = "";
    size_t used = 0;
    snprintf(unknown, sizeof unknown, "%.*s", (int)gmd_min(length, sizeof unknown), name);
    gmd_near_begin(&near, unknown);
    for (size_t i = 0; i < sizeof names / sizeof *names && used < sizeof known; i++) {
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "",
                                 names[i].name);
        gmd_near_offer(&near, names[i].name);
    }
    return gmd_fail(error, GMD_BAD_INPUT,
                    "'%.80s': expected one or more of %s, separated by commas%s", text, known,
                    gmd_near_text(&near));
}

gmd_status gmd_promises_parse(const char *text, unsigned *promises, gmd_error *error)
{
    unsigned added = 0;
    for (const char *name = text;;) {
        size_t length = strcspn(name, ",");
        unsigned promise = find(name, length);
        if (!promise) {
            return refuse(text, name, length, error);
        }
        added |= promise;
        if (!name[length]) {
            *promises |= added;
            return GMD_OK;
        }
        name += length + 1;
    }
}

unsigned promises_all(unsigned promises)
{
    return promises & GMD_PROMISE_PYTORCH
               ? promises | GMD_PROMISE_COALESCING | GMD_PROMISE_ALIGN_512 | GMD_PROMISE_PROMPT
               : promises;
}

uint64_t promised_alignment(unsigned promises, uint64_t least)
{
    return promises & GMD_PROMISE_ALIGN_512 && least < 512 ? 512 : least;
}
