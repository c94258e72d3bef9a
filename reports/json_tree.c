#include "json_tree.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gmd_json_tree {
    char *text; /* strings are decoded in place: what they stand for is never longer */
    size_t size;
    const char *name;
    gmd_json_value *values;
    size_t count, capacity;
};

typedef struct parser {
    gmd_json_tree *tree;
    size_t at, line_start;
    uint32_t line;
    int depth;
    gmd_error *error;
} parser;

/* --- messages ---------------------------------------------------------------------------- */

typedef struct place {
    uint32_t line, column;
} place;

__attribute__((format(printf, 4, 0))) static gmd_status
fail_at(const gmd_json_tree *tree, place at, gmd_error *error, const char *format, va_list values)
{
    char message[500];
    vsnprintf(message, sizeof message, format, values);
    return gmd_fail(error, GMD_BAD_INPUT, "%.200s:%" PRIu32 ":%" PRIu32 ": %s", tree->name, at.line,
                    at.column, message);
}

gmd_status gmd_json_fail_at(const gmd_json_tree *tree, const gmd_json_value *value,
                            gmd_error *error, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    gmd_status status = fail_at(tree, (place){value->line, value->column}, error, format, values);
    va_end(values);
    return status;
}

static place here(const parser *p)
{
    return (place){p->line, (uint32_t)(p->at - p->line_start) + 1};
}

__attribute__((format(printf, 2, 3))) static gmd_status refuse(const parser *p, const char *format,
                                                               ...)
{
    va_list values;
    va_start(values, format);
    (void)fail_at(p->tree, here(p), p->error, format, values);
    va_end(values);
    return GMD_BAD_INPUT;
}

static gmd_status refuse_next(const parser *p, const char *expected)
{
    unsigned char c = (unsigned char)p->tree->text[p->at];
    if (p->at >= p->tree->size) {
        return refuse(p, "expected %s, found the end of the file", expected);
    }
    if (isprint(c)) {
        return refuse(p, "expected %s, found '%c'", expected, c);
    }
    return refuse(p, "expected %s, found the byte 0x%02X", expected, c);
}

/* --- values ------------------------------------------------------------------------------ */

static char next_of(const parser *p)
{
    return p->tree->text[p->at]; /* 0 at the end */
}

/* A line ends nowhere else: in a string its end is an escape. */
static void skip_blanks(parser *p)
{
    for (; next_of(p) && strchr(" \t\r\n", next_of(p)); p->at++) {
        if (next_of(p) == '\n') {
            p->line++;
            p->line_start = p->at + 1;
        }
    }
}

static gmd_status add_value(parser *p, int type, const char *key, uint32_t *index)
{
    gmd_json_tree *t = p->tree;
    *index = 0;
    if (t->count == GMD_JSON_TREE_VALUES) {
        return refuse(p, "more than %u values", GMD_JSON_TREE_VALUES);
    }
    if (t->count == t->capacity) {
        size_t capacity = t->capacity ? 2 * t->capacity : 64;
        gmd_json_value *values = realloc(t->values, capacity * sizeof *values);
        if (!values) {
            gmd_fail(p->error, GMD_NO_MEMORY, "%.200s: no host memory to read it", t->name);
            return GMD_NO_MEMORY;
        }
        t->values = values;
        t->capacity = capacity;
    }
    *index = (uint32_t)t->count;
    t->values[t->count++] = (gmd_json_value){.type = type,
                                             .key = key,
                                             .text = t->text + p->at,
                                             .line = here(p).line,
                                             .column = here(p).column};
    return GMD_OK;
}

static bool take_word(parser *p, const char *word)
{
    size_t length = strlen(word);
    if (strncmp(p->tree->text + p->at, word, length) != 0) {
        return false;
    }
    p->at += length;
    return true;
}

static bool take_digits(parser *p)
{
    size_t start = p->at;
    while (isdigit((unsigned char)next_of(p))) {
        p->at++;
    }
    return p->at > start;
}

static gmd_status parse_number(parser *p)
{
    p->at += next_of(p) == '-';
    if (next_of(p) == '0') {
        p->at++;
    } else if (!take_digits(p)) {
        return refuse_next(p, "a digit");
    }
    if (next_of(p) == '.') {
        p->at++;
        if (!take_digits(p)) {
            return refuse_next(p, "a digit after the point");
        }
    }
    if (next_of(p) == 'e' || next_of(p) == 'E') {
        p->at++;
        p->at += next_of(p) == '+' || next_of(p) == '-';
        if (!take_digits(p)) {
            return refuse_next(p, "a digit of the exponent");
        }
    }
    return GMD_OK;
}

/* --- strings ----------------------------------------------------------------------------- */

