#include "gmd_object.h"

#include <string.h>

typedef struct attribute {
    char *name;
    gmd_thing *value;
} attribute;

struct gmd_object {
    gmd_thing thing;
    attribute *attributes;
    size_t count;
};

struct gmd_list {
    gmd_thing thing;
    gmd_thing **items;
    size_t count, capacity;
};

/* --- objects ----------------------------------------------------------------------------- */

/* Emptied before the values die: what they drop may lead back here. */
static void clear_object(gmd_engine *engine, gmd_thing *thing)
{
    gmd_object *object = (gmd_object *)thing;
    attribute *attributes = object->attributes;
    size_t count = object->count;
    object->attributes = NULL;
    object->count = 0;
    for (size_t i = 0; i < count; i++) {
        gmd_give(engine, attributes[i].name);
        gmd_thing_drop(engine, attributes[i].value);
    }
    gmd_give(engine, attributes);
}

static void traverse_object(gmd_thing *thing, void (*visit)(gmd_thing *held, void *context),
                            void *context)
{
    gmd_object *object = (gmd_object *)thing;
    for (size_t i = 0; i < object->count; i++) {
        visit(object->attributes[i].value, context);
    }
}

const gmd_thing_class gmd_object_class = {
    .name = "object",
    .destroy = clear_object,
    .traverse = traverse_object,
    .clear = clear_object,
};

gmd_object *gmd_object_new(gmd_engine *engine)
{
    gmd_object *object = gmd_take(engine, sizeof *object);
    gmd_thing_init(engine, &object->thing, &gmd_object_class);
    return object;
}

static size_t find(const gmd_object *object, const char *name)
{
    size_t i = 0;
    while (i < object->count && strcmp(object->attributes[i].name, name) != 0) {
        i++;
    }
    return i;
}

gmd_thing *gmd_object_get(const gmd_object *object, const char *name)
{
    size_t i = find(object, name);
    return i < object->count ? object->attributes[i].value : NULL;
}

bool gmd_object_at(const gmd_object *object, size_t index, const char **name, gmd_thing **value)
{
    if (index >= object->count) {
        return false;
    }
    *name = object->attributes[index].name;
    *value = object->attributes[index].value;
    return true;
}

static void delete_attribute(gmd_engine *engine, gmd_object *object, size_t i)
{
    attribute gone = object->attributes[i];
    object->count--;
    memmove(&object->attributes[i], &object->attributes[i + 1],
            (object->count - i) * sizeof(attribute));
    gmd_give(engine, gone.name);
    gmd_thing_drop(engine, gone.value);
}

static void add_attribute(gmd_engine *engine, gmd_object *object, const char *name)
{
    size_t length = strlen(name) + 1;
    char *copy = gmd_take(engine, length);
    memcpy(copy, name, length);
    object->attributes =
        gmd_take_more(engine, object->attributes, (object->count + 1) * sizeof(attribute));
    object->attributes[object->count++] = (attribute){.name = copy};
}

void gmd_object_set(gmd_engine *engine, gmd_object *object, const char *name, gmd_thing *value)
{
    size_t i = find(object, name);
    if (!value) {
        if (i < object->count) {
            delete_attribute(engine, object, i);
        }
        return;
    }
    if (i == object->count) {
        add_attribute(engine, object, name);
    }
    gmd_thing *old = object->attributes[i].value;
    object->attributes[i].value = gmd_thing_keep(value);
    gmd_thing_drop(engine, old);
}

/* --- lists ------------------------------------------------------------------------------- */

static void clear_list(gmd_engine *engine, gmd_thing *thing)
{
    gmd_list *list = (gmd_list *)thing;
    gmd_thing **items = list->items;
    size_t count = list->count;
    list->items = NULL;
    list->count = list->capacity = 0;
    for (size_t i = 0; i < count; i++) {
        gmd_thing_drop(engine, items[i]);
    }
    gmd_give(engine, items);
}

static void traverse_list(gmd_thing *thing, void (*visit)(gmd_thing *held, void *context),
                          void *context)
{
    gmd_list *list = (gmd_list *)thing;
    for (size_t i = 0; i < list->count; i++) {
        visit(list->items[i], context);
    }
}

const gmd_thing_class gmd_list_class = {
    .name = "list", .destroy = clear_list, .traverse = traverse_list, .clear = clear_list};

gmd_list *gmd_list_new(gmd_engine *engine)
{
    gmd_list *list = gmd_take(engine, sizeof *list);
    gmd_thing_init(engine, &list->thing, &gmd_list_class);
    return list;
}

void gmd_list_append(gmd_engine *engine, gmd_list *list, gmd_thing *value)
{
    if (list->count == list->capacity) {
        list->capacity = list->capacity ? 2 * list->capacity : 8;
        list->items = gmd_take_more(engine, list->items, list->capacity * sizeof(gmd_thing *));
    }
    list->items[list->count++] = gmd_thing_keep(value);
}

size_t gmd_list_count(const gmd_list *list)
{
    return list->count;
}

gmd_thing *gmd_list_at(const gmd_list *list, size_t index)
{
    return list->items[index];
}

gmd_thing *gmd_list_take(gmd_list *list, size_t index)
{
    gmd_thing *taken = list->items[index];
    list->count--;
    memmove(&list->items[index], &list->items[index + 1],
            (list->count - index) * sizeof(gmd_thing *));
    return taken;
}

void gmd_list_set(gmd_engine *engine, gmd_list *list, size_t index, gmd_thing *value)
{
    gmd_thing *old = list->items[index];
    list->items[index] = gmd_thing_keep(value);
    gmd_thing_drop(engine, old);
}

void gmd_list_clear(gmd_engine *engine, gmd_list *list)
{
    clear_list(engine, &list->thing);
}
