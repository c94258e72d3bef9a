/* parse.c - tables of workspaces from text, which anybody may have written (docs/workspaces.md). */
#include "fields.h"
#include "table.h"

#include "gmd_file.h"
#include "gmd_spelling.h"
#include "gmd_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LINES_MAX    UINT32_MAX
#define BYTES_MAX    ((uint64_t)1 << 50)
#define SHOWN        60 /* characters of what a message quotes */
#define ORIGIN_CHARS 200

typedef struct token {
    const char *text;
    size_t length;
} token;

typedef struct parser {
    const char *name;
    const char *at, *end; /* of the line that is read */
    size_t line;
    gmd_workspaces *table;
    gmd_error *error;
    gmd_status status;
} parser;

/* --- messages ---------------------------------------------------------------------------- */

static bool refuse(parser *p, const char *what, token found)
{
    if (found.length == 0) {
        found = (token){"the end of the line", 19};
    }
    int shown = (int)(found.length < SHOWN ? found.length : SHOWN);
    p->status = gmd_fail(p->error, GMD_BAD_INPUT, "%s:%zu: expected %s, found '%.*s'%s", p->name,
                         p->line, what, shown, found.text, found.length > SHOWN ? "..." : "");
    return false;
}

static bool refuse_line(parser *p, const char *what)
{
    p->status = gmd_fail(p->error, GMD_BAD_INPUT, "%s:%zu: %s", p->name, p->line, what);
    return false;
}

static bool refuse_memory(parser *p)
{
    p->status =
        gmd_fail(p->error, GMD_NO_MEMORY, "%s:%zu: no host memory for the table", p->name, p->line);
    return false;
}

/* --- words ------------------------------------------------------------------------------- */

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* The next word of the line; of no length at its end or at a comment. */
static token next_word(parser *p)
{
    while (p->at < p->end && is_space(*p->at)) {
        p->at++;
    }
    const char *from = p->at;
    if (from < p->end && *from == '#') {
        p->at = p->end;
        return (token){from, 0};
    }
    while (p->at < p->end && !is_space(*p->at)) {
        p->at++;
    }
    return (token){from, (size_t)(p->at - from)};
}

static bool is_word(token t, const char *word)
{
    return strlen(word) == t.length && memcmp(t.text, word, t.length) == 0;
}

static bool number_of(token t, uint64_t most, uint64_t *number)
{
    uint64_t value = 0;
    for (size_t i = 0; i < t.length; i++) {
        uint64_t digit = (uint64_t)(unsigned char)t.text[i] - '0';
        if (digit > 9 || value > (most - digit) / 10) {
            return false;
        }
        value = 10 * value + digit;
    }
    *number = value;
    return t.length > 0;
}

/* --- fields ------------------------------------------------------------------------------ */

static bool take_named(parser *p, const workspace_field *field, token value, int64_t *number)
{
    char expected[128] = "";
    size_t used = 0;
    for (int64_t i = 0; field->words[i]; i++) {
        if (is_word(value, field->words[i])) {
            *number = i;
            return true;
        }
        used += (size_t)snprintf(expected + used, sizeof expected - used, "%s%s", i ? " or " : "",
                                 field->words[i]);
    }
    return refuse(p, expected, value);
}

static bool take_numbers(parser *p, const workspace_field *field, token value, int64_t *numbers)
{
    token rest = value;
    for (size_t i = 0; i < field->count; i++) {
        const char *x = rest.length ? memchr(rest.text, 'x', rest.length) : NULL;
        bool is_last = i + 1 == field->count;
        size_t length = x && !is_last ? (size_t)(x - rest.text) : rest.length;
        uint64_t number = 0;
        bool is_good = number_of((token){rest.text, length}, (uint64_t)field->most, &number) &&
                       (int64_t)number >= field->least && (x || is_last);
        if (!is_good) {
            char expected[96];
            snprintf(expected, sizeof expected, "%s=%s of %" PRId64 " to %" PRId64, field->name,
                     field->count == 1   ? "a number"
                     : field->count == 2 ? "HxW, each"
                                         : "four numbers, AxBxCxD, each",
                     field->least, field->most);
            return refuse(p, expected, value);
        }
        numbers[i] = (int64_t)number;
        rest = (token){rest.text + length + !is_last, rest.length - length - !is_last};
    }
    return true;
}

typedef struct line_fields {
    gmd_workspace item;
    uint32_t seen; /* bits by index in workspace_fields */
    bool has_bytes;
} line_fields;

