/* pickle_test.h - snapshots as they are in the file, value by value. */
#ifndef GMD_PICKLE_TEST_H
#define GMD_PICKLE_TEST_H

#include "gmd_allocator.h"
#include "gmd_test.h"
#include "pickle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef pickle_value value;

typedef struct pickle_file {
    uint8_t *data;
    pickle_document seen;
} pickle_file;

/* What was dumped last; nothing is fine. */
static inline void forget_pickle(pickle_file *p)
{
    if (p->data) {
        pickle_free(&p->seen);
        free(p->data);
        p->data = NULL;
    }
}

static inline const value *dump_pickle(pickle_file *p, gmd_allocator *a, const char *path)
{
    gmd_error error = {""};
    forget_pickle(p);
    assert_int_equal(gmd_allocator_dump_snapshot(a, path, &error), GMD_OK);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    p->data = malloc(1 << 20);
    size_t size = fread(p->data, 1, 1 << 20, file);
    fclose(file);
    assert_int_equal(pickle_read(&p->seen, p->data, size, path, &error), GMD_OK);
    return &p->seen.root;
}

static inline bool is_text(const value *v, const char *text)
{
    return v->length == strlen(text) && memcmp(v->text, text, v->length) == 0;
}

static inline const value *key(const value *record, const char *name)
{
    assert_int_equal(record->kind, PICKLE_DICT);
    for (size_t i = 0; i < record->items->count; i += 2) {
        if (is_text(&record->items->values[i], name)) {
            return &record->items->values[i + 1];
        }
    }
    return NULL;
}

static inline const value *item(const value *list, size_t index)
{
    assert_true(index < list->items->count);
    return &list->items->values[index];
}

#endif
