/* run_functions.c - what scripts say of the run itself and ask of the device: phases, bounds,
 * numbers from the seed, cuda.*. */
#include "arguments.h"
#include "library_parts.h"

/* --- cuda -------------------------------------------------------------------------------- */

static int ask(lua_State *lua, gmd_request request)
{
    engine_request(engine_of(lua), &request);
    return 0;
}

static int cuda_empty_cache(lua_State *lua)
{
    return ask(lua, (gmd_request){.op = GMD_OP_EMPTY_CACHE});
}

static int cuda_synchronize(lua_State *lua)
{
    return ask(lua, (gmd_request){.op = GMD_OP_SYNC, .stream = GMD_ALL_STREAMS});
}

static void set_figure(lua_State *lua, const char *name, uint64_t bytes)
{
    lua_pushinteger(lua, (lua_Integer)bytes);
    lua_setfield(lua, -2, name);
}

static int cuda_memory(lua_State *lua)
{
    const gmd_sink *sink = engine_of(lua)->sink;
    gmd_sink_memory memory;
    if (!sink->memory || !sink->memory(sink->context, &memory)) {
        lua_pushnil(lua);
        return 1;
    }
    lua_newtable(lua);
    set_figure(lua, "allocated", memory.allocated);
    set_figure(lua, "max_allocated", memory.max_allocated);
    set_figure(lua, "reserved", memory.reserved);
    set_figure(lua, "max_reserved", memory.max_reserved);
    return 1;
}

/* What the script asked for, which is the same for every allocator. */
static int cuda_requested(lua_State *lua)
{
    const struct engine *engine = engine_of(lua);
    lua_newtable(lua);
    set_figure(lua, "bytes", engine->live_bytes);
    set_figure(lua, "peak", engine->peak_bytes);
    return 1;
}

/* cuda.block_bytes(n): what PyTorch's allocator counts as allocated for each of many requests of n
 * bytes, in new segments: they are rounded to 512; from 1 MiB on, what is left of a segment is split
 * off only where it is more than 1 MiB. Segments have 20 MiB, and from 10 MiB on whole 2 MiB for one
 * request. */
static int cuda_block_bytes(lua_State *lua)
{
    const lua_Integer mib = 1 << 20;
    lua_Integer bytes = (lua_Integer)luaL_checknumber(lua, 1);
    luaL_argcheck(lua, bytes >= 0 && bytes <= (lua_Integer)1 << 50, 1, "bytes expected");
    lua_Integer block = (bytes + 511) / 512 * 512;
    lua_Integer segment =
        block < 10 * mib ? 20 * mib : (block + 2 * mib - 1) / (2 * mib) * (2 * mib);
    lua_Integer fit = block > mib ? segment / block : 1;
    lua_Integer left = block > mib ? segment - fit * block : 0;
    lua_pushinteger(lua, left <= mib ? block + (left + fit - 1) / fit : block);
    return 1;
}

static int cuda_reset_peaks(lua_State *lua)
{
    struct engine *engine = engine_of(lua);
    engine->peak_bytes = engine->live_bytes;
    if (engine->state != ENGINE_WAS_ENDED && engine->sink->reset_peaks) {
        engine->sink->reset_peaks(engine->sink->context);
    }
    return 0;
}

static const struct script_function cuda_functions[] = {
    {"empty_cache", cuda_empty_cache, FUNCTION_STATEMENT},
    {"synchronize", cuda_synchronize, FUNCTION_STATEMENT},
    {"memory", cuda_memory, FUNCTION_STATEMENT},
    {"requested", cuda_requested, FUNCTION_STATEMENT},
    {"block_bytes", cuda_block_bytes, FUNCTION_QUERY},
    {"reset_peak_memory_stats", cuda_reset_peaks, FUNCTION_STATEMENT},
    {NULL, NULL, FUNCTION_CALL},
};

/* --- the run ----------------------------------------------------------------------------- */

static int phase(lua_State *lua)
{
    struct engine *engine = engine_of(lua);
    const char *label = luaL_checkstring(lua, 1);
    if (engine->state != ENGINE_WAS_ENDED && engine->sink->phase) {
        engine->sink->phase(engine->sink->context, label);
    }
    return 0;
}

static void state_bound(lua_State *lua, const char *figure, bool is_reserved, bool leaks)
{
    const struct engine *engine = engine_of(lua);
    double bytes = field_number(lua, 1, figure, 0);
    gmd_bound bound = {.is_reserved = is_reserved, .leaks = leaks, .bytes = (uint64_t)bytes};
    if (bytes > 0 && engine->state != ENGINE_WAS_ENDED && engine->sink->bound) {
        engine->sink->bound(engine->sink->context, &bound);
    }
}

/* bound { allocated = bytes, leaks = is_the_leaking_variant }: from here to the end. */
static int bound(lua_State *lua)
{
    luaL_checktype(lua, 1, LUA_TTABLE);
    check_fields(lua, 1, "allocated reserved leaks");
    bool leaks = field_boolean(lua, 1, "leaks", false);
    double allocated = field_number(lua, 1, "allocated", 0);
    double reserved = field_number(lua, 1, "reserved", 0);
    const double most = (double)((uint64_t)1 << 62);
    if (!(allocated >= 0 && allocated <= most && reserved >= 0 && reserved <= most &&
          allocated + reserved > 0)) {
        return luaL_error(lua, "bound { } needs allocated = BYTES or reserved = BYTES, above 0");
    }
    state_bound(lua, "allocated", false, leaks);
    state_bound(lua, "reserved", true, leaks);
    return 0;
}

/* random(n): a whole number in 1..n; random(a, b): in a..b. */
static int random_integer(lua_State *lua)
{
    lua_Integer low = lua_isnoneornil(lua, 2) ? 1 : luaL_checkinteger(lua, 1);
    lua_Integer high = luaL_checkinteger(lua, lua_isnoneornil(lua, 2) ? 1 : 2);
    luaL_argcheck(lua, low <= high, 1, "the first number must not be above the second");
    uint64_t span = (uint64_t)high - (uint64_t)low + 1;
    uint64_t drawn = span ? engine_random(engine_of(lua), span) : 0;
    uint64_t number = (uint64_t)low + drawn; /* wraps as Lua's own integers do */
    lua_pushinteger(lua, (lua_Integer)number);
    return 1;
}

/* choice { a, b, c }: one of them. */
static int choice(lua_State *lua)
{
    luaL_checktype(lua, 1, LUA_TTABLE);
    lua_Unsigned count = lua_rawlen(lua, 1);
    luaL_argcheck(lua, count > 0, 1, "nothing to choose from");
    lua_rawgeti(lua, 1, (lua_Integer)engine_random(engine_of(lua), count) + 1);
    return 1;
}

static const struct script_function functions[] = {
    {"phase", phase, FUNCTION_STATEMENT},
    {"bound", bound, FUNCTION_STATEMENT},
    {"random", random_integer, FUNCTION_QUERY},
    {"choice", choice, FUNCTION_QUERY},
    {NULL, NULL, FUNCTION_CALL},
};

void run_functions(lua_State *lua)
{
    binding_functions(lua, functions);
    lua_newtable(lua);
    binding_functions(lua, cuda_functions);
    stream_functions(lua);
    lua_setfield(lua, -2, "cuda");
}
