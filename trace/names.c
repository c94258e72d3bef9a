#include "gmd_names.h"

#include "gmd_keyed_hash.h"
#include "quote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_name_part(char c)
{
    return is_name_start(c) || (c >= '0' && c <= '9') || c == '.' || c == '-';
}

bool gmd_name_is_valid(const char *name, size_t length)
{
    if (length == 0 || length >= GMD_NAME_BYTES || !is_name_start(name[0])) {
        return false;
    }
    for (size_t i = 1; i < length; i++) {
        if (!is_name_part(name[i])) {
            return false;
        }
    }
    return length != strlen(GMD_DEVICE_WORD) || memcmp(name, GMD_DEVICE_WORD, length) != 0;
}

bool gmd_conf_is_valid(const char *conf, size_t length)
{
    enum { MAX_CONF = 4096 };
    if (length == 0 || length > MAX_CONF || conf[0] == ' ' || conf[length - 1] == ' ') {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)conf[i];
        if (c < 0x20 || c == 0x7f || c == '#') {
            return false;
        }
    }
    return utf8_prefix(conf, length) == length;
}

static size_t default_name(char letter, uint32_t index, char text[GMD_NAME_BYTES])
{
    return (size_t)snprintf(text, GMD_NAME_BYTES, "%c%u", letter, index);
}

bool gmd_name_is_default(const char *name, size_t length, char letter, uint32_t index)
{
    char text[GMD_NAME_BYTES];
    return length >= 2 && name[0] == letter && default_name(letter, index, text) == length &&
           memcmp(name, text, length) == 0;
}

const char *gmd_name_text(const gmd_names *names, char letter, uint32_t index,
                          char text[GMD_NAME_BYTES])
{
    if (index < names->count && names->items[index]) {
        return names->items[index];
    }
    default_name(letter, index, text);
    return text;
}

/* --- the table --------------------------------------------------------------------------- */

static gmd_name_slot *probe(const gmd_name_table *table, const char *name, size_t length)
{
    size_t mask = table->capacity - 1;
    gmd_hash_key key = {table->key[0], table->key[1]};
    for (size_t at = (size_t)gmd_hash_keyed(key, name, length) & mask;; at = (at + 1) & mask) {
        gmd_name_slot *slot = &table->slots[at];
        if (!slot->name || (slot->length == length && memcmp(slot->name, name, length) == 0)) {
            return slot;
        }
    }
}

const gmd_name_slot *gmd_name_table_find(const gmd_name_table *table, const char *name,
                                         size_t length)
{
    if (!table->capacity) {
        return NULL;
    }
    const gmd_name_slot *slot = probe(table, name, length);
    return slot->name ? slot : NULL;
}

static bool table_grow(gmd_name_table *table)
{
    gmd_name_table larger = {.capacity = table->capacity ? table->capacity * 2 : 16,
                             .count = table->count,
                             .key = {table->key[0], table->key[1]}};
    if (!table->capacity) {
        gmd_hash_key key = gmd_hash_key_draw();
        larger.key[0] = key.first;
        larger.key[1] = key.second;
    }
    larger.slots = calloc(larger.capacity, sizeof *larger.slots);
    if (!larger.slots) {
        return false;
    }
    for (size_t i = 0; i < table->capacity; i++) {
        const gmd_name_slot *slot = &table->slots[i];
        if (slot->name) {
            *probe(&larger, slot->name, slot->length) = *slot;
        }
    }
    free(table->slots);
    *table = larger;
    return true;
}

bool gmd_name_table_add(gmd_name_table *table, const char *name, size_t length, uint32_t value)
{
    if (table->count >= table->capacity / 2 && !table_grow(table)) {
        return false;
    }
    *probe(table, name, length) =
        (gmd_name_slot){.name = name, .length = (uint32_t)length, .value = value};
    table->count++;
    return true;
}

void gmd_name_table_free(gmd_name_table *table)
{
    free(table->slots);
    *table = (gmd_name_table){0};
}

/* --- names for writing ------------------------------------------------------------------- */

/* `name` with what the text format does not allow replaced. */
static void repair(const char *name, char text[GMD_NAME_BYTES])
{
    size_t at = 0;
    if (!is_name_start(name[0])) {
        text[at++] = '_';
    }
    for (; *name && at < GMD_NAME_BYTES - 1; name++) {
        text[at++] = is_name_part(*name) ? *name : '_';
    }
    text[at] = 0;
}

/* Appends ".N" for the first N that makes the name new. N starts at the index, which is new in all
 * but contrived lists, so that the search is short. */
static void make_unique(const gmd_name_table *taken, uint32_t index, char text[GMD_NAME_BYTES])
{
    enum { SUFFIX_BYTES = 22 };
    size_t length = strlen(text);
    if (length > GMD_NAME_BYTES - SUFFIX_BYTES) {
        length = GMD_NAME_BYTES - SUFFIX_BYTES;
    }
    for (uint64_t n = index; gmd_name_table_find(taken, text, strlen(text)); n++) {
        snprintf(text + length, SUFFIX_BYTES, ".%llu", (unsigned long long)n);
    }
}

static bool write_name(gmd_written_names *written, gmd_name_table *taken, uint32_t index,
                       const char *text)
{
    written->items[index] = strdup(text);
    return written->items[index] &&
           gmd_name_table_add(taken, written->items[index], strlen(text), index);
}

static bool is_fixed(const gmd_names *names, uint32_t index, const char *first)
{
    return !names->items[index] || (index == 0 && first);
}

/* First the entries that cannot give way: their name is fixed by their index. */
static bool write_fixed_names(gmd_written_names *written, gmd_name_table *taken,
                              const gmd_names *names, char letter, const char *first)
{
    for (uint32_t i = 0; i < names->count; i++) {
        char text[GMD_NAME_BYTES];
        if (!is_fixed(names, i, first)) {
            continue;
        }
        default_name(letter, i, text);
        if (!write_name(written, taken, i, i == 0 && first ? first : text)) {
            return false;
        }
    }
    return true;
}

bool gmd_written_names_make(gmd_written_names *written, const gmd_names *names, char letter,
                            const char *first)
{
    gmd_name_table taken = {0};
    *written = (gmd_written_names){
        .items = calloc((size_t)names->count + 1, sizeof *written->items), .count = names->count};
    bool ok = written->items &&
              gmd_name_table_add(&taken, GMD_DEVICE_WORD, strlen(GMD_DEVICE_WORD), 0) &&
              write_fixed_names(written, &taken, names, letter, first);
    for (uint32_t i = 0; i < names->count && ok; i++) {
        char text[GMD_NAME_BYTES];
        if (!is_fixed(names, i, first)) {
            repair(names->items[i], text);
            make_unique(&taken, i, text);
            ok = write_name(written, &taken, i, text);
        }
    }
    gmd_name_table_free(&taken);
    if (!ok) {
        gmd_written_names_free(written);
    }
    return ok;
}

void gmd_written_names_free(gmd_written_names *written)
{
    for (uint32_t i = 0; i < written->count && written->items; i++) {
        free(written->items[i]);
    }
    free(written->items);
    *written = (gmd_written_names){0};
}
