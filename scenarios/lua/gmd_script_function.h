/* gmd_script_function.h - the table of what scripts can call: each function with its parameters.
 *
 * It is the only place that says what a function takes. Arguments are read by it (signature.c), the
 * manual's reference is tested against it, and random programs are generated from it. */
#ifndef GMD_SCRIPT_FUNCTION_H
#define GMD_SCRIPT_FUNCTION_H

#include "gmd_engine.h"

#include <stddef.h>

struct lua_State;

enum script_value {
    VALUE_TENSOR,
    VALUE_MODULE,
    VALUE_OPTIMIZER,
    VALUE_STREAM,
    VALUE_GRAPH,
    VALUE_HELD,    /* whatever the engine can hold */
    VALUE_OPERAND, /* a tensor or a number */
    VALUE_TRUTH,
    VALUE_SWITCH, /* true or false, or a whole number */
    VALUE_INTEGER,
    VALUE_NUMBER,
    VALUE_TEXT,
    VALUE_DTYPE,
    VALUE_FUNCTION,
    VALUE_DIMENSION,  /* from 1, or from the end with -1 */
    VALUE_DIMENSIONS, /* one of them, or a table of them */
    VALUE_PAIR,       /* a whole number, or a table of one for each dimension */
    VALUE_SIZES,      /* a table of whole numbers */
    VALUE_TENSORS,    /* a table or a list of tensors */
    VALUE_MODULES,    /* a table of them */
    VALUE_TRAINABLES, /* a table of modules, tensors and lists */
    VALUE_CHOICES,    /* a table of anything */
    SCRIPT_VALUES
};

struct script_parameter {
    const char *name;
    enum script_value value;
    /* What it is where it is not given, as a script would write it; NULL: it must be given. */
    const char *absent;
    double least, most;   /* of numbers; both 0: any */
    bool by_name;         /* it has no position */
    bool is_checked_only; /* it decides about values, and not about memory */
};

struct script_function {
    const char *name;
    int (*call)(struct lua_State *lua); /* finds its arguments by their place in `takes`, behind the
                           receiver; leaves them where they are; pushes its results */
    enum {
        FUNCTION_CALL = 0,
        FUNCTION_STATEMENT = 1, /* temporaries left by earlier expressions are dropped first */
        FUNCTION_QUERY = 2,     /* reads its arguments and does not consume them */
    } kind;
    enum {
        STYLE_CALL = 0,  /* f(a, b, { option = }) */
        STYLE_TABLE = 1, /* f { a, b, option = } */
        STYLE_ITEMS = 2, /* f { item, item ..., option = }: the items are the first parameter */
    } style;
    /* Ends with a NULL name. NULL: Lua itself calls it with what the operator takes. */
    const struct script_parameter *takes;
};

#define TAKES(...)                                                                                 \
    (const struct script_parameter[])                                                              \
    {                                                                                              \
        __VA_ARGS__,                                                                               \
        {                                                                                          \
            .name = NULL                                                                           \
        }                                                                                          \
    }
#define TAKES_NOTHING                                                                              \
    (const struct script_parameter[])                                                              \
    {                                                                                              \
        {                                                                                          \
            .name = NULL                                                                           \
        }                                                                                          \
    }

/* Functions that are called in the same way; ends with a NULL name. */
struct script_group {
    const char *prefix;              /* "nn." or "t:", for messages and the manual; "": none */
    const struct thing_class *class; /* they are its methods; NULL: plain functions */
    const struct script_function *functions;
};

/* All of them (library.c); ends with a NULL prefix. */
extern const struct script_group script_groups[];

/* How a script writes the call: "nn.Linear { in, out [, bias = true] }"; the length as snprintf().
 */
size_t script_usage(const struct script_group *group, const struct script_function *function,
                    char *text, size_t size);

#endif
