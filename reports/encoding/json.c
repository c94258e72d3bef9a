#include "gmd_json.h"

#include "gmd_assert.h"
#include "gmd_report_text.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>

static void put_quoted(const char *text, FILE *out)
{
    putc('"', out);
    for (uint32_t c = gmd_utf8_next(&text); c; c = gmd_utf8_next(&text)) {
        if (c == '"' || c == '\\') {
            putc('\\', out);
            gmd_utf8_put(c, out);
        } else if (c == '\n') {
            fputs("\\n", out);
        } else if (c == '\t') {
            fputs("\\t", out);
        } else if (c < 0x20 || c == 0x7F) {
            fprintf(out, "\\u%04" PRIx32, c);
        } else {
            gmd_utf8_put(c, out);
        }
    }
    putc('"', out);
}

static void new_line(gmd_json *json)
{
    fprintf(json->out, "\n%*s", 2 * json->depth, "");
}

/* Everything that stands before a value: the comma after the previous member, the line, the key. */
static void begin_member(gmd_json *json, const char *key)
{
    GMD_ASSERT(json->depth == 0 ? !key : json->levels[json->depth - 1].is_object == (key != NULL),
               "members of objects, and nothing else, have a key");
    if (json->depth > 0) {
        bool one_line = json->levels[json->depth - 1].one_line;
        if (json->levels[json->depth - 1].has_members) {
            fputs(one_line ? ", " : ",", json->out);
        }
        json->levels[json->depth - 1].has_members = true;
        if (!one_line) {
            new_line(json);
        }
    }
    if (key) {
        put_quoted(key, json->out);
        fputs(": ", json->out);
    }
}

static void open_level(gmd_json *json, const char *key, bool is_object, bool one_line)
{
    begin_member(json, key);
    GMD_ASSERT(json->depth < GMD_JSON_DEPTH_MAX, "there is a level left");
    bool inherited = json->depth > 0 && json->levels[json->depth - 1].one_line;
    json->levels[json->depth].is_object = is_object;
    json->levels[json->depth].one_line = one_line || inherited;
    json->levels[json->depth].has_members = false;
    json->depth++;
    putc(is_object ? '{' : '[', json->out);
}

void gmd_json_start(gmd_json *json, FILE *out)
{
    *json = (gmd_json){.out = out};
}

void gmd_json_finish(gmd_json *json)
{
    GMD_ASSERT(json->depth == 0, "every object and list was ended");
    putc('\n', json->out);
}

void gmd_json_object(gmd_json *json, const char *key)
{
    open_level(json, key, true, false);
}

void gmd_json_array(gmd_json *json, const char *key)
{
    open_level(json, key, false, false);
}

void gmd_json_row(gmd_json *json, const char *key)
{
    open_level(json, key, true, true);
}

void gmd_json_end(gmd_json *json)
{
    GMD_ASSERT(json->depth > 0, "what is ended was begun");
    json->depth--;
    if (json->levels[json->depth].has_members && !json->levels[json->depth].one_line) {
        new_line(json);
    }
    putc(json->levels[json->depth].is_object ? '}' : ']', json->out);
}

void gmd_json_string(gmd_json *json, const char *key, const char *value)
{
    begin_member(json, key);
    if (value) {
        put_quoted(value, json->out);
    } else {
        fputs("null", json->out);
    }
}

void gmd_json_i64(gmd_json *json, const char *key, int64_t value)
{
    begin_member(json, key);
    fprintf(json->out, "%" PRId64, value);
}

void gmd_json_u64(gmd_json *json, const char *key, uint64_t value)
{
    begin_member(json, key);
    fprintf(json->out, "%" PRIu64, value);
}

void gmd_json_double(gmd_json *json, const char *key, double value)
{
    begin_member(json, key);
    if (isfinite(value)) {
        fprintf(json->out, "%.6f", value);
    } else {
        fputs("null", json->out);
    }
}

void gmd_json_exact(gmd_json *json, const char *key, double value)
{
    char text[32];
    if (!isfinite(value) || fabs(value) >= 1e15) {
        gmd_json_double(json, key, value);
        return;
    }
    snprintf(text, sizeof text, "%.6f", value);
    for (int digits = 15; digits <= 17 && strtod(text, NULL) != value; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
    }
    begin_member(json, key);
    fputs(text, json->out);
}

void gmd_json_bool(gmd_json *json, const char *key, bool value)
{
    begin_member(json, key);
    fputs(value ? "true" : "false", json->out);
}

void gmd_json_null(gmd_json *json, const char *key)
{
    gmd_json_string(json, key, NULL);
}
