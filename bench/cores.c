#define _GNU_SOURCE /* sched_setaffinity */
#include "cores.h"

#include <sched.h>
#include <stdio.h>

/* Whether another thread of the same physical core has a lower number. Unknown counts as no. */
static bool is_second_thread(int core)
{
    char path[96];
    int first = core;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
             core);
    FILE *file = fopen(path, "r");
    char text[16] = "";
    if (file) {
        if (fgets(text, sizeof text, file) && text[0] >= '0' && text[0] <= '9') {
            first = 0;
            for (const char *digit = text; *digit >= '0' && *digit <= '9'; digit++) {
                first = first * 10 + (*digit - '0');
            }
        }
        fclose(file);
    }
    return first < core;
}

/* The smaller, the better. */
static int class_of(int core)
{
    return is_second_thread(core) ? 2 : core == 0 ? 1 : 0;
}

uint32_t bench_cores_choose(int *cores, uint32_t most)
{
    cpu_set_t allowed;
    uint32_t count = 0;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
        return 0;
    }
    for (int class = 0; class < 3; class ++) {
        for (int core = 0; core < CPU_SETSIZE && count < most; core++) {
            if (CPU_ISSET((size_t)core, &allowed) && class_of(core) == class) {
                cores[count++] = core;
            }
        }
    }
    return count;
}

bool bench_cores_pin(int core)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)core, &one);
    return sched_setaffinity(0, sizeof one, &one) == 0;
}
