#include "inspect_words.h"

#include <stdio.h>

const char *format_short_size(uint64_t bytes, char text[24])
{
    static const char units[] = "BKMGT";
    double value = (double)bytes;
    int unit = 0;
    while (value >= 1024 && units[unit + 1]) {
        value /= 1024;
        unit++;
    }
    snprintf(text, 24, "%.2f%c", value, units[unit]);
    return text;
}

const char *category_heading(uint32_t category)
{
    return category == GMD_OPTIMIZER_STATE ? "optimizer" : gmd_category_name(category);
}

const char *holder_words(uint32_t holder)
{
    static const char *const words[GMD_HOLDERS] = {
        [GMD_HELD_BY_NAME] = "tensors that a name leads to",
        [GMD_HELD_AS_GRAD] = "their gradients (.grad)",
        [GMD_HELD_BY_STATE] = "optimizer state",
        [GMD_HELD_BY_GRAPH] = "saved by the graph for backward()",
        [GMD_HELD_BY_CYCLE] = "held by reference cycles only, until the collector runs",
        [GMD_HELD_BY_LIBRARY] = "workspaces of cuBLAS",
        [GMD_HELD_INSIDE] = "results of expressions and operations under way",
    };
    return holder < GMD_HOLDERS ? words[holder] : "?";
}
