#include "columns.h"

#include "gmd_grow.h"
#include "gmd_min.h"

#include <stdio.h>
#include <stdlib.h>

enum { VARINT_BYTES = 10 };

size_t columns_new(column_set *c, const char *prefix, const char *name, column_coding coding)
{
    if (!GMD_GROW(&c->items, &c->capacity, c->count + 1)) {
        c->has_failed = true;
        return 0;
    }
    c->items[c->count] = (column){.coding = (uint8_t)coding};
    snprintf(c->items[c->count].name, COLUMN_NAME, "%s%s", prefix, name);
    return c->count++;
}

static uint64_t zigzag(uint64_t value, uint64_t before)
{
    return value >= before ? (value - before) << 1 : ((before - value) << 1) - 1;
}

static void put_varint(column *to, uint64_t value)
{
    while (value > 0x7F) {
        to->bytes[to->size++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    to->bytes[to->size++] = (uint8_t)value;
}

void columns_put(column_set *c, size_t index, uint64_t value)
{
    if (c->has_failed) {
        return;
    }
    column *to = &c->items[index];
    if (!GMD_GROW(&to->bytes, &to->capacity, to->size + VARINT_BYTES)) {
        c->has_failed = true;
        return;
    }
    value = gmd_min(value, COLUMN_MOST);
    put_varint(to, to->coding == COLUMN_DELTA ? zigzag(value, to->last) : value);
    to->last = value;
    to->most = gmd_max(value, to->most);
    to->count++;
}

/* The smallest typed array that holds all values. */
static const char *type_of(const column *c)
{
    return c->most <= UINT8_MAX    ? "u8"
           : c->most <= UINT16_MAX ? "u16"
           : c->most <= UINT32_MAX ? "u32"
                                   : "f64";
}

void columns_json(const column_set *c, gmd_json *json, const char *key)
{
    size_t offset = 0;
    gmd_json_object(json, key);
    for (size_t i = 0; i < c->count; i++) {
        const column *of = &c->items[i];
        gmd_json_row(json, of->name);
        gmd_json_string(json, "type", type_of(of));
        gmd_json_string(json, "coding", of->coding == COLUMN_DELTA ? "delta" : "varint");
        gmd_json_u64(json, "count", of->count);
        gmd_json_u64(json, "offset", offset);
        gmd_json_u64(json, "bytes", of->size);
        gmd_json_end(json);
        offset += of->size;
    }
    gmd_json_end(json);
}

void columns_free(column_set *c)
{
    for (size_t i = 0; i < c->count; i++) {
        free(c->items[i].bytes);
    }
    free(c->items);
    *c = (column_set){0};
}
