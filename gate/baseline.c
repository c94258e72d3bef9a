#include "baseline.h"

#include "gmd_file.h"
#include "gmd_grow.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER    "gmd-baseline 1"
#define OTHER_MAX 4200

/* More than repeated measuring on a busy machine varies by (docs/gate.md has figures). */
#define RATIO_TOLERANCE       0.50
#define INSTRUCTION_TOLERANCE 0.03

/* --- by name ----------------------------------------------------------------------------- */

static int compare_names(const gmd_gate_figure *f, const char *category, const char *item,
                         const char *name)
{
    int order = strcmp(f->category, category);
    order = order ? order : strcmp(f->item, item);
    return order ? order : strcmp(f->name, name);
}

static int compare_figures(const void *left, const void *right)
{
    const gmd_gate_figure *b = right;
    return compare_names(left, b->category, b->item, b->name);
}

/* --- reading ----------------------------------------------------------------------------- */

static char *header_field(gate_baseline *b, const char *key, size_t *size)
{
    const struct {
        const char *key;
        char *field;
        size_t size;
    } fields[] = {{"allocator", b->allocator, sizeof b->allocator},
                  {"machine", b->machine, sizeof b->machine},
                  {"versus", b->versus, sizeof b->versus},
                  {"conf", b->conf, sizeof b->conf}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (strcmp(fields[i].key, key) == 0) {
            *size = fields[i].size;
            return fields[i].field;
        }
    }
    return NULL;
}

static bool is_span(const gmd_gate_span *s)
{
    return isfinite(s->value) && isfinite(s->low) && isfinite(s->high) && s->low <= s->value &&
           s->value <= s->high && s->low >= 0;
}

/* The next word of the line into `out`; false: there is none, or it is too long. */
static bool take_word(const char **at, char *out, size_t size)
{
    *at += strspn(*at, " \t");
    size_t length = strcspn(*at, " \t");
    snprintf(out, size, "%.*s", (int)length, *at);
    *at += length;
    return length > 0 && length < size;
}

static bool take_number(const char **at, double *out)
{
    char word[40], *end;
    if (!take_word(at, word, sizeof word)) {
        return false;
    }
    *out = strtod(word, &end);
    return end != word && !*end;
}

/* "memory scenarios/gpt/ample peak_reserved 2147483648 B" */
static bool read_figure(const char *line, gmd_gate_figure *f)
{
    *f = (gmd_gate_figure){.change = GMD_GATE_UNJUDGED};
    bool is_read = take_word(&line, f->category, sizeof f->category) &&
                   take_word(&line, f->item, sizeof f->item) &&
                   take_word(&line, f->name, sizeof f->name) && take_number(&line, &f->now.value) &&
                   take_word(&line, f->unit, sizeof f->unit);
    f->now.low = f->now.high = f->now.value;
    if (is_read && line[strspn(line, " \t")]) {
        is_read = take_number(&line, &f->now.low) && take_number(&line, &f->now.high) && !*line;
    }
    return is_read && is_span(&f->now) &&
           (strcmp(f->category, "memory") == 0 || strcmp(f->category, "speed") == 0);
}

static gmd_status append(gate_baseline *b, const gmd_gate_figure *figure, gmd_error *error)
{
    if (!GMD_GROW(&b->figures, &b->capacity, b->count + 1)) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for a baseline");
    }
    b->figures[b->count++] = *figure;
    return GMD_OK;
}

static gmd_status read_line(gate_baseline *b, char *line, const char *path, size_t number,
                            gmd_error *error)
{
    gmd_gate_figure figure;
    char key[32] = "";
    const char *rest = line;
    size_t size;
    line[strcspn(line, "#")] = '\0';
    for (size_t n = strlen(line); n && strchr(" \t\r", line[n - 1]); n--) {
        line[n - 1] = '\0';
    }
    if (!line[strspn(line, " \t")]) {
        return GMD_OK;
    }
    take_word(&rest, key, sizeof key);
    char *field = header_field(b, key, &size);
    if (field) {
        snprintf(field, size, "%s", rest + strspn(rest, " \t"));
        return GMD_OK;
    }
    if (!read_figure(line, &figure)) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "%s:%zu: expected 'CATEGORY ITEM NAME VALUE UNIT [LOW HIGH]' of memory or "
                        "speed, found '%.200s'",
                        path, number, line);
    }
    return append(b, &figure, error);
}