static bool take_bytes(parser *p, token key, token value, line_fields *line, bool *is_taken)
{
    struct {
        const char *name;
        uint64_t *bytes;
        bool *has;
    } results[] = {{"bytes", &line->item.bytes, &line->has_bytes},
                   {"tried", &line->item.tried, &line->item.has_tried},
                   {"reserve", &line->item.reserve, &line->item.has_reserve}};
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        if (!is_word(key, results[i].name)) {
            continue;
        }
        *is_taken = true;
        if (*results[i].has) {
            return refuse(p, "each field once", key);
        }
        *results[i].has = true;
        return number_of(value, BYTES_MAX, results[i].bytes) ||
               refuse(p, "a number of bytes, of at most 1 PiB", value);
    }
    return true;
}

static bool refuse_field(parser *p, token key, int64_t op)
{
    char name[SHOWN + 1], message[160];
    gmd_near near;
    snprintf(name, sizeof name, "%.*s", (int)(key.length < SHOWN ? key.length : SHOWN), key.text);
    gmd_near_begin(&near, name);
    for (size_t i = 0; i < WORKSPACE_FIELDS; i++) {
        if (workspace_field_belongs(&workspace_fields[i], op)) {
            gmd_near_offer(&near, workspace_fields[i].name);
        }
    }
    snprintf(message, sizeof message, "a field of %s%s", workspace_op_names[op].family,
             gmd_near_text(&near));
    return refuse(p, message, key);
}

static bool take_field(parser *p, token word, line_fields *line)
{
    const char *equals = memchr(word.text, '=', word.length);
    if (!equals) {
        return refuse(p, "FIELD=VALUE or held", word);
    }
    token key = {word.text, (size_t)(equals - word.text)};
    token value = {equals + 1, word.length - key.length - 1};
    bool is_taken = false;
    if (!take_bytes(p, key, value, line, &is_taken)) {
        return false;
    }
    if (is_taken) {
        return true;
    }
    for (size_t i = 0; i < WORKSPACE_FIELDS; i++) {
        const workspace_field *field = &workspace_fields[i];
        if (!is_word(key, field->name) || !workspace_field_belongs(field, line->item.call.op)) {
            continue;
        }
        if (line->seen & (1U << i)) {
            return refuse(p, "each field once", key);
        }
        line->seen |= 1U << i;
        int64_t *numbers = workspace_numbers(&line->item.call, field);
        return field->words ? take_named(p, field, value, numbers)
                            : take_numbers(p, field, value, numbers);
    }
    return refuse_field(p, key, line->item.call.op);
}

static bool check_present(parser *p, const line_fields *line)
{
    char expected[64];
    for (size_t i = 0; i < WORKSPACE_FIELDS; i++) {
        if (workspace_field_belongs(&workspace_fields[i], line->item.call.op) &&
            !(line->seen & (1U << i))) {
            snprintf(expected, sizeof expected, "%s=", workspace_fields[i].name);
            return refuse(p, expected, (token){p->end, 0});
        }
    }
    return line->has_bytes || refuse(p, "bytes=", (token){p->end, 0});
}

/* What no call of cuDNN can be, lest a slip of the pen is never found. */
static bool check_sense(parser *p, const gmd_workspace *item)
{
    const gmd_workspace_call *call = &item->call;
    if (workspace_op_names[call->op].is_rnn) {
        return !item->has_tried || refuse_line(p, "tried= is of convolutions");
    }
    if (item->has_reserve) {
        return refuse_line(p, "reserve= is of RNNs");
    }
    if (item->has_tried && !call->benchmark) {
        return refuse_line(p, "tried= is of benchmark=on");
    }
    if (call->input[1] % call->groups || call->input[1] / call->groups != call->weight[1]) {
        return refuse_line(p, "the channels of in= are not those of weight= times groups=");
    }
    if (call->weight[0] % call->groups) {
        return refuse_line(p, "the first size of weight= is no multiple of groups=");
    }
    for (int i = 0; i < 2; i++) {
        int64_t reach = call->dilation[i] * (call->weight[2 + i] - 1) + 1; /* at most 2^62 */
        if (reach > call->input[2 + i] + 2 * call->padding[i]) {
            return refuse_line(p, "the kernel of weight= is larger than the padded in=");
        }
    }
    return true;
}

/* --- lines ------------------------------------------------------------------------------- */

static bool add_item(parser *p, gmd_workspace *item)
{
    const gmd_workspace *earlier;
    item->line = p->line;
    if (!workspaces_add(p->table, item, &earlier)) {
        return refuse_memory(p);
    }
    if (!earlier || (earlier->bytes == item->bytes && earlier->tried == item->tried &&
                     earlier->reserve == item->reserve && earlier->is_held == item->is_held)) {
        return true;
    }
    char message[96];
    snprintf(message, sizeof message, "line %zu says otherwise of the same call", earlier->line);
    return refuse_line(p, message);
}

