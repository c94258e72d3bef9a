/* streams.c - streams in scripts: cuda.Stream(), cuda.stream(s, function() ... end),
 * t:record_stream(s). */
#include "library_parts.h"
#include "stream.h"

static void destroy_stream(struct engine *engine, struct thing *thing)
{
    (void)engine;
    (void)thing; /* torch's streams come from a pool and are never destroyed */
}

const struct thing_class stream_class = {.name = "stream", .destroy = destroy_stream};

static struct stream *check_stream(lua_State *lua, int index)
{
    return (struct stream *)check_thing(lua, index, &stream_class);
}

static int give_stream(lua_State *lua, uint32_t number)
{
    struct engine *engine = engine_of(lua);
    struct stream *stream = host_take(engine, sizeof *stream);
    thing_init(engine, &stream->thing, &stream_class);
    stream->number = number;
    return push_result(lua, &stream->thing);
}

/* 32 streams, handed out in turn, as in torch. */
static int new_stream(lua_State *lua)
{
    struct engine *engine = engine_of(lua);
    return give_stream(lua, 1 + engine->streams++ % 32);
}

static int current_stream(lua_State *lua)
{
    return give_stream(lua, engine_of(lua)->stream);
}

/* What the function allocates belongs to the stream. */
static int on_stream(lua_State *lua)
{
    struct engine *engine = engine_of(lua);
    uint32_t before = engine->stream;
    uint32_t number = check_stream(lua, 1)->number;
    luaL_checktype(lua, 2, LUA_TFUNCTION);
    engine->stream = number;
    int status = binding_call_block(lua, 2);
    engine->stream = before;
    return status == LUA_OK ? 0 : lua_error(lua);
}

static int wait_stream(lua_State *lua)
{
    gmd_request request = {.op = GMD_OP_WAIT,
                           .stream = check_stream(lua, 1)->number,
                           .other_stream = check_stream(lua, 2)->number};
    engine_request(engine_of(lua), &request);
    return 0;
}

static int synchronize(lua_State *lua)
{
    gmd_request request = {.op = GMD_OP_SYNC, .stream = check_stream(lua, 1)->number};
    engine_request(engine_of(lua), &request);
    return 0;
}

const struct script_function stream_methods[] = {
    {"wait_stream", wait_stream, FUNCTION_STATEMENT},
    {"synchronize", synchronize, FUNCTION_STATEMENT},
    {NULL, NULL, FUNCTION_CALL},
};

static const struct script_function functions[] = {
    {"Stream", new_stream, FUNCTION_CALL},
    {"current_stream", current_stream, FUNCTION_CALL},
    {"stream", on_stream, FUNCTION_CALL},
    {NULL, NULL, FUNCTION_CALL},
};

void stream_functions(lua_State *lua)
{
    binding_functions(lua, functions);
}
