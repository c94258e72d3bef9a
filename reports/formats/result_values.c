#include "result_values.h"

#include "gmd_abi.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* --- places ------------------------------------------------------------------------------ */

typedef struct place {
    char text[160]; /* "scenarios[2].check" */
    size_t used;
} place;

static bool find(const json_t *in, const json_t *target, place *p);

__attribute__((format(printf, 4, 5))) static bool find_below(const json_t *in, const json_t *target,
                                                             place *p, const char *format, ...)
{
    const size_t before = p->used;
    va_list values;
    va_start(values, format);
    int length = vsnprintf(p->text + before, sizeof p->text - before, format, values);
    va_end(values);
    size_t room = sizeof p->text - 1 - before;
    p->used += (size_t)length < room ? (size_t)length : room;
    if (find(in, target, p)) {
        return true;
    }
    p->used = before;
    p->text[before] = '\0';
    return false;
}

/* As deep as jansson reads (JSON_PARSER_MAX_DEPTH). */
static bool find(const json_t *in, const json_t *target, place *p)
{
    if (in == target) {
        return true;
    }
    for (size_t i = 0; i < json_array_size(in); i++) {
        if (find_below(json_array_get(in, i), target, p, "[%zu]", i)) {
            return true;
        }
    }
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)in, key, value)
    {
        if (find_below(value, target, p, "%s%.60s", p->used ? "." : "", key)) {
            return true;
        }
    }
    return false;
}

void result_refuse(result_reader *r, const json_t *at, const char *format, ...)
{
    char message[400];
    place where = {0};
    va_list values;
    if (r->status != GMD_OK) {
        return;
    }
    va_start(values, format);
    vsnprintf(message, sizeof message, format, values);
    va_end(values);
    find(r->root, at, &where);
    r->status = gmd_fail(r->error, GMD_BAD_INPUT, "%.200s: %s%s%s", r->name, where.text,
                         where.used ? ": " : "", message);
}

/* --- values ------------------------------------------------------------------------------ */

static const char *name_of_type(result_type type)
{
    static const char *const names[] = {"true or false", "a number", "a string", "an array",
                                        "an object"};
    return names[type];
}

static bool is_of_type(const json_t *value, result_type type)
{
    switch (type) {
    case RESULT_BOOL:
        return json_is_boolean(value);
    case RESULT_NUMBER:
        return json_is_number(value);
    case RESULT_STRING:
        return json_is_string(value);
    case RESULT_ARRAY:
        return json_is_array(value);
    default:
        return json_is_object(value);
    }
}

static const char *name_of(const json_t *value)
{
    for (result_type type = RESULT_BOOL; type <= RESULT_OBJECT; type++) {
        if (is_of_type(value, type)) {
            return name_of_type(type);
        }
    }
    return "null";
}

const json_t *result_member(result_reader *r, const json_t *object, const char *key,
                            result_type type, bool needed)
{
    if (r->status != GMD_OK || !object) {
        return NULL;
    }
    const json_t *value = json_object_get(object, key);
    if (!value && needed) {
        result_refuse(r, object, "the key \"%.60s\" is missing", key);
    } else if (value && !is_of_type(value, type) && (needed || !json_is_null(value))) {
        result_refuse(r, object, "\"%.60s\": expected %s, found %s", key, name_of_type(type),
                      name_of(value));
    }
    return r->status == GMD_OK && value && is_of_type(value, type) ? value : NULL;
}

void result_copy(result_reader *r, const json_t *string, char *text, size_t size)
{
    if (r->status != GMD_OK || !string) {
        return;
    }
    const char *whole = json_string_value(string);
    size_t length = strlen(whole);
    if (length >= size) {
        length = size - 1;
        while (length && ((unsigned char)whole[length] & 0xC0) == 0x80) {
            length--; /* no character's middle */
        }
    }
    memcpy(text, whole, length);
    text[length] = '\0';
}

void result_text(result_reader *r, const json_t *object, const char *key, char *text, size_t size)
{
    result_copy(r, result_member(r, object, key, RESULT_STRING, true), text, size);
}