static bool take_op(parser *p, token family, int64_t *op)
{
    bool is_family = is_word(family, "conv") || is_word(family, "rnn");
    if (!is_family) {
        return refuse(p, "conv or rnn", family);
    }
    token direction = next_word(p);
    for (*op = 0; *op < GMD_WORKSPACE_OPS; (*op)++) {
        if (is_word(family, workspace_op_names[*op].family) &&
            is_word(direction, workspace_op_names[*op].direction)) {
            return true;
        }
    }
    return refuse(p,
                  is_word(family, "rnn") ? "forward or backward"
                                         : "forward, backward_data or backward_weight",
                  direction);
}

static bool take_call(parser *p, token family)
{
    line_fields line = {.has_bytes = false};
    if (!take_op(p, family, &line.item.call.op)) {
        return false;
    }
    for (token word = next_word(p); word.length; word = next_word(p)) {
        if (is_word(word, "held") && !line.item.is_held) {
            line.item.is_held = true;
        } else if (!take_field(p, word, &line)) {
            return false;
        }
    }
    return check_present(p, &line) && check_sense(p, &line.item) && add_item(p, &line.item);
}

static bool take_version(parser *p, token word)
{
    return (is_word(word, "gmd-workspaces") && is_word(next_word(p), "1") &&
            next_word(p).length == 0) ||
           refuse_line(p, "expected 'gmd-workspaces 1', the first line of a table of workspaces");
}

/* The rest of the line without the spaces around it: names of GPUs have some within. */
static bool take_origin(parser *p, int which)
{
    const char *from = p->at, *to = p->end;
    while (from < to && is_space(*from)) {
        from++;
    }
    while (to > from && is_space(to[-1])) {
        to--;
    }
    if (p->table->origins[which]) {
        return refuse(
            p, "each line of the head once",
            (token){workspace_origin_names[which], strlen(workspace_origin_names[which])});
    }
    size_t length = (size_t)(to - from);
    if (length == 0 || length > ORIGIN_CHARS || memchr(from, '\0', length)) {
        return refuse_line(p, "expected a name of 1 to 200 characters");
    }
    p->table->origins[which] = gmd_text_copy(from, length);
    return p->table->origins[which] || refuse_memory(p);
}

static bool check_head(parser *p)
{
    for (int i = 0; i < WORKSPACE_ORIGINS; i++) {
        if (!p->table->origins[i]) {
            char message[96];
            snprintf(message, sizeof message,
                     "expected gpu, cudnn and torch before the calls, found no '%s'",
                     workspace_origin_names[i]);
            return refuse_line(p, message);
        }
    }
    return true;
}

static bool take_line(parser *p, bool *has_version)
{
    token word = next_word(p);
    if (word.length == 0) {
        return true;
    }
    if (!*has_version) {
        *has_version = true;
        return take_version(p, word);
    }
    for (int i = 0; i < WORKSPACE_ORIGINS; i++) {
        if (is_word(word, workspace_origin_names[i])) {
            return take_origin(p, i);
        }
    }
    return check_head(p) && take_call(p, word);
}

static bool take_lines(parser *p, const char *text, size_t size)
{
    bool has_version = false;
    const char *end = text + size;
    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        p->at = text;
        p->end = newline ? newline : end;
        if (++p->line > LINES_MAX) {
            return refuse_line(p, "the table has too many lines");
        }
        if (!take_line(p, &has_version)) {
            return false;
        }
        text = newline ? newline + 1 : end;
    }
    p->line += p->line == 0;
    return (has_version || take_version(p, (token){"", 0})) && check_head(p);
}

gmd_status gmd_workspaces_parse(gmd_workspaces **table, const char *text, size_t size,
                                const char *name, gmd_error *error)
{
    parser p = {.name = name, .error = error, .table = calloc(1, sizeof *p.table)};
    *table = NULL;
    if (!p.table) {
        return gmd_fail(error, GMD_NO_MEMORY, "%s: no host memory for the table", name);
    }
    p.table->key = gmd_hash_key_draw();
    if (!take_lines(&p, text, size)) {
        gmd_workspaces_close(p.table);
        return p.status;
    }
    *table = p.table;
    return GMD_OK;
}

gmd_status gmd_workspaces_read(gmd_workspaces **table, const char *path, gmd_error *error)
{
    uint8_t *data;
    size_t size;
    *table = NULL;
    gmd_status status = gmd_file_read(path, &data, &size, error);
    if (status == GMD_OK) {
        status = gmd_workspaces_parse(table, (const char *)data, size, path, error);
        free(data);
    }
    return status;
}
