#include "result_values.h"

#include "gmd_abi.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void gmd_result_refuse(gmd_result_reader *r, const gmd_json_value *at, const char *format, ...)
{
    char message[400];
    va_list values;
    if (r->status != GMD_OK) {
        return;
    }
    va_start(values, format);
    vsnprintf(message, sizeof message, format, values);
    va_end(values);
    r->status = gmd_json_fail_at(r->tree, at, r->error, "%s", message);
}

static void refuse_type(gmd_result_reader *r, const gmd_json_value *value, const char *key,
                        gmd_json_type expected)
{
    gmd_result_refuse(r, value, "\"%.60s\": expected %s, found %s", key,
                      gmd_json_type_name(expected), gmd_json_type_name(value->type));
}

const gmd_json_value *gmd_result_member(gmd_result_reader *r, const gmd_json_value *object,
                                        const char *key, gmd_json_type type, bool needed)
{
    bool is_twice;
    if (r->status != GMD_OK || !object) {
        return NULL;
    }
    const gmd_json_value *value = gmd_json_member(r->tree, object, key, &is_twice);
    if (is_twice) {
        gmd_result_refuse(r, object, "the key \"%.60s\" is there twice", key);
    } else if (!value && needed) {
        gmd_result_refuse(r, object, "the key \"%.60s\" is missing", key);
    } else if (value && value->type != (int)type && (needed || value->type != GMD_JSON_NULL)) {
        refuse_type(r, value, key, type);
    }
    return r->status == GMD_OK && value && value->type == (int)type ? value : NULL;
}

void gmd_result_copy(gmd_result_reader *r, const gmd_json_value *value, char *text, size_t size)
{
    if (r->status != GMD_OK || !value) {
        return;
    }
    size_t length = strlen(value->text);
    if (length >= size) {
        length = size - 1;
        while (length && ((unsigned char)value->text[length] & 0xC0) == 0x80) {
            length--; /* no character's middle */
        }
    }
    memcpy(text, value->text, length);
    text[length] = '\0';
}

void gmd_result_text(gmd_result_reader *r, const gmd_json_value *object, const char *key,
                     char *text, size_t size)
{
    gmd_result_copy(r, gmd_result_member(r, object, key, GMD_JSON_STRING, true), text, size);
}

const char *gmd_result_string(gmd_result_reader *r, const gmd_json_value *object, const char *key)
{
    const gmd_json_value *value = gmd_result_member(r, object, key, GMD_JSON_STRING, true);
    return value ? value->text : "";
}

static uint64_t to_number(gmd_result_reader *r, const gmd_json_value *value, const char *key,
                          uint64_t most)
{
    uint64_t number = 0;
    if (value && (!gmd_json_to_u64(value, &number) || number > most)) {
        gmd_result_refuse(r, value, "\"%.60s\": expected a whole number from 0 to %" PRIu64, key,
                          most);
        return 0;
    }
    return number;
}

uint64_t gmd_result_number(gmd_result_reader *r, const gmd_json_value *object, const char *key,
                           uint64_t most)
{
    return to_number(r, gmd_result_member(r, object, key, GMD_JSON_NUMBER, true), key, most);
}

uint64_t gmd_result_figure(gmd_result_reader *r, const gmd_json_value *object, const char *key)
{
    const gmd_json_value *any = object ? gmd_json_member(r->tree, object, key, NULL) : NULL;
    bool is_needed = !any || any->type != GMD_JSON_NULL;
    const gmd_json_value *value = gmd_result_member(r, object, key, GMD_JSON_NUMBER, is_needed);
    return value ? to_number(r, value, key, UINT64_MAX - 1) : GMD_STAT_UNKNOWN;
}

bool gmd_result_bool(gmd_result_reader *r, const gmd_json_value *object, const char *key)
{
    const gmd_json_value *value = gmd_result_member(r, object, key, GMD_JSON_BOOL, true);
    return value && *value->text == 't';
}

double gmd_result_seconds(gmd_result_reader *r, const gmd_json_value *object, const char *key)
{
    const gmd_json_value *value = gmd_result_member(r, object, key, GMD_JSON_NUMBER, true);
    double seconds = 0;
    if (value && (!gmd_json_to_double(value, &seconds) || seconds < 0 || seconds > 1e12)) {
        gmd_result_refuse(r, value, "\"%.60s\": expected a number of seconds", key);
        return 0;
    }
    return seconds;
}

int gmd_result_word(gmd_result_reader *r, const gmd_json_value *object, const char *key,
                    const char *const *words)
{
    char list[120] = "";
    size_t used = 0;
    const gmd_json_value *value = gmd_result_member(r, object, key, GMD_JSON_STRING, true);
    for (int i = 0; value && words[i]; i++) {
        if (strcmp(value->text, words[i]) == 0) {
            return i;
        }
        used +=
            (size_t)snprintf(list + used, sizeof list - used, "%s\"%s\"", i ? ", " : "", words[i]);
    }
    if (value) {
        gmd_result_refuse(r, value, "\"%.60s\": expected one of %s, found \"%.60s\"", key, list,
                          value->text);
    }
    return 0;
}

const gmd_json_value *gmd_result_array(gmd_result_reader *r, const gmd_json_value *object,
                                       const char *key, gmd_json_type type, uint32_t most)
{
    const gmd_json_value *array = gmd_result_member(r, object, key, GMD_JSON_ARRAY, true);
    if (!array) {
        return NULL;
    }
    if (array->count > most) {
        gmd_result_refuse(r, array, "\"%.60s\": has %" PRIu32 " values, expected up to %" PRIu32,
                          key, array->count, most);
        return NULL;
    }
    const gmd_json_value *first = gmd_json_first(r->tree, array);
    for (const gmd_json_value *v = first; v; v = gmd_json_next(r->tree, v)) {
        if (v->type != (int)type) {
            refuse_type(r, v, key, type);
            return NULL;
        }
    }
    return first;
}
