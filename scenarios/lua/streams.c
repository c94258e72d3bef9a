/* streams.c - streams in scripts: cuda.Stream(), cuda.stream(s, function() ... end),
 * t:record_stream(s). */
#include "library.h"
#include "stream.h"

static void destroy_stream(gmd_engine *engine, gmd_thing *thing)
{
    (void)engine;
    (void)thing; /* torch's streams come from a pool and are never destroyed */
}

const gmd_thing_class gmd_stream_class = {.name = "stream", .destroy = destroy_stream};

static gmd_stream *check_stream(lua_State *lua, int index)
{
    return (gmd_stream *)gmd_check_thing(lua, index, &gmd_stream_class);
}

static int give_stream(lua_State *lua, uint32_t number)
{
    gmd_engine *engine = engine_of(lua);
    gmd_stream *stream = gmd_take(engine, sizeof *stream);
    gmd_thing_init(engine, &stream->thing, &gmd_stream_class);
    stream->number = number;
    return gmd_push_result(lua, &stream->thing);
}

/* As torch: 32 streams, handed out in turn. */
static int new_stream(lua_State *lua)
{
    gmd_engine *engine = engine_of(lua);
    return give_stream(lua, 1 + engine->streams++ % 32);
}

static int current_stream(lua_State *lua)
{
    return give_stream(lua, engine_of(lua)->stream);
}

/* What the function allocates belongs to the stream. */
static int on_stream(lua_State *lua)
{
    gmd_engine *engine = engine_of(lua);
    uint32_t before = engine->stream;
    uint32_t number = check_stream(lua, 1)->number;
    luaL_checktype(lua, 2, LUA_TFUNCTION);
    engine->stream = number;
    int status = gmd_lua_call_block(lua, 2);
    engine->stream = before;
    return status == LUA_OK ? 0 : lua_error(lua);
}

static int wait_stream(lua_State *lua)
{
    gmd_request request = {.op = GMD_OP_WAIT,
                           .stream = check_stream(lua, 1)->number,
                           .other_stream = check_stream(lua, 2)->number};
    gmd_ask(engine_of(lua), &request);
    return 0;
}

static int synchronize(lua_State *lua)
{
    gmd_request request = {.op = GMD_OP_SYNC, .stream = check_stream(lua, 1)->number};
    gmd_ask(engine_of(lua), &request);
    return 0;
}

const gmd_function stream_methods[] = {
    {"wait_stream", wait_stream, GMD_STATEMENT},
    {"synchronize", synchronize, GMD_STATEMENT},
    {NULL, NULL, GMD_CALL},
};

static const gmd_function functions[] = {
    {"Stream", new_stream, GMD_CALL},
    {"current_stream", current_stream, GMD_CALL},
    {"stream", on_stream, GMD_CALL},
    {NULL, NULL, GMD_CALL},
};

void stream_functions(lua_State *lua)
{
    gmd_binding_functions(lua, functions);
}