static gmd_status parse_hex(parser *p, uint32_t *unit)
{
    *unit = 0;
    for (int i = 0; i < 4; i++, p->at++) {
        char c = next_of(p);
        if (!isxdigit((unsigned char)c)) {
            return refuse_next(p, "four hexadecimal digits after \\u");
        }
        *unit =
            *unit * 16 + (uint32_t)(isdigit((unsigned char)c) ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return GMD_OK;
}

/* UTF-8 into the text, which has room: the escape was longer. */
static char *put_character(char *to, uint32_t c)
{
    if (c < 0x80) {
        *to++ = (char)c;
    } else if (c < 0x800) {
        *to++ = (char)(0xC0 | c >> 6);
        *to++ = (char)(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
        *to++ = (char)(0xE0 | c >> 12);
        *to++ = (char)(0x80 | (c >> 6 & 0x3F));
        *to++ = (char)(0x80 | (c & 0x3F));
    } else {
        *to++ = (char)(0xF0 | c >> 18);
        *to++ = (char)(0x80 | (c >> 12 & 0x3F));
        *to++ = (char)(0x80 | (c >> 6 & 0x3F));
        *to++ = (char)(0x80 | (c & 0x3F));
    }
    return to;
}

static gmd_status parse_code(parser *p, char **to)
{
    uint32_t code, low;
    gmd_status status = parse_hex(p, &code);
    if (status == GMD_OK && code >= 0xD800 && code < 0xDC00 && take_word(p, "\\u")) {
        status = parse_hex(p, &low);
        bool is_pair = status == GMD_OK && low >= 0xDC00 && low < 0xE000;
        code = is_pair ? 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00) : 0xD800;
    }
    if (status != GMD_OK) {
        return status;
    }
    if (code == 0 || (code >= 0xD800 && code < 0xE000)) {
        return refuse(p, "\\u stands for no character that a text can have");
    }
    *to = put_character(*to, code);
    return GMD_OK;
}

static gmd_status parse_escape(parser *p, char **to)
{
    static const char names[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    char c = next_of(p);
    if (c == 'u') {
        p->at++;
        return parse_code(p, to);
    }
    const char *found = c ? strchr(names, c) : NULL;
    if (!found) {
        return refuse_next(p, "one of \"\\/bfnrtu after a backslash");
    }
    p->at++;
    *(*to)++ = meant[found - names];
    return GMD_OK;
}

static gmd_status parse_string(parser *p, const char **text)
{
    if (next_of(p) != '"') {
        return refuse_next(p, "a string");
    }
    char *to = p->tree->text + ++p->at;
    *text = to;
    while (next_of(p) != '"') {
        gmd_status status = GMD_OK;
        if ((unsigned char)next_of(p) < 0x20) {
            status = refuse_next(p, "a character of a string, or its end");
        } else if (next_of(p) == '\\') {
            p->at++;
            status = parse_escape(p, &to);
        } else {
            *to++ = p->tree->text[p->at++];
        }
        if (status != GMD_OK) {
            return status;
        }
    }
    *to = '\0'; /* on the quote at the latest, which is read */
    p->at++;
    return GMD_OK;
}

/* --- what holds others ------------------------------------------------------------------- */

static gmd_status parse_value(parser *p, const char *key, uint32_t *index);

static gmd_status parse_key(parser *p, const char **key)
{
    gmd_status status = parse_string(p, key);
    if (status != GMD_OK) {
        return status;
    }
    skip_blanks(p);
    if (next_of(p) != ':') {
        return refuse_next(p, "':'");
    }
    p->at++;
    skip_blanks(p);
    return GMD_OK;
}

static gmd_status parse_members(parser *p, uint32_t parent, bool is_object, char end)
{
    const char *key = NULL;
    uint32_t index, previous = 0;
    for (;;) {
        gmd_status status = is_object ? parse_key(p, &key) : GMD_OK;
        status = status == GMD_OK ? parse_value(p, key, &index) : status;
        if (status != GMD_OK) {
            return status;
        }
        p->tree->values[parent].count++;
        if (previous) {
            p->tree->values[previous].next = index;
        }
        previous = index;
        skip_blanks(p);
        if (next_of(p) == end) {
            p->at++;
            return GMD_OK;
        }
        if (next_of(p) != ',') {
            return refuse_next(p, is_object ? "',' or '}'" : "',' or ']'");
        }
        p->at++;
        skip_blanks(p);
    }
}

static gmd_status parse_holder(parser *p, uint32_t parent)
{
    bool is_object = next_of(p) == '{';
    char end = is_object ? '}' : ']';
    if (++p->depth > GMD_JSON_TREE_DEPTH) {
        return refuse(p, "brackets more than %d deep", GMD_JSON_TREE_DEPTH);
    }
    p->at++;
    skip_blanks(p);
    gmd_status status = GMD_OK;
    if (next_of(p) == end) {
        p->at++;
    } else {
        status = parse_members(p, parent, is_object, end);
    }
    p->depth--;
    return status;
}

/* NOLINTNEXTLINE(misc-no-recursion): no deeper than GMD_JSON_TREE_DEPTH */
static gmd_status parse_value(parser *p, const char *key, uint32_t *index)
{
    char c = next_of(p);
    int type = c == '{'                             ? GMD_JSON_OBJECT
               : c == '['                           ? GMD_JSON_ARRAY
               : c == '"'                           ? GMD_JSON_STRING
               : c == '-' || (c >= '0' && c <= '9') ? GMD_JSON_NUMBER
               : c == 'n'                           ? GMD_JSON_NULL
                                                    : GMD_JSON_BOOL;
    gmd_status status = add_value(p, type, key, index);
    if (status != GMD_OK) {
        return status;
    }
    switch (type) {
    case GMD_JSON_OBJECT:
    case GMD_JSON_ARRAY:
        return parse_holder(p, *index);
    case GMD_JSON_STRING:
        return parse_string(p, &p->tree->values[*index].text);
    case GMD_JSON_NUMBER:
        return parse_number(p);
    default:
        break;
    }
    if (take_word(p, "null") || take_word(p, "true") || take_word(p, "false")) {
        return GMD_OK;
    }
    return refuse_next(p, "a value");
}

static gmd_status parse_document(parser *p)
{
    uint32_t root;
    skip_blanks(p);
    gmd_status status = parse_value(p, NULL, &root);
    skip_blanks(p);
    if (status == GMD_OK && p->at != p->tree->size) {
        return refuse_next(p, "the end of the file");
    }
    return status;
}

gmd_status gmd_json_tree_parse(gmd_json_tree **tree, char *text, size_t size, const char *name,
                               gmd_error *error)
{
    *tree = calloc(1, sizeof **tree);
    if (!*tree) {
        free(text);
        return gmd_fail(error, GMD_NO_MEMORY, "%.200s: no host memory to read it", name);
    }
    **tree = (gmd_json_tree){.text = text, .size = size, .name = name};
    parser p = {.tree = *tree, .line = 1, .error = error};
    gmd_status status = parse_document(&p);
    if (status != GMD_OK) {
        gmd_json_tree_free(*tree);
        *tree = NULL;
    }
    return status;
}

void gmd_json_tree_free(gmd_json_tree *tree)
{
    if (tree) {
        free(tree->values);
        free(tree->text);
        free(tree);
    }
}

/* --- reading ----------------------------------------------------------------------------- */

const gmd_json_value *gmd_json_root(const gmd_json_tree *tree)
{
    return &tree->values[0];
}

const gmd_json_value *gmd_json_first(const gmd_json_tree *tree, const gmd_json_value *parent)
{
    (void)tree;
    return parent->count ? parent + 1 : NULL;
}

const gmd_json_value *gmd_json_next(const gmd_json_tree *tree, const gmd_json_value *value)
{
    return value->next ? &tree->values[value->next] : NULL;
}

const gmd_json_value *gmd_json_member(const gmd_json_tree *tree, const gmd_json_value *object,
                                      const char *key, bool *is_twice)
{
    const gmd_json_value *found = NULL, *v = gmd_json_first(tree, object);
    bool again = false;
    for (; object->type == GMD_JSON_OBJECT && v; v = gmd_json_next(tree, v)) {
        if (strcmp(v->key, key) == 0) {
            again = found != NULL;
            found = found ? found : v;
        }
    }
    if (is_twice) {
        *is_twice = again;
    }
    return found;
}

bool gmd_json_to_u64(const gmd_json_value *value, uint64_t *number)
{
    const char *c = value->text;
    uint64_t sum = 0;
    if (value->type != GMD_JSON_NUMBER || !isdigit((unsigned char)*c)) {
        return false;
    }
    for (; isdigit((unsigned char)*c); c++) {
        uint64_t digit = (uint64_t)(*c - '0');
        if (sum > (UINT64_MAX - digit) / 10) {
            return false;
        }
        sum = sum * 10 + digit;
    }
    *number = sum;
    return *c != '.' && *c != 'e' && *c != 'E';
}

bool gmd_json_to_double(const gmd_json_value *value, double *number)
{
    if (value->type != GMD_JSON_NUMBER) {
        return false;
    }
    *number = strtod(value->text, NULL); /* a number of JSON's grammar is one of C's */
    return isfinite(*number);
}

const char *gmd_json_type_name(int type)
{
    static const char *const names[] = {"null",     "true or false", "a number",
                                        "a string", "an array",      "an object"};
    return names[type];
}
