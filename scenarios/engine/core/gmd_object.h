/* gmd_object.h - Python objects with attributes, and lists: references that may form cycles. */
#ifndef GMD_OBJECT_H
#define GMD_OBJECT_H

#include "gmd_engine.h"

typedef struct gmd_object gmd_object; /* attributes by name */
typedef struct gmd_list gmd_list;     /* items by position, from 0 */

extern const gmd_thing_class gmd_object_class, gmd_list_class;

gmd_object *gmd_object_new(gmd_engine *engine);
/* Keeps `value`, drops what was there; NULL deletes the attribute. */
void gmd_object_set(gmd_engine *engine, gmd_object *object, const char *name, gmd_thing *value);
gmd_thing *gmd_object_get(const gmd_object *object, const char *name); /* borrowed, or NULL */
/* Attribute number `index`, in the order of their first assignment; false: there is none. */
bool gmd_object_at(const gmd_object *object, size_t index, const char **name, gmd_thing **value);

gmd_list *gmd_list_new(gmd_engine *engine);
void gmd_list_append(gmd_engine *engine, gmd_list *list, gmd_thing *value); /* keeps it */
size_t gmd_list_count(const gmd_list *list);
gmd_thing *gmd_list_at(const gmd_list *list, size_t index); /* borrowed */
gmd_thing *gmd_list_take(gmd_list *list, size_t index);     /* removes it; the caller's now */
void gmd_list_set(gmd_engine *engine, gmd_list *list, size_t index, gmd_thing *value);
void gmd_list_clear(gmd_engine *engine, gmd_list *list);

#endif
