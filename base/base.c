#include "gmd_error.h"
#include "gmd_size.h"
#include "gmd_text.h"
#include "gmd_utf8.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

gmd_status gmd_fail(gmd_error *error, gmd_status status, const char *format, ...)
{
    if (error) {
        gmd_error formatted; /* the arguments may point into the message that is replaced */
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(formatted.text, sizeof formatted.text, format, arguments);
        va_end(arguments);
        gmd_utf8_copy_line(error->text, sizeof error->text, formatted.text);
    }
    return status;
}

void gmd_error_prefix(gmd_error *error, const char *prefix)
{
    if (error) {
        gmd_fail(error, GMD_FAILED, "%s: %s", prefix, error->text);
    }
}

/* Digits only, so that no sign, space or base prefix slips through; false on overflow. */
static bool parse_digits(const char **cursor, uint64_t *value)
{
    const char *at = *cursor;
    if (!isdigit((unsigned char)*at)) {
        return false;
    }
    uint64_t number = 0;
    for (; isdigit((unsigned char)*at); at++) {
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(*at - '0'), &number)) {
            return false;
        }
    }
    *cursor = at;
    *value = number;
    return true;
}

bool gmd_parse_u64(const char *text, uint64_t *value)
{
    uint64_t number;
    if (!parse_digits(&text, &number) || *text) {
        return false;
    }
    *value = number;
    return true;
}

typedef struct unit {
    const char *name;
    uint64_t factor;
} unit;

static bool scale_by_unit(const char *suffix, const unit *units, size_t count, uint64_t *factor)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(suffix, units[i].name) == 0) {
            *factor = units[i].factor;
            return true;
        }
    }
    return false;
}

bool gmd_parse_size(const char *text, uint64_t *bytes)
{
    static const unit units[] = {{"", 1},          {"B", 1},         {"KiB", GMD_KIB},
                                 {"MiB", GMD_MIB}, {"GiB", GMD_GIB}, {"TiB", GMD_GIB << 10}};
    uint64_t whole;
    if (!parse_digits(&text, &whole)) {
        return false;
    }
    double fraction = 0, digit_value = 1;
    if (*text == '.') {
        text++;
        if (!isdigit((unsigned char)*text)) {
            return false;
        }
        for (; isdigit((unsigned char)*text); text++) {
            digit_value /= 10;
            fraction += (*text - '0') * digit_value;
        }
    }
    uint64_t factor;
    if (!scale_by_unit(text, units, sizeof units / sizeof *units, &factor)) {
        return false;
    }
    uint64_t total;
    if (__builtin_mul_overflow(whole, factor, &total) ||
        __builtin_add_overflow(total, (uint64_t)(fraction * (double)factor + 0.5), &total)) {
        return false;
    }
    *bytes = total;
    return true;
}

bool gmd_parse_duration(const char *text, uint64_t *ns)
{
    static const unit units[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};
    uint64_t whole, factor, total;
    if (!parse_digits(&text, &whole) ||
        !scale_by_unit(text, units, sizeof units / sizeof *units, &factor) ||
        __builtin_mul_overflow(whole, factor, &total)) {
        return false;
    }
    *ns = total;
    return true;
}

const char *gmd_format_size(uint64_t bytes, char text[24])
{
    /* What would be rounded to 1024.0 of a unit is 1.0 of the next. */
    const double value = (double)bytes;
    if (bytes < GMD_KIB) {
        snprintf(text, 24, "%" PRIu64 " B", bytes);
    } else if (value < 1023.95 * (double)GMD_KIB) {
        snprintf(text, 24, "%.1f KiB", value / (double)GMD_KIB);
    } else if (value < 1023.95 * (double)GMD_MIB) {
        snprintf(text, 24, "%.1f MiB", value / (double)GMD_MIB);
    } else {
        snprintf(text, 24, "%.2f GiB", value / (double)GMD_GIB);
    }
    return text;
}

const char *gmd_format_exact_size(uint64_t bytes, char text[24])
{
    if (bytes && bytes % GMD_GIB == 0) {
        snprintf(text, 24, "%" PRIu64 "GiB", bytes / GMD_GIB);
    } else if (bytes && bytes % GMD_MIB == 0) {
        snprintf(text, 24, "%" PRIu64 "MiB", bytes / GMD_MIB);
    } else {
        snprintf(text, 24, "%" PRIu64, bytes);
    }
    return text;
}

const char *gmd_format_bytes(uint64_t bytes, char text[24])
{
    gmd_format_exact_size(bytes, text);
    size_t length = strlen(text);
    if (text[length - 1] != 'B') {
        snprintf(text + length, 24 - length, " B");
    }
    return text;
}

char *gmd_text_copy(const char *text, size_t length)
{
    char *copy = malloc(length + 1);
    if (copy) {
        memcpy(copy, text, length);
        copy[length] = '\0';
    }
    return copy;
}

const char *gmd_file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool gmd_text_ends_with(const char *text, const char *ending)
{
    size_t length = strlen(text), tail = strlen(ending);
    return length > tail && strcmp(text + length - tail, ending) == 0;
}
