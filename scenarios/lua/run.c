/* run.c - one run of a scenario: a fresh engine, a fresh Lua state, the script from its first line.
 */
#include "gmd_collector.h"
#include "gmd_operations.h"
#include "gmd_sandbox.h"
#include "gmd_script.h"
#include "gmd_spelling.h"
#include "library.h"

#include <lauxlib.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct job {
    const gmd_scenario *scenario;
    const gmd_param *params;
    size_t param_count;
    struct binding *binding;
    gmd_error *error;
    bool bad_param;
} job;

static const char *value_of(const job *run, const struct declared_param *param)
{
    const char *value = param->text;
    for (size_t i = 0; i < run->param_count; i++) {
        if (strcmp(run->params[i].key, param->key) == 0) {
            value = run->params[i].value; /* the last one counts */
        }
    }
    return value;
}

static gmd_status check_names(const job *run)
{
    for (size_t i = 0; i < run->param_count; i++) {
        if (script_find_param(run->scenario, run->params[i].key)) {
            continue;
        }
        char known[384] = "";
        size_t used = 0;
        gmd_near near;
        gmd_near_begin(&near, run->params[i].key);
        for (size_t k = 0; k < run->scenario->param_count && used < sizeof known; k++) {
            used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", k ? ", " : "",
                                     run->scenario->params[k].key);
        }
        for (size_t k = 0; k < run->scenario->param_count; k++) {
            gmd_near_offer(&near, run->scenario->params[k].key);
        }
        return gmd_fail(run->error, GMD_BAD_INPUT, "%s has no parameter '%.60s'%s; there are: %s",
                        run->scenario->name, run->params[i].key, gmd_near_text(&near), known);
    }
    return GMD_OK;
}

/* Parameters into the table at the top of the stack, as read-only variables. */
static void set_params(lua_State *lua, job *run)
{
    for (size_t i = 0; i < run->scenario->param_count; i++) {
        const struct declared_param *param = &run->scenario->params[i];
        if (!script_push_param(lua, run->scenario, param, value_of(run, param), run->error)) {
            run->bad_param = true;
            luaL_error(lua, "bad parameter");
        }
        if (strcmp(param->key, "max_instructions") == 0) {
            run->binding->budget = (uint64_t)lua_tointeger(lua, -1);
        }
        lua_setfield(lua, -2, param->key);
    }
}

static int declared_already(lua_State *lua)
{
    const struct run_watch *watch = binding_of(lua)->watch;
    if (watch->context) {
        watch->begin(watch->context);
    }
    return 0;
}

static int run_script(lua_State *lua)
{
    job *run = lua_touserdata(lua, 1);
    const gmd_scenario *scenario = run->scenario;
    binding_prepare(run->binding, &script_library);
    if (sandbox_load(lua, scenario->source, scenario->length, scenario->chunk) != LUA_OK) {
        return lua_error(lua); /* it loaded when it was opened, so this is lack of memory */
    }
    sandbox_functions(lua);
    binding_functions(lua, &script_library);
    lua_pushcfunction(lua, declared_already);
    lua_setfield(lua, -2, "scenario");
    set_params(lua, run);
    binding_environment(run->binding);
    lua_setupvalue(lua, -2, 1);
    lua_call(lua, 0, 0);
    return 0;
}

/* The end of a script, as in Python: its variables are dropped, then what only cycles keep, and
 * last the workspaces of cuBLAS. */
static void wind_up(struct binding *binding)
{
    binding_release(binding);
    collector_collect(binding->engine, COLLECTOR_GENERATIONS - 1);
    cublas_workspace_release(binding->engine);
}

static gmd_status judge(job *run, int result, bool *out_of_memory)
{
    struct binding *binding = run->binding;
    lua_State *lua = binding->lua;
    if (result == LUA_OK || binding->engine->state == ENGINE_WAS_ENDED) {
        return GMD_OK;
    }
    if (run->bad_param) {
        return GMD_BAD_INPUT;
    }
    const char *message = lua_type(lua, -1) == LUA_TSTRING ? lua_tostring(lua, -1) : NULL;
    if (message && binding->ran_out && strcmp(message, binding->message) == 0) {
        *out_of_memory = true;
        return GMD_OK;
    }
    if (result == LUA_ERRMEM) {
        return gmd_fail(run->error, GMD_BAD_INPUT,
                        "%s: the script needs too much memory for its "
                        "own tables and strings",
                        run->scenario->chunk + 1);
    }
    return gmd_fail(run->error, GMD_BAD_INPUT, "%s",
                    message ? message : "the error in the script has no message");
}

