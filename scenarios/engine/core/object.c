#include "gmd_object.h"

#include <string.h>

typedef struct attribute {
    char *name;
    struct thing *value;
} attribute;

struct object {
    struct thing thing;
    attribute *attributes;
    size_t count;
};

struct list {
    struct thing thing;
    struct thing **items;
    size_t count, capacity;
};

/* --- objects ----------------------------------------------------------------------------- */

/* The list is emptied before its values are dropped: their destruction may lead back here. */
static void clear_object(struct engine *engine, struct thing *thing)
{
    struct object *object = (struct object *)thing;
    attribute *attributes = object->attributes;
    size_t count = object->count;
    object->attributes = NULL;
    object->count = 0;
    for (size_t i = 0; i < count; i++) {
        host_give(engine, attributes[i].name);
        thing_drop(engine, attributes[i].value);
    }
    host_give(engine, attributes);
}

static void traverse_object(struct thing *thing, void (*visit)(struct thing *held, void *context),
                            void *context)
{
    struct object *object = (struct object *)thing;
    for (size_t i = 0; i < object->count; i++) {
        visit(object->attributes[i].value, context);
    }
}

const struct thing_class object_class = {
    .name = "object",
    .destroy = clear_object,
    .traverse = traverse_object,
    .clear = clear_object,
};

struct object *object_new(struct engine *engine)
{
    struct object *object = host_take(engine, sizeof *object);
    thing_init(engine, &object->thing, &object_class);
    return object;
}

static size_t find(const struct object *object, const char *name)
{
    size_t i = 0;
    while (i < object->count && strcmp(object->attributes[i].name, name) != 0) {
        i++;
    }
    return i;
}

struct thing *object_get(const struct object *object, const char *name)
{
    size_t i = find(object, name);
    return i < object->count ? object->attributes[i].value : NULL;
}

bool object_at(const struct object *object, size_t index, const char **name, struct thing **value)
{
    if (index >= object->count) {
        return false;
    }
    *name = object->attributes[index].name;
    *value = object->attributes[index].value;
    return true;
}

static void delete_attribute(struct engine *engine, struct object *object, size_t i)
{
    attribute gone = object->attributes[i];
    object->count--;
    memmove(&object->attributes[i], &object->attributes[i + 1],
            (object->count - i) * sizeof(attribute));
    host_give(engine, gone.name);
    thing_drop(engine, gone.value);
}

static void add_attribute(struct engine *engine, struct object *object, const char *name)
{
    size_t length = strlen(name) + 1;
    char *copy = host_take(engine, length);
    memcpy(copy, name, length);
    object->attributes =
        host_take_more(engine, object->attributes, (object->count + 1) * sizeof(attribute));
    object->attributes[object->count++] = (attribute){.name = copy};
}

void object_set(struct engine *engine, struct object *object, const char *name, struct thing *value)
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
    struct thing *old = object->attributes[i].value;
    object->attributes[i].value = thing_keep(value);
    thing_drop(engine, old);
}

/* --- lists ------------------------------------------------------------------------------- */

static void clear_list(struct engine *engine, struct thing *thing)
{
    struct list *list = (struct list *)thing;
    struct thing **items = list->items;
    size_t count = list->count;
    list->items = NULL;
    list->count = list->capacity = 0;
    for (size_t i = count; i-- > 0;) { /* the last first, as list_dealloc() and list.clear() do */
        thing_drop(engine, items[i]);
    }
    host_give(engine, items);
}

static void traverse_list(struct thing *thing, void (*visit)(struct thing *held, void *context),
                          void *context)
{
    struct list *list = (struct list *)thing;
    for (size_t i = 0; i < list->count; i++) {
        visit(list->items[i], context);
    }
}

const struct thing_class list_class = {
    .name = "list", .destroy = clear_list, .traverse = traverse_list, .clear = clear_list};

struct list *list_new(struct engine *engine)
{
    struct list *list = host_take(engine, sizeof *list);
    thing_init(engine, &list->thing, &list_class);
    return list;
}

void list_append(struct engine *engine, struct list *list, struct thing *value)
{
    if (list->count == list->capacity) {
        list->capacity = list->capacity ? 2 * list->capacity : 8;
        list->items = host_take_more(engine, list->items, list->capacity * sizeof(struct thing *));
    }
    list->items[list->count++] = thing_keep(value);
}

size_t list_count(const struct list *list)
{
    return list->count;
}

struct thing *list_at(const struct list *list, size_t index)
{
    return list->items[index];
}

struct thing *list_take(struct list *list, size_t index)
{
    struct thing *taken = list->items[index];
    list->count--;
    memmove(&list->items[index], &list->items[index + 1],
            (list->count - index) * sizeof(struct thing *));
    return taken;
}

void list_set(struct engine *engine, struct list *list, size_t index, struct thing *value)
{
    struct thing *old = list->items[index];
    list->items[index] = thing_keep(value);
    thing_drop(engine, old);
}

void list_clear(struct engine *engine, struct list *list)
{
    clear_list(engine, &list->thing);
}