static gmd_status read_lines(gate_baseline *b, char *text, const char *path, gmd_error *error)
{
    gmd_status status = GMD_OK;
    size_t number = 1;
    char *line = text, *end = strchr(text, '\n');
    if (!end || strncmp(text, HEADER, strlen(HEADER)) != 0 ||
        !strchr("\r\n", text[strlen(HEADER)])) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "%s:1: expected '" HEADER "': no baseline, or one of another version of "
                        "gmd; --update-baseline writes it anew where there is no such file",
                        path);
    }
    while (status == GMD_OK && end) {
        line = end + 1;
        number++;
        end = strchr(line, '\n');
        if (end) {
            *end = '\0';
        }
        status = read_line(b, line, path, number, error);
    }
    return status;
}

/* Sorts the figures. A file that has none, or two values for one, is no baseline to judge by. */
static gmd_status check_figures(gate_baseline *b, const char *path, gmd_error *error)
{
    baseline_sort(b);
    if (!b->count) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "%s: no figures: expected lines 'CATEGORY ITEM NAME VALUE UNIT'; "
                        "--update-baseline writes the file anew where there is no such file",
                        path);
    }
    for (size_t i = 1; i < b->count; i++) {
        const gmd_gate_figure *f = &b->figures[i];
        if (compare_figures(f - 1, f) == 0) {
            return gmd_fail(error, GMD_BAD_INPUT, "%s: '%s %s %s' stands there twice", path,
                            f->category, f->item, f->name);
        }
    }
    return GMD_OK;
}

gmd_status baseline_read(gate_baseline *baseline, const char *path, gmd_error *error)
{
    uint8_t *bytes = NULL;
    size_t size = 0;
    *baseline = (gate_baseline){.count = 0};
    gmd_status status = gmd_file_read(path, &bytes, &size, error);
    if (status != GMD_OK && access(path, F_OK) != 0 && errno == ENOENT) {
        status = gmd_fail(error, status,
                          "--baseline %s: there is no such file; --update-baseline "
                          "writes it",
                          path);
    }
    char *text = status == GMD_OK ? malloc(size + 1) : NULL;
    if (status == GMD_OK && !text) {
        status = gmd_fail(error, GMD_NO_MEMORY, "%s: no host memory", path);
    }
    if (text) {
        memcpy(text, bytes, size);
        text[size] = '\0';
        status = read_lines(baseline, text, path, error);
    }
    free(text);
    free(bytes);
    if (status == GMD_OK) {
        status = check_figures(baseline, path, error);
    }
    if (status != GMD_OK) {
        baseline_free(baseline);
    }
    return status;
}

/* --- writing ----------------------------------------------------------------------------- */

static void put_figure(const gmd_gate_figure *f, FILE *out)
{
    const gmd_gate_span *s = &f->now;
    bool is_exact = s->low >= s->high;
    fprintf(out, "%s %s %s ", f->category, f->item, f->name);
    if (is_exact && s->value == floor(s->value)) {
        fprintf(out, "%.0f %s\n", s->value, f->unit);
    } else if (is_exact) {
        fprintf(out, "%.6g %s\n", s->value, f->unit);
    } else {
        fprintf(out, "%.4g %s %.4g %.4g\n", s->value, f->unit, s->low, s->high);
    }
}

static void put_all(const gate_baseline *b, FILE *out)
{
    fputs(HEADER "\n"
                 "# What the allocator took when these figures were accepted: gmd gate --baseline "
                 "THIS_FILE\n# holds it against them, --update-baseline accepts others. Less is "
                 "better. Memory is exact\n# on any machine; speed is of this one.\n",
          out);
    fprintf(out, "allocator %s\n", b->allocator);
    if (b->conf[0]) {
        fprintf(out, "conf %s\n", b->conf);
    }
    fprintf(out, "machine %s\nversus %s\n", b->machine, b->versus);
    for (size_t i = 0; i < b->count; i++) {
        bool is_first = i == 0 || strcmp(b->figures[i].item, b->figures[i - 1].item) != 0;
        fputs(is_first ? "\n" : "", out);
        put_figure(&b->figures[i], out);
    }
}