const char *result_string(result_reader *r, const json_t *object, const char *key)
{
    const json_t *value = result_member(r, object, key, RESULT_STRING, true);
    return value ? json_string_value(value) : "";
}

static uint64_t to_number(result_reader *r, const json_t *object, const json_t *value,
                          const char *key, uint64_t most)
{
    if (value && (!json_is_integer(value) || json_integer_value(value) < 0 ||
                  (uint64_t)json_integer_value(value) > most)) {
        result_refuse(r, object, "\"%.60s\": expected a whole number from 0 to %" PRIu64, key,
                      most);
        return 0;
    }
    return (uint64_t)json_integer_value(value);
}

uint64_t result_number(result_reader *r, const json_t *object, const char *key, uint64_t most)
{
    const json_t *value = result_member(r, object, key, RESULT_NUMBER, true);
    return to_number(r, object, value, key, most);
}

uint64_t result_figure(result_reader *r, const json_t *object, const char *key)
{
    bool is_needed = !json_is_null(json_object_get(object, key));
    const json_t *value = result_member(r, object, key, RESULT_NUMBER, is_needed);
    return value ? to_number(r, object, value, key, UINT64_MAX) : GMD_STAT_UNKNOWN;
}

bool result_bool(result_reader *r, const json_t *object, const char *key)
{
    return json_is_true(result_member(r, object, key, RESULT_BOOL, true));
}

double result_seconds(result_reader *r, const json_t *object, const char *key)
{
    const json_t *value = result_member(r, object, key, RESULT_NUMBER, true);
    double seconds = json_number_value(value);
    if (value && !(seconds >= 0 && seconds <= 1e12)) {
        result_refuse(r, object, "\"%.60s\": expected a number of seconds", key);
        return 0;
    }
    return seconds;
}

double result_quantity(result_reader *r, const json_t *object, const char *key)
{
    const json_t *value = result_member(r, object, key, RESULT_NUMBER, true);
    double quantity = json_number_value(value);
    if (value && !(quantity >= 0 && quantity <= RESULT_QUANTITY_MAX)) {
        result_refuse(r, object, "\"%.60s\": expected a number from 0 to 2^63", key);
        return 0;
    }
    return quantity;
}

unsigned result_word(result_reader *r, const json_t *object, const char *key,
                     const char *const *words)
{
    char list[120] = "";
    size_t used = 0;
    const char *word = result_string(r, object, key);
    for (unsigned i = 0; r->status == GMD_OK && words[i]; i++) {
        if (strcmp(word, words[i]) == 0) {
            return i;
        }
        used +=
            (size_t)snprintf(list + used, sizeof list - used, "%s\"%s\"", i ? ", " : "", words[i]);
    }
    result_refuse(r, object, "\"%.60s\": expected one of %s, found \"%.60s\"", key, list, word);
    return 0;
}

const json_t *result_array(result_reader *r, const json_t *object, const char *key,
                           result_type type, size_t most)
{
    const json_t *array = result_member(r, object, key, RESULT_ARRAY, true);
    if (json_array_size(array) > most) {
        result_refuse(r, array, "%zu values, expected up to %zu", json_array_size(array), most);
        return NULL;
    }
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *value = json_array_get(array, i);
        if (!is_of_type(value, type)) {
            result_refuse(r, array, "[%zu]: expected %s, found %s", i, name_of_type(type),
                          name_of(value));
            return NULL;
        }
    }
    return array;
}

/* --- of several values ------------------------------------------------------------------- */

