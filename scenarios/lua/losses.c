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

typedef struct tensor *(*loss_fn)(struct engine *engine, struct tensor *input,
                                  struct tensor *target, enum reduction reduction);

static int loss(lua_State *lua, const char *name, loss_fn of)
{
    enum reduction reduction = reduction_at(lua, REDUCTION, name, NULL);
    return give_tensor(
        lua, of(engine_of(lua), check_tensor(lua, INPUT), check_tensor(lua, TARGET), reduction));
}

static int cross_entropy(lua_State *lua)
{
    return loss(lua, "cross_entropy", op_cross_entropy);
}

static int mse_loss(lua_State *lua)
{
    return loss(lua, "mse_loss", op_mse_loss);
}

static int bce_with_logits(lua_State *lua)
{
    return loss(lua, "binary_cross_entropy_with_logits", op_bce_with_logits);
}

static int l1_loss(lua_State *lua)
{
    return loss(lua, "l1_loss", op_l1_loss);
}

static int smooth_l1_loss(lua_State *lua)
{
    return loss(lua, "smooth_l1_loss", op_smooth_l1_loss);
}

static int huber_loss(lua_State *lua)
{
    return loss(lua, "huber_loss", op_huber_loss);
}

static int nll_loss(lua_State *lua)
{
    return loss(lua, "nll_loss", op_nll_loss);
}

static int binary_cross_entropy(lua_State *lua)
{
    return loss(lua, "binary_cross_entropy", op_binary_cross_entropy);
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
    {"l1_loss", l1_loss, FUNCTION_CALL, STYLE_CALL, TAKES(LOSS_OF, REDUCED)},
    {"smooth_l1_loss", smooth_l1_loss, FUNCTION_CALL, STYLE_CALL,
     TAKES(LOSS_OF, REDUCED, CHECKED("beta", NUMBER, "1.0", 1e-9, 1e9))},
    {"huber_loss", huber_loss, FUNCTION_CALL, STYLE_CALL,
     TAKES(LOSS_OF, REDUCED, CHECKED("delta", NUMBER, "1.0", 1e-9, 1e9))},
    {"nll_loss", nll_loss, FUNCTION_CALL, STYLE_CALL,
     TAKES(LOSS_OF, REDUCED, CHECKED("ignore_index", INTEGER, "-100", 0, 0))},
    {"binary_cross_entropy", binary_cross_entropy, FUNCTION_CALL, STYLE_CALL,
     TAKES(LOSS_OF, REDUCED)},
    {"kl_div", kl_div, FUNCTION_CALL, STYLE_CALL,
     TAKES(LOSS_OF, REDUCED, OPTION("log_target", TRUTH, "false"))},
    END_OF_FUNCTIONS,
};
