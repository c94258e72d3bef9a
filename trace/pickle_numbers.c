/* pickle_numbers.c - opcodes of numbers, booleans and None. */
#include "pickle_machine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef pickle_value value;

enum { NUMBER_TEXT_MAX = 512 };

static bool push_natural(pickle_machine *m, uint64_t number)
{
    return pm_push(m, (value){.kind = PICKLE_NATURAL, .number = number});
}

static bool push_signed(pickle_machine *m, int64_t number)
{
    return number < 0 ? pm_push(m, (value){.kind = PICKLE_NEGATIVE, .negative = number})
                      : push_natural(m, (uint64_t)number);
}

static bool push_bool(pickle_machine *m, bool truth)
{
    return pm_push(m, (value){.kind = PICKLE_BOOL, .number = truth});
}

bool pm_read_binint1(pickle_machine *m)
{
    uint64_t number;
    return pm_take_number(m, 1, &number) && push_natural(m, number);
}

bool pm_read_binint2(pickle_machine *m)
{
    uint64_t number;
    return pm_take_number(m, 2, &number) && push_natural(m, number);
}

bool pm_read_binint(pickle_machine *m)
{
    uint64_t number;
    return pm_take_number(m, 4, &number) && push_signed(m, (int32_t)(uint32_t)number);
}

/* Whether the bytes over eight only repeat the sign, which is the topmost bit of the last one. */
static bool fits_in_64_bits(const uint8_t *bytes, size_t length)
{
    uint8_t filler = bytes[length - 1] & 0x80 ? 0xff : 0;
    for (size_t i = 8; i < length; i++) {
        if (bytes[i] != filler) {
            return false;
        }
    }
    return true;
}

/* Two's complement, little-endian, of up to eight bytes. */
static int64_t signed_number(const pickle_machine *m, const uint8_t *bytes, size_t length)
{
    if (length == 0) {
        return 0;
    }
    /* Reading eight bytes at once is faster; those behind the number are shifted away. */
    bool has_eight = (size_t)(m->data + m->size - bytes) >= 8;
    uint64_t number = has_eight ? pm_number_of(bytes, 8) : pm_number_of(bytes, length);
    unsigned unused = 64 - 8 * (unsigned)length;
    return (int64_t)(number << unused) >> unused;
}

/* The same of any length; the topmost bit of a positive number of 64 bits is none of a sign. */
static bool push_long(pickle_machine *m, uint64_t length)
{
    const uint8_t *bytes;
    if (length > m->size) {
        return PM_FAIL(m, "an integer of %llu bytes: expected at most 64 bits",
                       (unsigned long long)length);
    }
    if (!pm_take(m, (size_t)length, &bytes)) {
        return false;
    }
    if (length <= 8) {
        return push_signed(m, signed_number(m, bytes, (size_t)length));
    }
    if (!fits_in_64_bits(bytes, (size_t)length)) {
        return PM_FAIL(m, "an integer of %llu bytes: expected at most 64 bits",
                       (unsigned long long)length);
    }
    uint64_t number = pm_number_of(bytes, 8);
    bool is_negative = bytes[length - 1] & 0x80;
    if (is_negative && !(number >> 63)) {
        return PM_FAIL(m, "an integer below -2^63: expected at most 64 bits");
    }
    return is_negative ? push_signed(m, (int64_t)number) : push_natural(m, number);
}

bool pm_read_long1(pickle_machine *m)
{
    uint64_t length;
    return pm_take_number(m, 1, &length) && push_long(m, length);
}

bool pm_read_long4(pickle_machine *m)
{
    uint64_t length;
    if (!pm_take_number(m, 4, &length)) {
        return false;
    }
    return length > INT32_MAX ? PM_FAIL(m, "expected a length, found a negative number")
                              : push_long(m, length);
}

static bool push_decimal(pickle_machine *m, const char *line, size_t length)
{
    bool is_negative = length && line[0] == '-';
    uint64_t number = 0;
    if (length == is_negative) {
        return pm_fail_number(m, "a decimal integer", line, length);
    }
    for (size_t i = is_negative; i < length; i++) {
        if (line[i] < '0' || line[i] > '9') {
            return pm_fail_number(m, "a decimal integer", line, length);
        }
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(line[i] - '0'), &number)) {
            return pm_fail_number(m, "an integer of at most 64 bits", line, length);
        }
    }
    if (is_negative && number > (uint64_t)1 << 63) {
        return pm_fail_number(m, "an integer of at most 64 bits", line, length);
    }
    return is_negative ? push_signed(m, (int64_t)(0 - number)) : push_natural(m, number);
}

/* "00" and "01" are how protocols 0 and 1 write False and True. */
bool pm_read_int(pickle_machine *m)
{
    const char *line;
    size_t length;
    if (!pm_take_line(m, &line, &length)) {
        return false;
    }
    if (length == 2 && line[0] == '0' && (line[1] == '0' || line[1] == '1')) {
        return push_bool(m, line[1] == '1');
    }
    return push_decimal(m, line, length);
}

bool pm_read_long(pickle_machine *m)
{
    const char *line;
    size_t length;
    if (!pm_take_line(m, &line, &length)) {
        return false;
    }
    return push_decimal(m, line, length && line[length - 1] == 'L' ? length - 1 : length);
}

bool pm_read_float(pickle_machine *m)
{
    const char *line;
    size_t length;
    if (!pm_take_line(m, &line, &length)) {
        return false;
    }
    char text[NUMBER_TEXT_MAX];
    char *end = text;
    double real = 0;
    bool is_plausible = length && length < sizeof text && !strchr(" \t\v\f\r", line[0]);
    if (is_plausible) {
        memcpy(text, line, length);
        text[length] = 0;
        real = strtod(text, &end);
    }
    if (!is_plausible || end != text + length) {
        return pm_fail_number(m, "a decimal number", line, length);
    }
    return pm_push(m, (value){.kind = PICKLE_FLOAT, .real = real});
}

bool pm_read_binfloat(pickle_machine *m)
{
    const uint8_t *bytes;
    if (!pm_take(m, 8, &bytes)) {
        return false;
    }
    uint64_t bits = 0;
    for (size_t i = 0; i < 8; i++) { /* the one big-endian number of the format */
        bits = bits << 8 | bytes[i];
    }
    value v = {.kind = PICKLE_FLOAT};
    memcpy(&v.real, &bits, sizeof v.real);
    return pm_push(m, v);
}

bool pm_read_none(pickle_machine *m)
{
    return pm_push(m, (value){.kind = PICKLE_NONE});
}

bool pm_read_newtrue(pickle_machine *m)
{
    return push_bool(m, true);
}

bool pm_read_newfalse(pickle_machine *m)
{
    return push_bool(m, false);
}