void result_oracles(result_reader *r, const json_t *object, gmd_oracle_result *oracles,
                    uint32_t *count)
{
    static const char *const fates[] = {"pass", "fail", "skipped", NULL}; /* gmd_oracle_fate */
    if (object && !json_object_get(object, "oracles")) {
        result_refuse(
            r, object,
            "the key \"oracles\" is missing: an earlier gmd wrote this, without what each "
            "oracle said; give what was run instead");
        return;
    }
    const json_t *all = result_array(r, object, "oracles", RESULT_OBJECT, GMD_ORACLE_MAX);
    for (size_t i = 0; i < json_array_size(all) && r->status == GMD_OK; i++) {
        const json_t *v = json_array_get(all, i);
        gmd_oracle_result *result = &oracles[(*count)++];
        result_text(r, v, "name", result->name, sizeof result->name);
        result->fate = result_word(r, v, "verdict", fates);
        if (result->fate == GMD_ORACLE_SKIPPED) {
            result_text(r, v, "reason", result->reason, sizeof result->reason);
        }
        if (result_member(r, v, "asked", RESULT_NUMBER, false)) {
            result->asked = result_number(r, v, "asked", INT64_MAX);
            result->seconds = result_seconds(r, v, "seconds");
        }
    }
}

static bool is_of_oracle(const char *kind, const char *oracle)
{
    size_t length = strlen(oracle);
    return strncmp(kind, oracle, length) == 0 && kind[length] == '.';
}

void result_identity(result_reader *r, const json_t *object, const char *oracle,
                     gmd_identity *identity)
{
    const json_t *kind = result_member(r, object, "kind", RESULT_STRING, false);
    const json_t *parties = result_member(r, object, "parties", RESULT_OBJECT, false);
    const char *name;
    json_t *value;
    result_copy(r, kind, identity->kind, sizeof identity->kind);
    if (kind && !is_of_oracle(identity->kind, oracle)) {
        result_refuse(r, object, "\"kind\": expected one of the oracle \"%s\", found \"%s\"",
                      oracle, identity->kind);
        return;
    }
    if (json_object_size(parties) > GMD_PARTY_MAX) {
        result_refuse(r, object, "\"parties\": %zu values, expected up to %d",
                      json_object_size(parties), GMD_PARTY_MAX);
        return;
    }
    json_object_foreach((json_t *)parties, name, value)
    {
        if (!json_is_string(value)) {
            result_refuse(r, object, "\"parties\": expected strings");
            return;
        }
        gmd_identity_add(identity, name, json_string_value(value));
    }
}

void result_moment(result_reader *r, const json_t *object, gmd_violation *violation)
{
    violation->request = result_number(r, object, "request", UINT64_MAX);
    violation->is_at_end =
        result_member(r, object, "at_end", RESULT_BOOL, false) && result_bool(r, object, "at_end");
}

void result_limit(result_reader *r, const json_t *object, gmd_violation *violation)
{
    size_t used = 0;
    if (!result_member(r, object, "limit", RESULT_ARRAY, false)) {
        return;
    }
    const json_t *all = result_array(r, object, "limit", RESULT_STRING, 32);
    for (size_t i = 0; i < json_array_size(all) && used < sizeof violation->limit; i++) {
        used += (size_t)snprintf(violation->limit + used, sizeof violation->limit - used, "%s%s",
                                 i ? "," : "", json_string_value(json_array_get(all, i)));
    }
}

void result_fail_memory(result_reader *r)
{
    if (r->status == GMD_OK) {
        r->status = gmd_fail(r->error, GMD_NO_MEMORY, "%.200s: no host memory to read it", r->name);
    }
}

void result_listing(result_reader *r, const json_t *object, gmd_case_listing *listing)
{
    if (!result_member(r, object, "case_lines", RESULT_ARRAY, false)) {
        return;
    }
    const json_t *all = result_array(r, object, "case_lines", RESULT_OBJECT, GMD_CASE_LINES);
    for (size_t i = 0; i < json_array_size(all) && r->status == GMD_OK; i++) {
        const json_t *v = json_array_get(all, i);
        gmd_case_line *line = &listing->lines[listing->count++];
        bool is_request = result_member(r, v, "request", RESULT_NUMBER, false) != NULL;
        line->line = (uint32_t)result_number(r, v, "line", UINT32_MAX);
        line->request = is_request ? result_number(r, v, "request", UINT64_MAX) : UINT64_MAX;
        result_text(r, v, "text", line->text, sizeof line->text);
        result_copy(r, result_member(r, v, "answer", RESULT_STRING, false), line->answer,
                    sizeof line->answer);
        line->is_failing = result_bool(r, v, "failing");
    }
}
