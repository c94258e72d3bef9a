/* origins.c - texts, frames, stacks and origins, each kept once: all four are sequences of bytes.
 */
#include "gmd_origins.h"

#include <stdlib.h>
#include <string.h>

/* `empty` is what number 0 is. */
static bool intern(gmd_interned *in, const void *empty, size_t empty_length, const void *bytes,
                   size_t length, uint32_t *number)
{
    uint32_t zero;
    if (in->count == 0 && !gmd_interned_add(in, empty, empty_length, &zero)) {
        return false;
    }
    return gmd_interned_add(in, bytes, length, number);
}

static const void *bytes_of(const gmd_interned *in, uint32_t number, size_t *length)
{
    *length = 0;
    return number == 0 && in->count == 0 ? NULL : gmd_interned_bytes(in, number, length);
}

/* --- what they are ------------------------------------------------------------------------- */

static const gmd_frame no_frame;
static const gmd_origin no_origin;

void gmd_origins_free(gmd_origins *origins)
{
    gmd_interned_free(&origins->texts);
    gmd_interned_free(&origins->frames);
    gmd_interned_free(&origins->stacks);
    gmd_interned_free(&origins->origins);
}

bool gmd_origins_add_text(gmd_origins *origins, const char *text, size_t length, uint32_t *number)
{
    return intern(&origins->texts, NULL, 0, text, length, number);
}

static bool add_pictured(gmd_origins *origins, const char *name, size_t length, uint32_t *number)
{
    static const char picture[] = "\xE2\x90\x80";
    size_t size = 0;
    char *text = malloc(length * (sizeof picture - 1));
    if (!text) {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        if (name[i]) {
            text[size++] = name[i];
        } else {
            memcpy(text + size, picture, sizeof picture - 1);
            size += sizeof picture - 1;
        }
    }
    bool is_added = gmd_origins_add_text(origins, text, size, number);
    free(text);
    return is_added;
}

bool gmd_origins_add_name(gmd_origins *origins, const char *name, size_t length, uint32_t *number)
{
    bool is_plain = !length || !memchr(name, '\0', length);
    return is_plain ? gmd_origins_add_text(origins, name, length, number)
                    : add_pictured(origins, name, length, number);
}

bool gmd_origins_add_frame(gmd_origins *origins, const gmd_frame *frame, uint32_t *number)
{
    return intern(&origins->frames, &no_frame, sizeof no_frame, frame, sizeof *frame, number);
}

bool gmd_origins_add_stack(gmd_origins *origins, const uint32_t *frames, size_t count,
                           uint32_t *number)
{
    return intern(&origins->stacks, NULL, 0, frames, count * sizeof *frames, number);
}

bool gmd_origins_add(gmd_origins *origins, const gmd_origin *origin, uint32_t *number)
{
    return intern(&origins->origins, &no_origin, sizeof no_origin, origin, sizeof *origin, number);
}

const char *gmd_origins_text(const gmd_origins *origins, uint32_t number, size_t *length)
{
    size_t unused;
    const char *text = bytes_of(&origins->texts, number, length ? length : &unused);
    return text ? text : "";
}

gmd_frame gmd_origins_frame(const gmd_origins *origins, uint32_t number)
{
    size_t length;
    const void *bytes = bytes_of(&origins->frames, number, &length);
    gmd_frame frame = no_frame;
    if (bytes) {
        memcpy(&frame, bytes, sizeof frame);
    }
    return frame;
}

const uint32_t *gmd_origins_stack(const gmd_origins *origins, uint32_t number, size_t *count)
{
    const uint32_t *frames = bytes_of(&origins->stacks, number, count);
    *count /= sizeof *frames;
    return frames;
}

gmd_origin gmd_origins_get(const gmd_origins *origins, uint32_t number)
{
    size_t length;
    const void *bytes = bytes_of(&origins->origins, number, &length);
    gmd_origin origin = no_origin;
    if (bytes) {
        memcpy(&origin, bytes, sizeof origin);
    }
    return origin;
}

static uint32_t count_of(const gmd_interned *in)
{
    return in->count ? in->count : 1;
}

uint32_t gmd_origins_count(const gmd_origins *origins)
{
    return count_of(&origins->origins);
}

uint32_t gmd_origins_stack_count(const gmd_origins *origins)
{
    return count_of(&origins->stacks);
}

uint32_t gmd_origins_frame_count(const gmd_origins *origins)
{
    return count_of(&origins->frames);
}

uint32_t gmd_origins_text_count(const gmd_origins *origins)
{
    return count_of(&origins->texts);
}
