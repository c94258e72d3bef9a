#include "call_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct call {
    char *text;
    size_t length;
} call;

__attribute__((format(printf, 2, 3))) static void put(call *out, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    out->length +=
        (size_t)vsnprintf(out->text + out->length, CALL_TEXT_SIZE - out->length, format, arguments);
    va_end(arguments);
    if (out->length >= CALL_TEXT_SIZE) {
        out->length = CALL_TEXT_SIZE - 1;
    }
}

const char *call_receiver(const struct script_group *group)
{
    return !group->class                      ? ""
           : strcmp(group->prefix, "t:") == 0 ? "x"
           : strcmp(group->prefix, "m:") == 0 ? "m"
           : strcmp(group->prefix, "l:") == 0 ? "l"
           : strcmp(group->prefix, "o:") == 0 ? "o"
           : strcmp(group->prefix, "g:") == 0 ? "g"
           : strcmp(group->prefix, "s:") == 0 ? "s"
                                              : "graph";
}

static const char *const samples[SCRIPT_VALUES] = {
    [VALUE_TENSOR] = "y",         [VALUE_MODULE] = "m",
    [VALUE_OPTIMIZER] = "o",      [VALUE_GRAPH] = "graph",
    [VALUE_STREAM] = "s",         [VALUE_HELD] = "y",
    [VALUE_OPERAND] = "2",        [VALUE_TRUTH] = "true",
    [VALUE_SWITCH] = "true",      [VALUE_INTEGER] = "1",
    [VALUE_NUMBER] = "0.5",       [VALUE_TEXT] = "'sum'",
    [VALUE_DTYPE] = "'bfloat16'", [VALUE_FUNCTION] = "function() end",
    [VALUE_DIMENSION] = "1",      [VALUE_DIMENSIONS] = "{ 1 }",
    [VALUE_PAIR] = "{ 1, 1 }",    [VALUE_SIZES] = "{ 4, 6 }",
    [VALUE_TENSORS] = "{ x, y }", [VALUE_MODULES] = "{ m }",
    [VALUE_TRAINABLES] = "{ m }", [VALUE_CHOICES] = "{ 1, 2 }",
};

const char *call_sample(const struct script_parameter *parameter)
{
    return parameter->value == VALUE_NUMBER && parameter->least >= 1 ? "1"
                                                                     : samples[parameter->value];
}

/* A function is what no parameter but one takes; and tables are taken by their items. */
const char *call_mistake(const struct script_parameter *parameter)
{
    return parameter->value == VALUE_FUNCTION ? "1" : "function() end";
}

static void put_name(call *out, const struct script_group *group,
                     const struct script_function *function)
{
    if (group->class) {
        put(out, "%s:%s", call_receiver(group), function->name);
    } else {
        put(out, "%s%s", group->prefix, function->name);
    }
}

static const char *items_of(const char *table)
{
    static char items[CALL_TEXT_SIZE];
    size_t length = strlen(table);
    if (table[0] != '{') {
        return table;
    }
    snprintf(items, sizeof items, "%.*s", (int)(length - 2), table + 1);
    return items;
}

void call_with(const struct script_group *group, const struct script_function *function,
               const struct script_parameter *one, const char *value, char text[CALL_TEXT_SIZE])
{
    call out = {text, 0};
    text[0] = '\0';
    const struct script_parameter *each = function->takes;
    put_name(&out, group, function);
    if (function->style == STYLE_ITEMS && each == one && value[0] != '{') {
        put(&out, "(%s)", value);
        return;
    }
    put(&out, "({ ");
    if (function->style == STYLE_ITEMS) {
        put(&out, "%s, ", items_of(each == one ? value : call_sample(each)));
        each++;
    }
    for (; each->name; each++) {
        if (each == one) {
            put(&out, "%s = %s, ", each->name, value);
        } else if (!each->absent) {
            put(&out, "%s = %s, ", each->name, call_sample(each));
        }
    }
    put(&out, "})");
}

void call_with_too_many(const struct script_group *group, const struct script_function *function,
                        char text[CALL_TEXT_SIZE])
{
    call out = {text, 0};
    text[0] = '\0';
    int positions = 0;
    for (const struct script_parameter *each = function->takes; each->name; each++) {
        positions += !each->by_name;
    }
    put_name(&out, group, function);
    put(&out, function->style == STYLE_TABLE ? "{ 1" : "(1");
    for (int i = 0; i < positions; i++) {
        put(&out, ", 1");
    }
    put(&out, function->style == STYLE_TABLE ? " }" : ")");
}

/* --- at random --------------------------------------------------------------------------- */

static int64_t some_size(gmd_random *random)
{
    static const int64_t sizes[] = {0, 1, 2, 3, 4, 6, 8, 16, 33};
    if (gmd_random_chance(random, 2)) {
        return (int64_t)1 << 40;
    }
    return sizes[gmd_random_below(random, sizeof sizes / sizeof *sizes)];
}

static void put_sizes(call *out, gmd_random *random, bool with_open)
{
    uint64_t dims = gmd_random_below(random, 5);
    put(out, "{ ");
    for (uint64_t i = 0; i < dims; i++) {
        bool is_open = with_open && gmd_random_chance(random, 20);
        put(out, i ? ", %lld" : "%lld", is_open ? -1LL : (long long)some_size(random));
    }
    put(out, "}");
}

