/* library_parts.h - the parts of what scripts can call, each in the file of its name; library.c
 * puts them together. */
#ifndef LIBRARY_PARTS_H
#define LIBRARY_PARTS_H

#include "arguments.h"
#include "gmd_lua_binding.h"

/* Entries of TAKES(): what must be given; what need not be, by position or by name only. */
#define NEEDS(NAME, VALUE)                                                                         \
    {                                                                                              \
        .name = (NAME), .value = VALUE_##VALUE                                                     \
    }
#define MAY_TAKE(NAME, VALUE, ABSENT)                                                              \
    {                                                                                              \
        .name = (NAME), .value = VALUE_##VALUE, .absent = (ABSENT)                                 \
    }
#define OPTION(NAME, VALUE, ABSENT)                                                                \
    {                                                                                              \
        .name = (NAME), .value = VALUE_##VALUE, .absent = (ABSENT), .by_name = true                \
    }
#define NEEDS_IN(NAME, VALUE, LEAST, MOST)                                                         \
    {                                                                                              \
        .name = (NAME), .value = VALUE_##VALUE, .least = (LEAST), .most = (MOST)                   \
    }
#define NEEDS_NAMED(NAME, VALUE, LEAST, MOST)                                                      \
    {                                                                                              \
        .name = (NAME), .value = VALUE_##VALUE, .least = (LEAST), .most = (MOST), .by_name = true  \
    }
#define MAY_TAKE_IN(NAME, VALUE, ABSENT, LEAST, MOST)                                              \
    {                                                                                              \
        .name = (NAME), .value = VALUE_##VALUE, .absent = (ABSENT), .least = (LEAST),              \
        .most = (MOST)                                                                             \
    }
#define OPTION_IN(NAME, VALUE, ABSENT, LEAST, MOST)                                                \
    {                                                                                              \
        .name = (NAME), .value = VALUE_##VALUE, .absent = (ABSENT), .least = (LEAST),              \
        .most = (MOST), .by_name = true                                                            \
    }
/* Checked, and without effect on memory. */
#define CHECKED(NAME, VALUE, ABSENT, LEAST, MOST)                                                  \
    {                                                                                              \
        .name = (NAME), .value = VALUE_##VALUE, .absent = (ABSENT), .least = (LEAST),              \
        .most = (MOST), .by_name = true, .is_checked_only = true                                   \
    }

#define END_OF_FUNCTIONS                                                                           \
    {                                                                                              \
        .name = NULL                                                                               \
    }

extern const struct script_function creation_functions[]; /* creation.c */
extern const struct script_function operation_functions[],
    loss_functions[]; /* operations.c, losses.c */
extern const struct script_function rearranging_functions[],
    tensor_rearrangements[];                          /* rearrange.c */
extern const struct script_function copy_functions[]; /* nn_more.c */
extern const struct script_function attention_functions[],
    nn_attention_functions[];                          /* attention.c */
extern const struct script_function block_functions[]; /* blocks.c */
extern const struct script_function nn_functions[];    /* nn.c */
extern const struct script_function nn_more_functions[],
    index_functions[]; /* nn_more.c, indexing.c */
extern const struct script_function scaler_functions[], scaler_methods[]; /* scaler.c */
extern const struct script_function optim_functions[];                    /* optim.c */
extern const struct script_function object_functions[], gc_functions[];   /* objects.c */
extern const struct script_function run_functions[], cuda_functions[],
    cudnn_functions[];                                                      /* run_functions.c */
extern const struct script_function stream_functions[];                     /* streams.c */
extern const struct script_function autograd_functions[];                   /* gradients.c */
extern const struct script_function graph_functions[], graph_methods[];     /* graphs.c */
extern const struct script_function dist_functions[], sharding_functions[]; /* distributed.c */

/* Methods. */
extern const struct script_function tensor_methods[], module_methods[];        /* methods.c */
extern const struct script_function sharded_methods[];                         /* distributed.c */
extern const struct script_function optimizer_methods[];                       /* optim.c */
extern const struct script_function list_methods[];                            /* objects.c */
extern const struct script_function tensor_operations[];                       /* operations.c */
extern const struct script_function tensor_indexing[];                         /* indexing.c */
extern const struct script_function tensor_parts[];                            /* parts.c */
extern const struct script_function tensor_views[];                            /* views.c */
extern const struct script_function tensor_changes[];                          /* changes.c */
extern const struct script_function tensor_stream_methods[], stream_methods[]; /* streams.c */

/* Attributes, items and operators (attributes.c). */
extern const struct script_function script_operators[];
int script_index(lua_State *lua);
int script_set_index(lua_State *lua);

/* Pushes the result of an operation; NULL: raises what the engine's state says. */
int give_tensor(lua_State *lua, struct tensor *tensor);
/* __call of a module (methods.c). */
int call_module(lua_State *lua);
int list_length(lua_State *lua); /* objects.c */

#endif
