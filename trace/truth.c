#include "gmd_truth.h"

#include "gmd_file.h"
#include "gmd_min.h"
#include "gmd_size.h"
#include "quote.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static gmd_status fail_memory(const char *path, gmd_error *error)
{
    return gmd_fail(error, GMD_NO_MEMORY, "%s: no host memory", path);
}

/* --- NAME.json --------------------------------------------------------------------------- */

static gmd_status load_json(const char *text, size_t size, const char *path, unsigned first_line,
                            json_t **root, gmd_error *error)
{
    json_error_t problem;
    *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &problem);
    if (!*root) {
        return gmd_fail(error, GMD_BAD_INPUT, "%s:%u: column %d: expected JSON: %s", path,
                        problem.line > 0 ? first_line + (unsigned)problem.line - 1 : first_line,
                        problem.column, problem.text);
    }
    if (!json_is_object(*root)) {
        json_decref(*root);
        return gmd_fail(error, GMD_BAD_INPUT, "%s:%u: expected a JSON object", path, first_line);
    }
    return GMD_OK;
}

static gmd_status read_count(const json_t *value, const char *path, const char *where,
                             const char *key, uint64_t *number, gmd_error *error)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0) {
        return gmd_fail(error, GMD_BAD_INPUT, "%s: %s: \"%s\": expected an integer from 0", path,
                        where, key);
    }
    *number = (uint64_t)json_integer_value(value);
    return GMD_OK;
}

static gmd_status read_cap(gmd_truth *truth, const json_t *kwargs, const char *path,
                           gmd_error *error)
{
    const json_t *cap = json_object_get(kwargs, "cap_gib"); /* NULL where there are no kwargs */
    if (!cap || json_is_null(cap)) {
        return GMD_OK;
    }
    double gib = json_number_value(cap);
    if (!json_is_number(cap) || !(gib > 0) || gib > 1 << 20) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "%s: kwargs: \"cap_gib\": expected a number of GiB over 0", path);
    }
    truth->cap_gib = gib;
    truth->cap_bytes = (uint64_t)(gib * (double)GMD_GIB);
    return GMD_OK;
}

static gmd_status read_stats(gmd_truth *truth, json_t *stats, const char *path, gmd_error *error)
{
    if (!stats) {
        return GMD_OK;
    }
    if (!json_is_object(stats)) {
        return gmd_fail(error, GMD_BAD_INPUT, "%s: \"stats\": expected an object", path);
    }
    truth->stats = calloc(json_object_size(stats) + 1, sizeof *truth->stats);
    if (!truth->stats) {
        return fail_memory(path, error);
    }
    const char *key;
    json_t *value;
    json_object_foreach(stats, key, value)
    {
        gmd_truth_stat_entry *entry = &truth->stats[truth->stat_count];
        gmd_status status = read_count(value, path, "stats", key, &entry->value, error);
        if (status != GMD_OK) {
            return status;
        }
        entry->name = strdup(key);
        if (!entry->name) {
            return fail_memory(path, error);
        }
        truth->stat_count++;
    }
    return GMD_OK;
}

static gmd_status read_phase(gmd_truth_phase *phase, const json_t *record, const char *path,
                             gmd_error *error)
{
    const char *label = json_string_value(json_object_get(record, "label"));
    if (!label) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "%s: phases: expected objects with a string \"label\"", path);
    }
    const struct {
        const char *key;
        uint64_t *figure;
    } figures[] = {{"allocated", &phase->allocated},
                   {"max_allocated", &phase->max_allocated},
                   {"reserved", &phase->reserved},
                   {"max_reserved", &phase->max_reserved}};
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        gmd_status status = read_count(json_object_get(record, figures[i].key), path, "phases",
                                       figures[i].key, figures[i].figure, error);
        if (status != GMD_OK) {
            return status;
        }
    }
    phase->label = strdup(label);
    return phase->label ? GMD_OK : fail_memory(path, error);
}

static gmd_status read_phases(gmd_truth *truth, const json_t *phases, const char *path,
                              gmd_error *error)
{
    if (!phases) {
        return GMD_OK;
    }
    if (!json_is_array(phases)) {
        return gmd_fail(error, GMD_BAD_INPUT, "%s: \"phases\": expected an array", path);
    }
    truth->phases = calloc(json_array_size(phases) + 1, sizeof *truth->phases);
    if (!truth->phases) {
        return fail_memory(path, error);
    }
    for (size_t i = 0; i < json_array_size(phases); i++) {
        gmd_status status =
            read_phase(&truth->phases[truth->phase_count], json_array_get(phases, i), path, error);
        if (status != GMD_OK) {
            return status;
        }
        truth->phase_count++;
    }
    return GMD_OK;
}

