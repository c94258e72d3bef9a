/* call_text.h - calls of the functions of the table (gmd_script_function.h) as text. */
#ifndef CALL_TEXT_H
#define CALL_TEXT_H

#include "gmd_random.h"
#include "gmd_script_function.h"

#define CALL_TEXT_SIZE 512

/* Variables that the calls below use: x, y (tensors), m (a module), l, o, s, g. */
#define CALL_PRELUDE                                                                               \
    "x, y = randn { 4, 6 }, randn { 4, 6 }\nm = nn.ReLU()\nl = list()\no = optim.SGD { m }\n"      \
    "s, g, graph = cuda.Stream(), GradScaler(), cuda.CUDAGraph()\n"

/* The variable that a method of the group is called on; "": plain functions. */
const char *call_receiver(const struct script_group *group);

/* A value that the parameter takes. */
const char *call_sample(const struct script_parameter *parameter);
/* One that it does not. */
const char *call_mistake(const struct script_parameter *parameter);

/* The call with a sample for each parameter that must be given, and `value` for `one`, which may be
 * NULL. The text before it, up to its name, is the receiver's or the library's. */
void call_with(const struct script_group *group, const struct script_function *function,
               const struct script_parameter *one, const char *value, char text[CALL_TEXT_SIZE]);

/* The call with more arguments than it takes. */
void call_with_too_many(const struct script_group *group, const struct script_function *function,
                        char text[CALL_TEXT_SIZE]);

/* A call with values from the generator: names from the list `tensors`, which it may not fit. */
void call_at_random(const struct script_group *group, const struct script_function *function,
                    gmd_random *random, char text[CALL_TEXT_SIZE]);

/* Calls `visit` for each function that has a table of parameters. */
void call_each(void (*visit)(const struct script_group *group,
                             const struct script_function *function, void *context),
               void *context);

#endif
