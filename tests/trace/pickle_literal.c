#include "pickle_literal.h"

#include <stdio.h>
#include <string.h>

static void put_value(pickle_text *p, const char **next);

static void put_byte(pickle_text *p, uint8_t byte)
{
    assert_true(p->size < sizeof p->data);
    p->data[p->size++] = byte;
}

static void skip_blanks(const char **next)
{
    *next += strspn(*next, " \n");
}

/* Whether `text` comes next; it is then behind. */
static bool skip_text(const char **next, const char *text)
{
    skip_blanks(next);
    size_t length = strlen(text);
    bool is_there = strncmp(*next, text, length) == 0;
    *next += is_there ? length : 0;
    return is_there;
}

static uint8_t take_index(const char **next)
{
    char *end;
    unsigned long index = strtoul(*next, &end, 10);
    assert_true(end != *next && index <= UINT8_MAX);
    *next = end;
    return (uint8_t)index;
}

/* BINPUT of the index; -1: none. */
static void put_memo(pickle_text *p, int index)
{
    if (index >= 0) {
        put_byte(p, 'q');
        put_byte(p, (uint8_t)index);
    }
}

static void put_items(pickle_text *p, const char **next, const char *close, bool is_dict)
{
    while (!skip_text(next, close)) {
        put_value(p, next);
        if (is_dict) {
            assert_true(skip_text(next, ":"));
            put_value(p, next);
        }
        skip_text(next, ",");
    }
}

static void put_text(pickle_text *p, const char **next)
{
    char text[128];
    size_t length = strcspn(*next, "'");
    assert_true(length < sizeof text && (*next)[length]);
    memcpy(text, *next, length);
    text[length] = 0;
    *next += length + 1;
    put_string(p, text);
}

static void put_number(pickle_text *p, const char **next)
{
    char text[64], *end;
    bool is_negative = **next == '-';
    uint64_t number = strtoull(*next + is_negative, &end, 0);
    assert_true(end != *next + is_negative);
    if (*end == '.') {
        snprintf(text, sizeof text, "F%.17g\n", strtod(*next, &end));
        put(p, text);
    } else if (is_negative) {
        put_negative(p, -(int64_t)number);
    } else {
        put_integer(p, number);
    }
    *next = end;
}

static void put_container(pickle_text *p, const char **next, int index)
{
    if (skip_text(next, "{")) {
        put(p, "}");
        put_memo(p, index);
        put(p, "(");
        put_items(p, next, "}", true);
        put(p, "u");
    } else if (skip_text(next, "[")) {
        put(p, "]");
        put_memo(p, index);
        put(p, "(");
        put_items(p, next, "]", false);
        put(p, "e");
    } else {
        assert_true(skip_text(next, "("));
        put(p, "(");
        put_items(p, next, ")", false);
        put(p, "t");
        put_memo(p, index);
    }
}

static void put_value(pickle_text *p, const char **next)
{
    int index = skip_text(next, "&") ? take_index(next) : -1;
    skip_blanks(next);
    if (strchr("{[(", **next)) {
        put_container(p, next, index);
        return;
    }
    if (skip_text(next, "*")) {
        put_byte(p, 'h');
        put_byte(p, take_index(next));
    } else if (skip_text(next, "'")) {
        put_text(p, next);
    } else if (skip_text(next, "None")) {
        put(p, "N");
    } else if (skip_text(next, "True")) {
        put(p, "\x88");
    } else if (skip_text(next, "False")) {
        put(p, "\x89");
    } else {
        put_number(p, next);
    }
    put_memo(p, index);
}

void put_literal(pickle_text *p, const char *literal)
{
    put_value(p, &literal);
    skip_blanks(&literal);
    assert_string_equal(literal, "");
}
