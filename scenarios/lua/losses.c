/* losses.c - losses: cross_entropy(logits, target, { reduction = "sum" }). */
#include "library_parts.h"

#include <string.h>

#define MEANS "mean, sum or none"

static enum reduction reduction_at(lua_State *lua, int index, const char *what, bool *by_batch)
{
    const char *name = lua_tostring(lua, index);
    if (by_batch && strcmp(name, "batchmean") == 0) {
        *by_batch = true;
        return REDUCTION_SUM;
    }
    if (strcmp(name, "mean") == 0) {
        return REDUCTION_MEAN;
    }
    if (strcmp(name, "sum") == 0) {
        return REDUCTION_SUM;
    }
    if (strcmp(name, "none") != 0) {
        luaL_error(lua, "%s: reduction: %s expected, got \"%s\"", what,
                   by_batch ? "batchmean, " MEANS : MEANS, name);
    }
    return REDUCTION_NONE;
}

enum { INPUT = 1, TARGET, REDUCTION, LOG_TARGET };

static int cross_entropy(lua_State *lua)
{
    enum reduction reduction = reduction_at(lua, REDUCTION, "cross_entropy", NULL);
    return give_tensor(lua, op_cross_entropy(engine_of(lua), check_tensor(lua, INPUT),
                                             check_tensor(lua, TARGET), reduction));
}

static int mse_loss(lua_State *lua)
{
    enum reduction reduction = reduction_at(lua, REDUCTION, "mse_loss", NULL);
    return give_tensor(lua, op_mse_loss(engine_of(lua), check_tensor(lua, INPUT),
                                        check_tensor(lua, TARGET), reduction));
}

static int bce_with_logits(lua_State *lua)
{
    enum reduction reduction =
        reduction_at(lua, REDUCTION, "binary_cross_entropy_with_logits", NULL);
    return give_tensor(lua, op_bce_with_logits(engine_of(lua), check_tensor(lua, INPUT),
                                               check_tensor(lua, TARGET), reduction));
}

/* batchmean is the sum divided by the number of rows. */
static int kl_div(lua_State *lua)
{
    struct engine *engine = engine_of(lua);
    bool by_batch = false;
    enum reduction reduction = reduction_at(lua, REDUCTION, "kl_div", &by_batch);
    struct tensor *loss = op_kl_div(engine, check_tensor(lua, INPUT), check_tensor(lua, TARGET),
                                    reduction, lua_toboolean(lua, LOG_TARGET));
    if (by_batch) {
        struct tensor *sum = loss;
        loss = op_scale(engine, sum);
        tensor_drop(engine, sum);
    }
    return give_tensor(lua, loss);
}

#define LOSS_OF NEEDS("input", TENSOR), NEEDS("target", TENSOR)
#define REDUCED OPTION("reduction", TEXT, "\"mean\"")

const struct script_function loss_functions[] = {
    {"cross_entropy", cross_entropy, FUNCTION_CALL, STYLE_CALL,
     TAKES(LOSS_OF, REDUCED, CHECKED("ignore_index", INTEGER, "-100", 0, 0))},
    {"mse_loss", mse_loss, FUNCTION_CALL, STYLE_CALL, TAKES(LOSS_OF, REDUCED)},
    {"binary_cross_entropy_with_logits", bce_with_logits, FUNCTION_CALL, STYLE_CALL,
     TAKES(LOSS_OF, REDUCED)},
    {"kl_div", kl_div, FUNCTION_CALL, STYLE_CALL,
     TAKES(LOSS_OF, REDUCED, OPTION("log_target", TRUTH, "false"))},
    END_OF_FUNCTIONS,
};