/* The file is written under this name first, and takes the other's place when it is complete. */
static gmd_status name_beside(const char *path, char other[OTHER_MAX], gmd_error *error)
{
    return (size_t)snprintf(other, OTHER_MAX, "%s.new", path) < OTHER_MAX
               ? GMD_OK
               : gmd_fail(error, GMD_BAD_INPUT, "--baseline: the name of the file is too long");
}

gmd_status baseline_probe(const char *path, gmd_error *error)
{
    char other[OTHER_MAX];
    struct stat file;
    gmd_status status = name_beside(path, other, error);
    if (status != GMD_OK) {
        return status;
    }
    if (stat(path, &file) == 0 && !S_ISREG(file.st_mode)) {
        return gmd_fail(error, GMD_BAD_INPUT, "%s: cannot be written: not a file", path);
    }
    FILE *out = fopen(other, "w");
    if (!out) {
        return gmd_fail(error, GMD_BAD_INPUT, "%s: cannot be written: %s", path, strerror(errno));
    }
    fclose(out);
    remove(other);
    return GMD_OK;
}

gmd_status baseline_write(const gate_baseline *baseline, const char *path, gmd_error *error)
{
    char other[OTHER_MAX];
    gmd_status status = name_beside(path, other, error);
    if (status != GMD_OK) {
        return status;
    }
    FILE *out = fopen(other, "w");
    if (!out) {
        return gmd_fail(error, GMD_BAD_INPUT, "%s: cannot be written: %s", path, strerror(errno));
    }
    put_all(baseline, out);
    bool has_failed = ferror(out) != 0;
    has_failed = fclose(out) != 0 || has_failed;
    if (has_failed || rename(other, path) != 0) {
        gmd_fail(error, GMD_FAILED, "%s: writing failed: %s", path, strerror(errno));
        remove(other);
        return GMD_FAILED;
    }
    return GMD_OK;
}

/* --- the figures ------------------------------------------------------------------------- */

void baseline_sort(gate_baseline *baseline)
{
    if (baseline->count) {
        qsort(baseline->figures, baseline->count, sizeof *baseline->figures, compare_figures);
    }
}

const gmd_gate_figure *baseline_find(const gate_baseline *baseline, const char *category,
                                     const char *item, const char *name)
{
    size_t low = 0, high = baseline->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare_names(&baseline->figures[middle], category, item, name);
        if (order == 0) {
            return &baseline->figures[middle];
        }
        low = order < 0 ? middle + 1 : low;
        high = order < 0 ? high : middle;
    }
    return NULL;
}

gmd_status baseline_set(gate_baseline *b, const gmd_gate_figure *figure, gmd_error *error)
{
    for (size_t i = 0; i < b->count; i++) { /* not sorted yet, and some hundreds at most */
        if (compare_figures(&b->figures[i], figure) == 0) {
            b->figures[i] = *figure;
            return GMD_OK;
        }
    }
    return append(b, figure, error);
}

static double tolerance_of(const gmd_gate_figure *f)
{
    return strcmp(f->unit, "ratio") == 0          ? RATIO_TOLERANCE
           : strcmp(f->unit, "instructions") == 0 ? INSTRUCTION_TOLERANCE
                                                  : 0;
}

void baseline_judge(gmd_gate_figure *figure, const gmd_gate_figure *before)
{
    double more = 1 + tolerance_of(figure);
    const gmd_gate_span *now = &figure->now, *then = &before->now;
    figure->before = *then;
    figure->excess = gmd_gate_excess(*now, *then);
    figure->change = now->low > then->high * more   ? GMD_GATE_WORSE
                     : now->high * more < then->low ? GMD_GATE_BETTER
                                                    : GMD_GATE_SAME;
}

void baseline_free(gate_baseline *baseline)
{
    free(baseline->figures);
    *baseline = (gate_baseline){.count = 0};
}
