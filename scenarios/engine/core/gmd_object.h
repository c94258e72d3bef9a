/* gmd_object.h - Python objects with attributes, and lists: references that may form cycles. */
#ifndef GMD_OBJECT_H
#define GMD_OBJECT_H

#include "gmd_engine.h"

struct object; /* attributes by name */
struct list;   /* items by position, from 0 */

extern const struct thing_class object_class, list_class;

struct object *object_new(struct engine *engine);
/* Keeps `value`, drops what was there; NULL deletes the attribute. */
void object_set(struct engine *engine, struct object *object, const char *name,
                struct thing *value);
struct thing *object_get(const struct object *object, const char *name); /* borrowed, or NULL */
/* Attribute number `index`, in the order of their first assignment; false: there is none. */
bool object_at(const struct object *object, size_t index, const char **name, struct thing **value);

struct list *list_new(struct engine *engine);
void list_append(struct engine *engine, struct list *list, struct thing *value); /* keeps it */
size_t list_count(const struct list *list);
struct thing *list_at(const struct list *list, size_t index); /* borrowed */
struct thing *list_take(struct list *list, size_t index);     /* removes it; the caller's now */
void list_set(struct engine *engine, struct list *list, size_t index, struct thing *value);
void list_clear(struct engine *engine, struct list *list);

#endif
