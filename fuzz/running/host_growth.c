#include "host_growth.h"

#include "gmd_min.h"
#include "gmd_size.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

enum { LAST = ROUND_WINDOWS - 1 };

static const char own_thread[] = "a thread of its own";

void host_growth_look(host_growth *growth, int window)
{
    gmd_host_held held[GMD_HOST_FUNCTION_MAX];
    size_t count = gmd_host_heap_held(held);
    for (size_t i = 0; i < count; i++) {
        host_function_growth *f = &growth->functions[i];
        bool is_first = !f->most[window] && !f->least[window];
        f->function = held[i].function ? held[i].function : own_thread;
        f->least[window] = is_first ? held[i].bytes : gmd_min(held[i].bytes, f->least[window]);
        f->most[window] = gmd_max(held[i].bytes, f->most[window]);
    }
    growth->count = gmd_max(count, growth->count);
}

/* What has no trend may rise by chance, but neither twice as much each time nor above all that it
 * was before. */
static bool grows(const host_function_growth *f, uint32_t rounds)
{
    uint64_t before = 0;
    for (int w = 1; w < ROUND_WINDOWS; w++) {
        if (f->most[w] <= f->most[w - 1]) {
            return false;
        }
        uint64_t by = f->most[w] - f->most[w - 1];
        if (by * 2 < before * 3) {
            return false;
        }
        before = by;
    }
    return f->least[LAST] > f->most[LAST - 2] && before >= rounds / 2;
}

static uint64_t last_rise(const host_function_growth *f)
{
    return f->most[LAST] - f->most[LAST - 1];
}

const char *host_growth_tell(const host_growth *growth, uint32_t rounds, char *text, size_t size)
{
    const host_function_growth *worst = NULL;
    for (size_t i = 0; i < growth->count; i++) {
        const host_function_growth *f = &growth->functions[i];
        if (grows(f, rounds) && (!worst || last_rise(f) > last_rise(worst))) {
            worst = f;
        }
    }
    if (!worst) {
        return NULL;
    }
    int used = snprintf(text, size,
                        "the same round again and again takes ever more of the host's memory: "
                        "%" PRIu64 " B a round, asked for in %s and not freed: ",
                        last_rise(worst) / (rounds / 2), worst->function);
    for (int w = 0; w < ROUND_WINDOWS && used > 0 && (size_t)used < size; w++) {
        used += snprintf(text + used, size - (size_t)used, "%s%" PRIu64 " B after %u rounds",
                         w ? ", " : "", worst->most[w], rounds >> (LAST - w));
    }
    return worst->function;
}