static void put_number(call *out, const struct script_parameter *parameter, gmd_random *random)
{
    bool is_any = parameter->least == 0 && parameter->most == 0;
    double least = is_any ? -2 : parameter->least, most = is_any ? 8 : parameter->most;
    double span = most - least > 16 ? 16 : most - least;
    double value = least + span * (double)gmd_random_below(random, 9) / 8;
    put(out, parameter->value == VALUE_NUMBER ? "%.3f" : "%.0f", value);
}

static void put_choice(call *out, gmd_random *random, const char *const *texts, size_t count)
{
    put(out, "%s", texts[gmd_random_below(random, count)]);
}

#define PUT_ONE_OF(out, random, ...)                                                               \
    put_choice(out, random, (const char *const[]){__VA_ARGS__},                                    \
               sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

static void put_value(call *out, const struct script_parameter *parameter, gmd_random *random)
{
    switch (parameter->value) {
    case VALUE_TENSOR:
    case VALUE_OPERAND:
        PUT_ONE_OF(out, random, "x", "y", "z", "u", "w", "v");
        break;
    case VALUE_MODULE:
        PUT_ONE_OF(out, random, "m", "n", "nn.Linear { 6, 4 }");
        break;
    case VALUE_SWITCH:
        PUT_ONE_OF(out, random, "true", "false", "2");
        break;
    case VALUE_TRUTH:
        PUT_ONE_OF(out, random, "true", "false");
        break;
    case VALUE_INTEGER:
    case VALUE_NUMBER:
        put_number(out, parameter, random);
        break;
    case VALUE_TEXT:
        PUT_ONE_OF(out, random, "'mean'", "'sum'", "'none'", "'batchmean'", "'bilinear'", "'flash'",
                   "'efficient'", "'math'");
        break;
    case VALUE_DTYPE:
        PUT_ONE_OF(out, random, "'float32'", "'bfloat16'", "'float16'", "'int64'", "'bool'");
        break;
    case VALUE_FUNCTION:
        PUT_ONE_OF(out, random, "function() return x * 2 end", "function() v = x + y end",
                   "function() error('on purpose') end");
        break;
    case VALUE_DIMENSION:
        PUT_ONE_OF(out, random, "1", "2", "3", "-1", "-2");
        break;
    case VALUE_DIMENSIONS:
        PUT_ONE_OF(out, random, "1", "-1", "{ 1, 2 }", "{ 2, 1 }", "{ 3, 1, 2 }", "{ 1, 3 }");
        break;
    case VALUE_PAIR:
        PUT_ONE_OF(out, random, "1", "2", "3", "{ 1, 3 }", "{ 2, 2 }");
        break;
    case VALUE_SIZES:
        put_sizes(out, random, parameter->least < 0);
        break;
    case VALUE_TENSORS:
        PUT_ONE_OF(out, random, "{ x, y }", "{ x }", "{ u, u, u }", "{ z, w }", "x:unbind()");
        break;
    case VALUE_TRAINABLES:
        PUT_ONE_OF(out, random, "{ m }", "{ n, x }", "{ n:parameters() }");
        break;
    default:
        put(out, "%s", call_sample(parameter));
    }
}

static void put_options(call *out, const struct script_function *function, gmd_random *random,
                        bool all)
{
    const struct script_parameter *each = function->takes + (function->style == STYLE_ITEMS);
    for (; each->name; each++) {
        bool is_positional = function->style == STYLE_CALL && !each->by_name && !all;
        if (!is_positional && (!each->absent || gmd_random_chance(random, 40))) {
            put(out, "%s = ", each->name);
            put_value(out, each, random);
            put(out, ", ");
        }
    }
}

static void put_positions(call *out, const struct script_function *function, gmd_random *random)
{
    const char *joint = "";
    put(out, "(");
    for (const struct script_parameter *each = function->takes; each->name; each++) {
        if (each->by_name) {
            continue;
        }
        if (each->absent && gmd_random_chance(random, 40)) {
            break;
        }
        put(out, "%s", joint);
        put_value(out, each, random);
        joint = ", ";
    }
    put(out, "%s{ ", joint);
    put_options(out, function, random, false);
    put(out, "})");
}

void call_at_random(const struct script_group *group, const struct script_function *function,
                    gmd_random *random, char text[CALL_TEXT_SIZE])
{
    call out = {text, 0};
    text[0] = '\0';
    if (group->class && strcmp(group->prefix, "t:") == 0) {
        PUT_ONE_OF(&out, random, "x", "y", "z", "u", "w", "v");
        put(&out, ":%s", function->name);
    } else {
        put_name(&out, group, function);
    }
    if (function->style == STYLE_CALL) {
        put_positions(&out, function, random);
        return;
    }
    put(&out, " { ");
    if (function->style == STYLE_ITEMS) {
        char items[CALL_TEXT_SIZE];
        call list = {items, 0};
        put_value(&list, function->takes, random);
        const char *given = items_of(items);
        put(&out, "%s%s ", given, given[strspn(given, " ")] ? "," : "");
    }
    put_options(&out, function, random, true);
    put(&out, "}");
}

void call_each(void (*visit)(const struct script_group *group,
                             const struct script_function *function, void *context),
               void *context)
{
    for (const struct script_group *group = script_groups; group->prefix; group++) {
        for (const struct script_function *each = group->functions; each->name; each++) {
            visit(group, each, context);
        }
    }
}
