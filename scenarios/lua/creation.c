/* creation.c - tensors from nothing: randn { 32, 3, 224, 224 }. */
#include "library_parts.h"

int give_tensor(lua_State *lua, struct tensor *tensor)
{
    if (!tensor) {
        raise_failure(lua);
    }
    return push_result(lua, tensor_thing(tensor));
}

enum { SIZES = 1, DTYPE, REQUIRES_GRAD };

static int create(lua_State *lua)
{
    struct shape shape = shape_at(lua, SIZES);
    enum dtype dtype = dtype_at(lua, DTYPE, DTYPE_FLOAT32);
    bool requires_grad = lua_toboolean(lua, REQUIRES_GRAD);
    if (requires_grad && !dtype_is_floating(dtype)) {
        return luaL_error(lua, "only floating types can require gradients, and this is %s",
                          dtype_name(dtype));
    }
    struct tensor *tensor = tensor_new(engine_of(lua), &shape, dtype);
    tensor->requires_grad = requires_grad;
    storage_mark(tensor->storage, GMD_INPUT);
    return give_tensor(lua, tensor);
}

static int create_like(lua_State *lua)
{
    struct tensor *tensor = tensor_like(engine_of(lua), check_tensor(lua, 1));
    storage_mark(tensor->storage, GMD_INPUT);
    return give_tensor(lua, tensor);
}

#define SIZES_AND_TYPE(dtype)                                                                      \
    TAKES(NEEDS_IN("sizes", SIZES, 0, (double)MAX_DIMENSION_SIZE), OPTION("dtype", DTYPE, dtype),  \
          OPTION("requires_grad", TRUTH, "false"))
#define CREATE(name, dtype)                                                                        \
    {                                                                                              \
        name, create, FUNCTION_CALL, STYLE_ITEMS, SIZES_AND_TYPE(dtype)                            \
    }
#define CREATE_LIKE(name)                                                                          \
    {                                                                                              \
        name, create_like, FUNCTION_CALL, STYLE_CALL, TAKES(NEEDS("tensor", TENSOR))               \
    }

const struct script_function creation_functions[] = {
    CREATE("randn", "\"float32\""), CREATE("rand", "\"float32\""),  CREATE("zeros", "\"float32\""),
    CREATE("ones", "\"float32\""),  CREATE("empty", "\"float32\""), CREATE("randint", "\"int64\""),
    CREATE_LIKE("randn_like"),      CREATE_LIKE("zeros_like"),      END_OF_FUNCTIONS,
};
