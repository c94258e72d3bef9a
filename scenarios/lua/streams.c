/* streams.c - streams in scripts: cuda.Stream(), cuda.stream(s, function() ... end),
 * t:record_stream(s), t:use(). */
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
    int top = lua_gettop(lua);
    engine->stream = number;
    int status = binding_call_block(lua, 2);
    engine->stream = before;
    return status == LUA_OK ? lua_gettop(lua) - top : lua_error(lua);
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
    {"wait_stream", wait_stream, FUNCTION_STATEMENT, STYLE_CALL, TAKES(NEEDS("other", STREAM))},
    {"synchronize", synchronize, FUNCTION_STATEMENT, STYLE_CALL, TAKES_NOTHING},
    END_OF_FUNCTIONS,
};

const struct script_function stream_functions[] = {
    {"Stream", new_stream, FUNCTION_CALL, STYLE_CALL, TAKES_NOTHING},
    {"current_stream", current_stream, FUNCTION_CALL, STYLE_CALL, TAKES_NOTHING},
    {"stream", on_stream, FUNCTION_CALL, STYLE_CALL,
     TAKES(NEEDS("stream", STREAM), NEEDS("block", FUNCTION))},
    END_OF_FUNCTIONS,
};

/* --- tensors ----------------------------------------------------------------------------- */

static int on_block(lua_State *lua, uint8_t op, uint32_t stream, uint64_t duration_ns)
{
    const struct storage *storage = check_tensor(lua, 1)->storage;
    gmd_request request = {
        .op = (uint8_t)op, .block = storage->block, .stream = stream, .duration_ns = duration_ns};
    if (storage->has_block) {
        engine_request(engine_of(lua), &request);
    }
    return 0;
}

static int record_stream(lua_State *lua)
{
    struct stream *stream = (struct stream *)check_thing(lua, 2, &stream_class);
    return on_block(lua, GMD_OP_RECORD, stream->number, 0);
}

/* t:use(ns): a kernel on the current stream reads and writes the tensor for so long. */
static int use(lua_State *lua)
{
    uint64_t duration_ns = (uint64_t)lua_tointeger(lua, 2);
    return on_block(lua, GMD_OP_USE, engine_of(lua)->stream, duration_ns);
}

const struct script_function tensor_stream_methods[] = {
    {"record_stream", record_stream, FUNCTION_STATEMENT, STYLE_CALL,
     TAKES(NEEDS("stream", STREAM))},
    {"use", use, FUNCTION_STATEMENT, STYLE_CALL,
     TAKES(MAY_TAKE_IN("ns", INTEGER, "1000", 1, 9e15))},
    END_OF_FUNCTIONS,
};
