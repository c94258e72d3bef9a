#include "snapshot_taken.h"

#include <stdlib.h>

/* Each type has a key that no other one has. */
static bool type_of_key(const pickle_value *key, snapshot_type *type)
{
    static const char *const keys[SNAPSHOT_TYPES] = {[SNAPSHOT_EVENT] = "action",
                                                     [SNAPSHOT_BLOCK] = "state",
                                                     [SNAPSHOT_ANNOTATION] = "stage",
                                                     [SNAPSHOT_FRAME] = "filename"};
    for (snapshot_type t = 0; t < SNAPSHOT_TYPES; t++) {
        if (snapshot_text_is(key, keys[t])) {
            *type = t;
            return true;
        }
    }
    return false;
}

static bool type_of(snapshot_taken *taken, snapshot_dict *dict, snapshot_type *type)
{
    for (snapshot_type t = 0; t < SNAPSHOT_TYPES; t++) {
        if (snapshot_has_shape(&taken->shapes[t], dict->pairs, dict->count)) {
            *type = t;
            dict->has_shape = true;
            return true;
        }
    }
    size_t types = 0;
    for (size_t i = 0; i < dict->count; i += 2) {
        types += type_of_key(&dict->pairs[i], type);
    }
    return types == 1;
}

static bool take(snapshot_reader *c, snapshot_type type, const snapshot_dict *dict, uint64_t *index)
{
    switch (type) {
    case SNAPSHOT_EVENT:
        return snapshot_take_event(c, dict, index);
    case SNAPSHOT_BLOCK:
        return snapshot_take_block(c, dict, index);
    case SNAPSHOT_ANNOTATION:
        return snapshot_take_annotation(c, dict, index);
    case SNAPSHOT_FRAME:
        return snapshot_take_frame(c, dict, index);
    case SNAPSHOT_TYPES:
        break;
    }
    return false;
}

bool snapshot_take(void *context, uint64_t at, const pickle_value *pairs, size_t count,
                   uint64_t *number)
{
    snapshot_reader *c = context;
    snapshot_dict dict = {.at = at, .pairs = pairs, .count = count};
    snapshot_type type;
    uint64_t index;
    if (c->status != GMD_OK || count / 2 > SNAPSHOT_MAX_KEYS || !type_of(&c->taken, &dict, &type)) {
        return false;
    }
    dict.shape = &c->taken.shapes[type];
    c->is_taking = true;
    bool ok = take(c, type, &dict, &index);
    c->is_taking = false;
    if (ok) {
        *number = snapshot_record(type, index);
    }
    return ok;
}

void snapshot_taken_free(snapshot_taken *taken)
{
    free(taken->blocks);
    free(taken->annotations);
    *taken = (snapshot_taken){0};
}