static gmd_status read_conf(gmd_truth *truth, const json_t *conf, const char *path,
                            gmd_error *error)
{
    if (!conf) {
        return GMD_OK;
    }
    if (!json_is_string(conf)) {
        return gmd_fail(error, GMD_BAD_INPUT, "%s: \"conf\": expected a string", path);
    }
    truth->conf = strdup(json_string_value(conf));
    return truth->conf ? GMD_OK : fail_memory(path, error);
}

static void free_json_part(gmd_truth *truth)
{
    for (size_t i = 0; i < truth->stat_count; i++) {
        free(truth->stats[i].name);
    }
    for (size_t i = 0; i < truth->phase_count; i++) {
        free(truth->phases[i].label);
    }
    free(truth->stats);
    free(truth->phases);
    free(truth->conf);
}

gmd_status gmd_truth_read_json(const char *path, gmd_truth *truth, gmd_error *error)
{
    uint8_t *data;
    size_t size;
    json_t *root = NULL;
    gmd_truth read = {0};
    gmd_status status = gmd_file_read(path, &data, &size, error);
    if (status != GMD_OK) {
        return status;
    }
    status = load_json((const char *)data, size, path, 1, &root, error);
    free(data);
    if (status != GMD_OK) {
        return status;
    }
    status = read_cap(&read, json_object_get(root, "kwargs"), path, error);
    status =
        status == GMD_OK ? read_conf(&read, json_object_get(root, "conf"), path, error) : status;
    status =
        status == GMD_OK ? read_stats(&read, json_object_get(root, "stats"), path, error) : status;
    status = status == GMD_OK ? read_phases(&read, json_object_get(root, "phases"), path, error)
                              : status;
    json_decref(root);
    if (status != GMD_OK) {
        free_json_part(&read);
        return status;
    }
    free_json_part(truth);
    truth->cap_gib = read.cap_gib;
    truth->cap_bytes = read.cap_bytes;
    truth->conf = read.conf;
    truth->stats = read.stats;
    truth->stat_count = read.stat_count;
    truth->phases = read.phases;
    truth->phase_count = read.phase_count;
    return GMD_OK;
}

bool gmd_truth_stat(const gmd_truth *truth, const char *name, uint64_t *value)
{
    for (size_t i = 0; i < truth->stat_count; i++) {
        if (strcmp(truth->stats[i].name, name) == 0) {
            *value = truth->stats[i].value;
            return true;
        }
    }
    return false;
}

/* --- NAME.ops.jsonl.gz ------------------------------------------------------------------- */

/* Lines are flat objects of integers and short words, twenty thousand of them: a scanner of just
 * that reads them several times faster than a general JSON reader. */
typedef struct scanner {
    const char *at, *end; /* of the line */
    const char *start;
    const char *path;
    unsigned line;
    gmd_error *error;
} scanner;

typedef struct scanned { /* a key or a value; text points into the line */
    const char *text;
    size_t length;
    uint64_t number;
    enum { SCANNED_NULL, SCANNED_NUMBER, SCANNED_TEXT } kind;
} scanned;

static bool fail_scan(scanner *s, const char *expected)
{
    char quoted[QUOTE_BYTES];
    size_t left = (size_t)(s->end - s->at);
    gmd_fail(s->error, GMD_BAD_INPUT, "%s:%u: column %zu: expected %s, found %s", s->path, s->line,
             (size_t)(s->at - s->start) + 1, expected,
             left ? quote_text(s->at, gmd_min(left, 24), quoted) : "the end of the line");
    return false;
}

static void skip_spaces(scanner *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\t' || *s->at == '\r')) {
        s->at++;
    }
}

static bool skip(scanner *s, char c)
{
    skip_spaces(s);
    if (s->at == s->end || *s->at != c) {
        return false;
    }
    s->at++;
    return true;
}

static bool scan_text(scanner *s, scanned *out, const char *expected)
{
    if (!skip(s, '"')) {
        return fail_scan(s, expected);
    }
    out->kind = SCANNED_TEXT;
    out->text = s->at;
    while (s->at < s->end && *s->at != '"' && *s->at != '\\') {
        s->at++;
    }
    out->length = (size_t)(s->at - out->text);
    return skip(s, '"') || fail_scan(s, "'\"' and no escapes");
}

