/* library.c - everything that scripts find, put together. */
#include "library.h"

#include "gmd_module.h"
#include "gmd_object.h"
#include "gmd_optimizer.h"
#include "stream.h"

static const gmd_class_methods classes[] = {
    {&gmd_tensor_class, tensor_methods},
    {&gmd_tensor_class, tensor_operations},
    {&gmd_module_class, module_methods},
    {&gmd_list_class, list_methods},
    {&gmd_optimizer_class, optimizer_methods},
    {&gmd_stream_class, stream_methods},
    {NULL, NULL},
};

const gmd_library script_library = {.classes = classes,
                                    .operators = script_operators,
                                    .index = script_index,
                                    .set_index = script_set_index};

void library_functions(lua_State *lua)
{
    engine_functions(lua);
    operation_functions(lua);
    run_functions(lua);
}
