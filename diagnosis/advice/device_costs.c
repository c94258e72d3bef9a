#include "device_costs.h"

#include "gmd_size.h"

#include <string.h>

typedef struct cost {
    const char *function;
    double call_ns, gib_ns;
} cost;

static const cost costs[] = {
    {"cudaMalloc", 42000, 36000},    {"cudaFree", 35000, 340000},      {"cuMemCreate", 10000, 0},
    {"cuMemMap", 1700, 0},           {"cuMemSetAccess", 24000, 70000}, {"cuMemUnmap", 16500, 15000},
    {"cuMemRelease", 10500, 300000}, {"cudaMemGetInfo", 4400, 0},      {"cudaEventRecord", 220, 0},
    {"cudaEventQuery", 152, 0},
};

double device_cost_ns(const gmd_sim_call *call)
{
    for (size_t i = 0; i < sizeof costs / sizeof *costs; i++) {
        if (strcmp(call->function, costs[i].function) == 0) {
            return costs[i].call_ns + costs[i].gib_ns * (double)call->size / (double)GMD_GIB;
        }
    }
    return 0;
}