static bool scan_number(scanner *s, scanned *out)
{
    const char *start = s->at;
    out->kind = SCANNED_NUMBER;
    out->number = 0;
    for (; s->at < s->end && *s->at >= '0' && *s->at <= '9'; s->at++) {
        if (__builtin_mul_overflow(out->number, 10, &out->number) ||
            __builtin_add_overflow(out->number, (uint64_t)(*s->at - '0'), &out->number)) {
            s->at = start;
            return fail_scan(s, "a 64-bit integer");
        }
    }
    return s->at > start || fail_scan(s, "an integer from 0, a string or null");
}

static bool scan_value(scanner *s, scanned *out)
{
    skip_spaces(s);
    if (s->at < s->end && *s->at == '"') {
        return scan_text(s, out, "a value");
    }
    if (s->end - s->at >= 4 && memcmp(s->at, "null", 4) == 0) {
        s->at += 4;
        out->kind = SCANNED_NULL;
        return true;
    }
    return scan_number(s, out);
}

typedef enum op_key {
    KEY_ID,
    KEY_BYTES,
    KEY_STREAM,
    KEY_PTR,
    KEY_A,
    KEY_R,
    KEY_SEG,
    KEY_ACT,
    KEY_ISB,
    KEY_RETRIES,
    KEY_OOMS,
    KEY_OP,
    KEY_COUNT
} op_key;

static const char *const op_keys[KEY_COUNT] = {"id",  "bytes", "stream", "ptr",     "a",    "r",
                                               "seg", "act",   "isb",    "retries", "ooms", "op"};

static op_key key_of(const scanned *key)
{
    for (op_key i = 0; i < KEY_COUNT; i++) {
        if (strlen(op_keys[i]) == key->length && memcmp(key->text, op_keys[i], key->length) == 0) {
            return i;
        }
    }
    return KEY_COUNT;
}

/* Reads one object into `values`, by key; those that it does not have stay null. */
static bool scan_object(scanner *s, scanned values[KEY_COUNT])
{
    if (!skip(s, '{')) {
        return fail_scan(s, "'{'");
    }
    do {
        scanned key, value = {0};
        if (!scan_text(s, &key, "a key")) {
            return false;
        }
        if (!skip(s, ':')) {
            return fail_scan(s, "':'");
        }
        if (!scan_value(s, &value)) {
            return false;
        }
        op_key known = key_of(&key);
        if (known != KEY_COUNT) {
            values[known] = value;
        }
    } while (skip(s, ','));
    if (!skip(s, '}')) {
        return fail_scan(s, "',' or '}'");
    }
    skip_spaces(s);
    return s->at == s->end || fail_scan(s, "the end of the line");
}

static bool fail_op(scanner *s, const char *key, const char *expected)
{
    gmd_fail(s->error, GMD_BAD_INPUT, "%s:%u: \"%s\": expected %s", s->path, s->line, key,
             expected);
    return false;
}

static bool read_kind(scanner *s, const scanned *word, uint8_t *kind)
{
    static const char *const names[] = {[GMD_TRUTH_ALLOC] = "alloc",
                                        [GMD_TRUTH_FREE] = "free",
                                        [GMD_TRUTH_OOM] = "oom",
                                        [GMD_TRUTH_EMPTY_CACHE] = "empty_cache"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (word->kind == SCANNED_TEXT && word->length == strlen(names[i]) &&
            memcmp(word->text, names[i], word->length) == 0) {
            *kind = (uint8_t)i;
            return true;
        }
    }
    return fail_op(s, "op", "\"alloc\", \"free\", \"oom\" or \"empty_cache\"");
}

/* What a line of the kind may leave out. */
static bool is_optional(uint8_t kind, op_key key)
{
    bool has_size = kind == GMD_TRUTH_ALLOC || kind == GMD_TRUTH_OOM;
    return kind == GMD_TRUTH_EMPTY_CACHE ||
           (!has_size && (key == KEY_BYTES || key == KEY_STREAM)) ||
           (key == KEY_PTR && kind != GMD_TRUTH_ALLOC);
}

static bool read_op(scanner *s, size_t stream_count, gmd_truth_op *op)
{
    scanned values[KEY_COUNT] = {0};
    *op = (gmd_truth_op){.line = s->line};
    if (!scan_object(s, values) || !read_kind(s, &values[KEY_OP], &op->kind)) {
        return false;
    }
    bool has_stream = op->kind == GMD_TRUTH_ALLOC || op->kind == GMD_TRUTH_OOM;
    for (op_key i = 0; i < KEY_OP; i++) {
        if (values[i].kind != SCANNED_NUMBER &&
            (values[i].kind == SCANNED_TEXT || !is_optional(op->kind, i))) {
            return fail_op(s, op_keys[i], "an integer from 0");
        }
    }
    if (has_stream && values[KEY_STREAM].number >= stream_count) {
        return fail_op(s, "stream", "the index of one of the streams of line 1");
    }
    op->stream = (uint32_t)(has_stream ? values[KEY_STREAM].number : 0);
    op->id = values[KEY_ID].number;
    op->bytes = values[KEY_BYTES].number;
    op->address = values[KEY_PTR].number;
    op->allocated = values[KEY_A].number;
    op->reserved = values[KEY_R].number;
    op->active = values[KEY_ACT].number;
    op->inactive_split = values[KEY_ISB].number;
    op->segments = values[KEY_SEG].number;
    op->retries = values[KEY_RETRIES].number;
    op->ooms = values[KEY_OOMS].number;
    return true;
}

