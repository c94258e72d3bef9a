#include "call_list.h"

#include "gmd_grow.h"

#include <stdlib.h>

void call_list_add(call_list *c, const gmd_device_call *call)
{
    if (GMD_GROW(&c->list, &c->capacity, c->count + 1)) {
        c->list[c->count++] = *call;
    }
}

void call_list_add_misuse(call_list *c, const gmd_misuse *misuse)
{
    if (c->misuse_count < MISUSE_MAX) {
        c->misuses[c->misuse_count++] = *misuse;
    }
}

void call_list_free(call_list *c)
{
    free(c->list);
    *c = (call_list){0};
}
