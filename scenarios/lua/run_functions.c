/* run_functions.c - what scripts say of the run itself and ask of the device: phases, bounds,
 * numbers from the seed, cuda.*. */
#include "gmd_capture.h"
#include "gmd_operations.h"
#include "library_parts.h"

/* --- cuda -------------------------------------------------------------------------------- */

static int ask(lua_State *lua, gmd_request request, const char *what)
{
    if (!capture_allows(engine_of(lua), what)) {
        raise_failure(lua);
    }
    engine_request(engine_of(lua), &request);
    return 0;
}

static int cuda_empty_cache(lua_State *lua)
{
    return ask(lua, (gmd_request){.op = GMD_OP_EMPTY_CACHE}, "cuda.empty_cache");
}

static int cuda_synchronize(lua_State *lua)
{
    return ask(lua, (gmd_request){.op = GMD_OP_SYNC, .stream = GMD_ALL_STREAMS},
               "cuda.synchronize");
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

#define MAX_BLOCK 0x1p50

static uint64_t rounded(uint64_t bytes, uint64_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

/* What PyTorch's allocator counts as allocated, and what it reserves, for each of many requests of
 * so many bytes, in new segments. Requests are rounded to 512; of what is left of a segment nothing
 * is split off up to 1 MiB, where requests are larger than that. */
static int cuda_block_bytes(lua_State *lua)
{
    const uint64_t mib = 1 << 20;
    uint64_t bytes = (uint64_t)lua_tonumber(lua, 1), block = rounded(bytes ? bytes : 1, 512);
    uint64_t segment = block <= mib ? 2 * mib : 20 * mib;
    segment = block < 10 * mib ? segment : rounded(block, 2 * mib);
    uint64_t fit = segment / block, left = segment - fit * block;
    uint64_t kept = block > mib && left <= mib ? left : 0;
    lua_pushinteger(lua, bytes ? (lua_Integer)(block + (kept + fit - 1) / fit) : 0);
    lua_pushinteger(lua, bytes ? (lua_Integer)((segment + fit - 1) / fit) : 0);
    return 2;
}

static int cuda_reset_peaks(lua_State *lua)
{
    struct engine *engine = engine_of(lua);
    engine->peak_bytes = engine->peak_least = engine->peak_most = engine->live_bytes;
    if (engine->state != ENGINE_WAS_ENDED && engine->sink->reset_peaks) {
        engine->sink->reset_peaks(engine->sink->context);
    }
    return 0;
}

#define STATEMENT(name, function)                                                                  \
    {                                                                                              \
        name, function, FUNCTION_STATEMENT, STYLE_CALL, TAKES_NOTHING                              \
    }

const struct script_function cuda_functions[] = {
    STATEMENT("empty_cache", cuda_empty_cache),
    STATEMENT("synchronize", cuda_synchronize),
    STATEMENT("memory", cuda_memory),
    STATEMENT("requested", cuda_requested),
    {"block_bytes", cuda_block_bytes, FUNCTION_QUERY, STYLE_CALL,
     TAKES(NEEDS_IN("bytes", NUMBER, 0, MAX_BLOCK))},
    STATEMENT("reset_peak_memory_stats", cuda_reset_peaks),
    END_OF_FUNCTIONS,
};

/* cudnn.benchmark(true): the first use of a convolution tries all algorithms. */
static int cudnn_benchmark(lua_State *lua)
{
    engine_of(lua)->benchmark = lua_toboolean(lua, 1);
    return 0;
}

const struct script_function cudnn_functions[] = {
    {"benchmark", cudnn_benchmark, FUNCTION_STATEMENT, STYLE_CALL, TAKES(NEEDS("on", TRUTH))},
    END_OF_FUNCTIONS,
};

/* --- the run ----------------------------------------------------------------------------- */

static int phase(lua_State *lua)
{
    struct engine *engine = engine_of(lua);
    const char *label = lua_tostring(lua, 1);
    workspaces_tell(engine);
    if (engine->state != ENGINE_WAS_ENDED && engine->sink->phase) {
        engine->sink->phase(engine->sink->context, label);
    }
    return 0;
}

enum { ALLOCATED = 1, RESERVED, LEAKS };

static void state_bound(lua_State *lua, int figure)
{
    const struct engine *engine = engine_of(lua);
    double bytes = lua_tonumber(lua, figure);
    gmd_bound bound = {.is_reserved = figure == RESERVED,
                       .leaks = lua_toboolean(lua, LEAKS),
                       .bytes = (uint64_t)bytes};
    if (bytes > 0 && engine->state != ENGINE_WAS_ENDED && engine->sink->bound) {
        engine->sink->bound(engine->sink->context, &bound);
    }
}

/* bound { allocated = bytes, leaks = is_the_leaking_variant }: from here to the end. */
static int bound(lua_State *lua)
{
    if (lua_tonumber(lua, ALLOCATED) + lua_tonumber(lua, RESERVED) <= 0) {
        return luaL_error(lua, "bound { } needs allocated = BYTES or reserved = BYTES, above 0");
    }
    state_bound(lua, ALLOCATED);
    state_bound(lua, RESERVED);
    return 0;
}

/* random(n): a whole number in 1..n; random(a, b): in a..b. */
static int random_integer(lua_State *lua)
{
    bool has_low = !lua_isnil(lua, 2);
    lua_Integer low = has_low ? lua_tointeger(lua, 1) : 1;
    lua_Integer high = lua_tointeger(lua, has_low ? 2 : 1);
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
    lua_Unsigned count = lua_rawlen(lua, 1);
    luaL_argcheck(lua, count > 0, 1, "nothing to choose from");
    lua_rawgeti(lua, 1, (lua_Integer)engine_random(engine_of(lua), count) + 1);
    return 1;
}

#define MOST_BYTES 4611686018427387904.0 /* 2^62 */

const struct script_function run_functions[] = {
    {"phase", phase, FUNCTION_STATEMENT, STYLE_CALL, TAKES(NEEDS("label", TEXT))},
    {"bound", bound, FUNCTION_STATEMENT, STYLE_TABLE,
     TAKES(OPTION_IN("allocated", NUMBER, "0", 0, MOST_BYTES),
           OPTION_IN("reserved", NUMBER, "0", 0, MOST_BYTES), OPTION("leaks", TRUTH, "false"))},
    {"random", random_integer, FUNCTION_QUERY, STYLE_CALL,
     TAKES(NEEDS("first", INTEGER), MAY_TAKE("last", INTEGER, "nil"))},
    {"choice", choice, FUNCTION_QUERY, STYLE_ITEMS, TAKES(NEEDS("choices", CHOICES))},
    END_OF_FUNCTIONS,
};
