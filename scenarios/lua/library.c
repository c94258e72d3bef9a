/* library.c - everything that scripts can call, put together. */
#include "library.h"
#include "library_parts.h"

#include "gmd_module.h"
#include "gmd_object.h"
#include "gmd_optimizer.h"
#include "stream.h"

static const struct class_methods classes[] = {
    {&tensor_class, tensor_methods},
    {&tensor_class, tensor_operations},
    {&module_class, module_methods},
    {&list_class, list_methods},
    {&optimizer_class, optimizer_methods},
    {&stream_class, stream_methods},
    {NULL, NULL},
};

const struct script_library script_library = {.classes = classes,
                                              .operators = script_operators,
                                              .index = script_index,
                                              .set_index = script_set_index};

void library_functions(lua_State *lua)
{
    engine_functions(lua);
    operation_functions(lua);
    run_functions(lua);
}