static gmd_status run_in(job *run, lua_State *lua, bool *out_of_memory)
{
    struct binding *binding = run->binding;
    lua_pushcfunction(lua, sandbox_place_error);
    lua_pushcfunction(lua, run_script);
    lua_pushlightuserdata(lua, run);
    int result = lua_pcall(lua, 1, 0, -3);
    gmd_status status = judge(run, result, out_of_memory);
    /* without host memory an operation of the engine was interrupted */
    if (!binding->no_memory && binding->watch->context) {
        binding->watch->end(binding->watch->context);
    }
    if (!binding->no_memory && binding->engine->state != ENGINE_WAS_ENDED) {
        engine_clear(binding->engine);
        wind_up(binding);
    }
    return status;
}

static gmd_status run_on(job *run, uint64_t seed, const gmd_sink *sink, bool *out_of_memory)
{
    struct binding *binding = run->binding;
    struct engine_hooks no_hooks = {.context = NULL};
    binding->engine =
        engine_open(binding->watch->context ? binding->watch->sink : sink, &no_hooks, seed);
    if (binding->engine) {
        binding->engine->recorded = run->scenario->workspaces;
        binding->engine->unrecorded = run->scenario->unrecorded;
    }
    lua_State *lua = binding->engine ? sandbox_open(binding) : NULL;
    if (lua && binding->watch->context) {
        binding->watch->attach(binding->watch->context, binding);
    }
    gmd_status status = lua ? run_in(run, lua, out_of_memory)
                            : gmd_fail(run->error, GMD_NO_MEMORY,
                                       "no memory to run the scenario %s", run->scenario->name);
    if (lua) {
        lua_close(lua);
    }
    if (binding->engine) {
        workspaces_tell(binding->engine);
    }
    engine_close(binding->engine);
    free(binding->temporaries);
    return status;
}

gmd_status gmd_scenario_check(gmd_scenario *scenario, const gmd_param *params, size_t param_count,
                              gmd_error *error)
{
    const job run = {scenario, params, param_count, NULL, error, false};
    gmd_status status = check_names(&run);
    lua_State *lua = status == GMD_OK ? luaL_newstate() : NULL;
    if (status == GMD_OK && !lua) {
        status = gmd_fail(error, GMD_NO_MEMORY, "%s: no memory for Lua", scenario->name);
    }
    for (size_t i = 0; i < param_count && status == GMD_OK; i++) {
        const struct declared_param *declared = script_find_param(scenario, params[i].key);
        bool is_good = script_push_param(lua, scenario, declared, params[i].value, error);
        status = is_good ? GMD_OK : GMD_BAD_INPUT;
        lua_settop(lua, 0);
    }
    if (lua) {
        lua_close(lua);
    }
    return status;
}

gmd_status gmd_scenario_run(gmd_scenario *scenario, const gmd_param *params, size_t param_count,
                            uint64_t seed, const gmd_sink *sink, bool *out_of_memory,
                            gmd_error *error)
{
    struct run_watch watch = {.context = NULL};
    struct binding binding = {
        .budget = UINT64_MAX, .is_silent = scenario->is_muted, .watch = &watch};
    job run = {scenario, params, param_count, &binding, error, false};
    *out_of_memory = false;
    gmd_status status = check_names(&run);
    if (status != GMD_OK) {
        return status;
    }
    if (scenario->open_watch && !scenario->open_watch(scenario, sink, &watch)) {
        return gmd_fail(error, GMD_NO_MEMORY, "no memory to inspect the scenario %s",
                        scenario->name);
    }
    status = run_on(&run, seed, sink, out_of_memory);
    if (watch.context) {
        watch.close(watch.context);
    }
    return status;
}

void gmd_scenario_use_workspaces(gmd_scenario *scenario, const struct gmd_workspaces *table)
{
    scenario->workspaces = table;
}

void gmd_scenario_list_unrecorded(gmd_scenario *scenario, FILE *calls)
{
    scenario->unrecorded = calls;
}

void gmd_scenario_mute(gmd_scenario *scenario, bool is_muted)
{
    scenario->is_muted = is_muted;
}
