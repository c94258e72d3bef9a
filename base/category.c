#include "gmd_category.h"

const char *gmd_category_name(uint32_t category)
{
    static const char *const names[GMD_CATEGORIES] = {
        [GMD_TEMPORARY] = "temporary", [GMD_ACTIVATION] = "activation",
        [GMD_INPUT] = "input",         [GMD_GRADIENT] = "gradient",
        [GMD_PARAMETER] = "parameter", [GMD_OPTIMIZER_STATE] = "optimizer_state",
        [GMD_WORKSPACE] = "workspace",
    };
    return category < GMD_CATEGORIES ? names[category] : "unknown";
}