static gmd_status read_header(gmd_truth *truth, const json_t *header, const char *path,
                              gmd_error *error)
{
    const json_t *streams = json_object_get(header, "streams"),
                 *cap = json_object_get(header, "cap");
    if (!json_is_array(streams) || !json_array_size(streams)) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "%s:1: \"streams\": expected an array of stream handles", path);
    }
    truth->stream_handles = calloc(json_array_size(streams), sizeof *truth->stream_handles);
    if (!truth->stream_handles) {
        return fail_memory(path, error);
    }
    for (size_t i = 0; i < json_array_size(streams); i++) {
        gmd_status status = read_count(json_array_get(streams, i), path, "line 1", "streams",
                                       &truth->stream_handles[i], error);
        if (status != GMD_OK) {
            return status;
        }
    }
    truth->stream_count = json_array_size(streams);
    return !cap || json_is_null(cap)
               ? GMD_OK
               : read_count(cap, path, "line 1", "cap", &truth->ops_cap_bytes, error);
}

static const char *line_end(const char *at, const char *end)
{
    const char *newline = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
    return newline ? newline : end;
}

/* The shortest line that can be an operation is {"op":"empty_cache"}. */
static bool reserve_ops(gmd_truth *truth, size_t bytes)
{
    enum { LEAST_LINE = 20 };
    truth->ops = malloc((bytes / LEAST_LINE + 1) * sizeof *truth->ops);
    return truth->ops != NULL;
}

static gmd_status read_op_lines(gmd_truth *truth, const char *at, const char *end, const char *path,
                                gmd_error *error)
{
    if (!reserve_ops(truth, (size_t)(end - at))) {
        return fail_memory(path, error);
    }
    for (unsigned line = 2; at < end; line++) {
        const char *stop = line_end(at, end);
        scanner s = {
            .at = at, .start = at, .end = stop, .path = path, .line = line, .error = error};
        gmd_truth_op op;
        if (!read_op(&s, truth->stream_count, &op)) {
            return GMD_BAD_INPUT;
        }
        if (op.kind == GMD_TRUTH_EMPTY_CACHE && truth->op_count) { /* which is no retry */
            op.retries = truth->ops[truth->op_count - 1].retries;
        }
        truth->ops[truth->op_count++] = op;
        at = stop + 1;
    }
    return GMD_OK;
}

static void free_ops_part(gmd_truth *truth)
{
    free(truth->stream_handles);
    free(truth->ops);
}

static gmd_status read_ops_text(gmd_truth *read, const char *text, size_t size, const char *path,
                                gmd_error *error)
{
    json_t *header;
    const char *end = text + size, *first_end = line_end(text, end);
    gmd_status status = load_json(text, (size_t)(first_end - text), path, 1, &header, error);
    if (status != GMD_OK) {
        return status;
    }
    status = read_header(read, header, path, error);
    json_decref(header);
    return status == GMD_OK
               ? read_op_lines(read, first_end < end ? first_end + 1 : end, end, path, error)
               : status;
}

gmd_status gmd_truth_read_ops(const char *path, gmd_truth *truth, gmd_error *error)
{
    uint8_t *data;
    size_t size;
    gmd_truth read = {0};
    gmd_status status = gmd_file_read(path, &data, &size, error);
    if (status != GMD_OK) {
        return status;
    }
    status = read_ops_text(&read, (const char *)data, size, path, error);
    free(data);
    if (status != GMD_OK) {
        free_ops_part(&read);
        return status;
    }
    free_ops_part(truth);
    truth->stream_handles = read.stream_handles;
    truth->stream_count = read.stream_count;
    truth->ops_cap_bytes = read.ops_cap_bytes;
    truth->ops = read.ops;
    truth->op_count = read.op_count;
    return GMD_OK;
}

void gmd_truth_free(gmd_truth *truth)
{
    free_json_part(truth);
    free_ops_part(truth);
    *truth = (gmd_truth){0};
}
