/* snapshot_settings.c - allocator_settings: the environment's string, and the settings in force. */
#include "snapshot_fields.h"

#include "gmd_text.h"
#include "quote.h"

#include <stdlib.h>

enum { MAX_CONF = 4096 };

static bool read_conf(snapshot_reader *c, const snapshot_field *f)
{
    if (!f->found || f->found->kind == PICKLE_NONE) {
        return true;
    }
    if (!snapshot_required_text(c, f->found, f)) {
        return false;
    }
    size_t length = f->found->length;
    if (length > MAX_CONF || utf8_prefix(f->found->text, length) < length) {
        return SNAPSHOT_FAIL(c, f->found,
                             "key '%s': expected at most %d bytes of UTF-8 text without NUL",
                             f->key, MAX_CONF);
    }
    if (c->snapshot->conf && length == 0) {
        return true;
    }
    free(c->snapshot->conf);
    c->snapshot->conf = gmd_text_copy(f->found->text, length);
    return c->snapshot->conf || snapshot_no_memory(c);
}

/* Whether a setting differs from PyTorch's default, which is off for all that are looked at: False,
 * 0, or -1 (max_split_size; also written as the largest number). */
static bool is_number_set(const pickle_value *v)
{
    switch (v->kind) {
    case PICKLE_BOOL:
        return v->number != 0;
    case PICKLE_NATURAL:
        return v->number != 0 && v->number != UINT64_MAX;
    case PICKLE_NEGATIVE:
        return v->negative != -1;
    case PICKLE_FLOAT:
        return v->real != 0;
    default:
        return false;
    }
}

/* roundup_power2_divisions has a number for each power of two. */
static bool is_set(const pickle_value *v)
{
    if (v->kind != PICKLE_DICT) {
        return is_number_set(v);
    }
    for (size_t i = 1; i < v->items->count; i += 2) {
        if (is_number_set(&v->items->values[i])) {
            return true;
        }
    }
    return false;
}

static uint64_t natural(const pickle_value *v)
{
    return v->kind == PICKLE_NATURAL || v->kind == PICKLE_BOOL ? v->number : 0;
}

/* Keys are the intervals' first sizes in MiB, as text. */
static void read_roundup(gmd_snapshot_settings *settings, const pickle_value *v)
{
    for (size_t i = 0; v->kind == PICKLE_DICT && i + 1 < v->items->count; i += 2) {
        const pickle_value *key = &v->items->values[i];
        uint64_t mib = 0;
        for (uint32_t k = 0; key->kind == PICKLE_STRING && k < key->length && mib < 65536; k++) {
            mib = mib * 10 + (uint64_t)(key->text[k] - '0') % 10;
        }
        for (int interval = 0; interval < GMD_ROUNDUP_INTERVALS; interval++) {
            if (mib == (uint64_t)1 << interval) {
                settings->roundup_divisions[interval] = natural(&v->items->values[i + 1]);
            }
        }
    }
}

enum { MAX_SPLIT_SIZE, GC_THRESHOLD, EXPANDABLE, ROUNDUP, FLAGS };

static void read_values(gmd_snapshot_settings *settings, const snapshot_field flags[FLAGS])
{
    const pickle_value *split = flags[MAX_SPLIT_SIZE].found, *threshold = flags[GC_THRESHOLD].found;
    const pickle_value *expandable = flags[EXPANDABLE].found, *roundup = flags[ROUNDUP].found;
    settings->max_split_bytes = split && is_number_set(split) ? natural(split) : 0;
    settings->gc_threshold = threshold && threshold->kind == PICKLE_FLOAT ? threshold->real : 0;
    settings->is_expandable = expandable && natural(expandable) != 0;
    if (roundup) {
        read_roundup(settings, roundup);
    }
}

/* The settings in force, which need not come from the environment's string. */
static bool read_flags(snapshot_reader *c, const pickle_value *settings)
{
    snapshot_field flags[FLAGS] = {[MAX_SPLIT_SIZE] = {"max_split_size", NULL},
                                   [GC_THRESHOLD] = {"garbage_collection_threshold", NULL},
                                   [EXPANDABLE] = {"expandable_segments", NULL},
                                   [ROUNDUP] = {"roundup_power2_divisions", NULL}};
    if (!snapshot_find(c, settings, flags, FLAGS)) {
        return false;
    }
    for (int i = 0; i < FLAGS && !c->snapshot->setting; i++) {
        if (flags[i].found && is_set(flags[i].found)) {
            c->snapshot->setting = flags[i].key;
        }
    }
    read_values(&c->snapshot->settings, flags);
    return true;
}

/* The variable has been called PYTORCH_ALLOC_CONF as well since it became device-neutral. */
bool snapshot_read_settings(snapshot_reader *c, const snapshot_field *f)
{
    snapshot_field names[] = {{"PYTORCH_CUDA_ALLOC_CONF", NULL}, {"PYTORCH_ALLOC_CONF", NULL}};
    if (!f->found || f->found->kind == PICKLE_NONE) {
        return true;
    }
    c->place = AT_SETTINGS;
    bool ok = snapshot_find(c, f->found, names, 2) && read_conf(c, &names[0]) &&
              read_conf(c, &names[1]) && read_flags(c, f->found);
    c->place = AT_FILE;
    return ok;
}
