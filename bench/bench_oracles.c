/* bench_oracles - what judging costs: nanoseconds for a request on the simulated device with all
 * oracles, with none, and with each of them left out, whose difference to all is its share.
 *
 *     bench_oracles [ALLOCATOR [REQUESTS]]      gmd's libraries: $GMD_LIB_DIR, else ../lib/gmd
 *
 * The steady state of 1,000 live blocks: each request frees a random block or allocates one of a
 * random size in its place. In the second column every third request uses a block, on its own
 * stream or on another one that is then recorded. Each figure is the median of rounds that take
 * turns, each in a process of its own, after as many requests that are not measured; a share is the
 * median of the rounds' differences. */
#define _GNU_SOURCE /* clock.h: RUSAGE_THREAD */
#include "clock.h"
#include "gmd_driver.h"
#include "gmd_oracle.h"
#include "gmd_random.h"
#include "gmd_session.h"
#include "gmd_size.h"
#include "libraries.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LIVE = 1000, ROUNDS = 9, CONFIGURATIONS_MAX = GMD_ORACLE_MAX + 2 };

typedef struct load {
    uint64_t requests, random;
    bool has_uses;
    double *ns_per_request; /* shared with the process that measures */
} load;

typedef struct configuration {
    const char *name;
    bool is_none;
    const char *left_out;
    double ns[2][ROUNDS]; /* without and with uses */
    double median[2], share[2];
} configuration;

static uint64_t below(load *l, uint64_t limit)
{
    return gmd_random_mix(l->random += GMD_HASH_MULTIPLIER) % limit;
}

/* Half of them up to 64 KiB, a quarter up to 1 MiB, the others up to 24 MiB. */
static uint64_t draw_size(load *l)
{
    uint64_t kind = below(l, 4);
    return (1 + below(l, kind < 2 ? 128 : kind < 3 ? 2048 : 49152)) * 512;
}

static gmd_served put(gmd_session *s, load *l, uint32_t block)
{
    return gmd_session_request(
        s, &(gmd_request){.op = GMD_OP_ALLOC, .block = block, .bytes = draw_size(l)});
}

/* Gives the requests made; 0: the run is over. */
static uint64_t make_some(gmd_session *s, load *l)
{
    uint32_t block = (uint32_t)below(l, LIVE);
    bool is_over =
        gmd_session_request(s, &(gmd_request){.op = GMD_OP_FREE, .block = block}) == GMD_STOP ||
        put(s, l, block) == GMD_STOP;
    if (is_over || !l->has_uses) {
        return is_over ? 0 : 2;
    }
    uint32_t stream = (uint32_t)below(l, 4) == 0;
    gmd_request use = {
        .op = GMD_OP_USE, .block = block, .stream = stream, .duration_ns = 1 + below(l, 2000)};
    gmd_request after = {.op = GMD_OP_ADVANCE, .duration_ns = 1000};
    if (stream) {
        after = (gmd_request){.op = GMD_OP_RECORD, .block = block, .stream = stream};
    }
    is_over =
        gmd_session_request(s, &use) == GMD_STOP || gmd_session_request(s, &after) == GMD_STOP;
    return is_over ? 0 : 4;
}

static gmd_status churn(void *context, gmd_session *session, gmd_error *error)
{
    load *l = context;
    for (uint32_t i = 0; i < LIVE; i++) {
        if (put(session, l, i) != GMD_SERVED) {
            return gmd_fail(error, GMD_FAILED, "block %" PRIu32 " was not served", i);
        }
    }
    uint64_t start = 0;
    for (int pass = 0; pass < 2; pass++) { /* the first one is not measured */
        start = bench_now_ns();
        for (uint64_t made = 0, more; made < l->requests; made += more) {
            more = make_some(session, l);
            if (!more) {
                return gmd_fail(error, GMD_FAILED, "the run ended early");
            }
        }
    }
    *l->ns_per_request = (double)(bench_now_ns() - start) / (double)l->requests;
    return GMD_OK;
}

static bool measure(const gmd_run_options *base, configuration *c, load *l, int column, int round)
{
    gmd_run_options options = *base;
    options.judging.oracles_off = c->is_none;
    options.judging.left_out = c->left_out;
    l->has_uses = column == 1;
    l->random = (uint64_t)round; /* the same requests for all */
    gmd_trace no_requests = {.conditions.device_count = 1};
    gmd_workload workload = {
        .name = "churn", .kind = "scenario", .trace = &no_requests, .body = churn, .context = l};
    gmd_outcome *outcome = calloc(1, sizeof *outcome);
    gmd_error error = {""};
    bool is_ok = outcome && gmd_run_isolated(&options, &workload, outcome, &error) == GMD_OK &&
                 outcome->verdict == GMD_PASS;
    if (!is_ok) {
        const gmd_violation *v = outcome && outcome->violation_count ? outcome->violations : NULL;
        fprintf(stderr, "bench_oracles: %s: %s%s%s\n", c->name, error.text,
                outcome ? outcome->error : "no host memory", v ? v->message : "");
    }
    free(outcome);
    c->ns[column][round] = *l->ns_per_request;
    return is_ok;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const double *figures)
{
    double sorted[ROUNDS];
    memcpy(sorted, figures, sizeof sorted);
    qsort(sorted, ROUNDS, sizeof *sorted, compare);
    return sorted[ROUNDS / 2];
}

static void take_medians(configuration *c, const configuration *all)
{
    for (int column = 0; column < 2; column++) {
        double less[ROUNDS];
        for (int round = 0; round < ROUNDS; round++) {
            less[round] = all->ns[column][round] - c->ns[column][round];
        }
        c->median[column] = median(c->ns[column]);
        c->share[column] = median(less);
    }
}

static void print_row(const configuration *c, const configuration *all, bool is_share)
{
    printf("%-14s", c->name);
    for (int column = 0; column < 2; column++) {
        if (is_share) {
            printf("  %10.1f ns %5.1f %%  ", c->share[column],
                   100 * c->share[column] / all->median[column]);
        } else {
            printf("  %10.1f ns %6.2f M/s", c->median[column], 1e3 / c->median[column]);
        }
    }
    putchar('\n');
}

static size_t list_configurations(configuration *list)
{
    size_t count = 0;
    list[count++] = (configuration){.name = "none", .is_none = true};
    list[count++] = (configuration){.name = "all"};
    for (size_t i = 0; gmd_oracles[i]; i++) {
        list[count++] = (configuration){.name = gmd_oracles[i]->entry->name,
                                        .left_out = gmd_oracles[i]->entry->name};
    }
    return count;
}

static bool measure_all(const gmd_run_options *options, configuration *list, size_t count, load *l)
{
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < count; i++) {
            configuration *c = &list[round % 2 ? count - 1 - i : i];
            if (!measure(options, c, l, 0, round) || !measure(options, c, l, 1, round)) {
                return false;
            }
        }
    }
    for (size_t i = 0; i < count; i++) {
        take_medians(&list[i], &list[1]);
    }
    return true;
}

int main(int argc, char **argv)
{
    char path[4096];
    configuration list[CONFIGURATIONS_MAX];
    load l = {.requests = 300000};
    l.ns_per_request = mmap(NULL, sizeof *l.ns_per_request, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (argc > 3 || (argc > 2 && !gmd_parse_u64(argv[2], &l.requests)) ||
        l.ns_per_request == MAP_FAILED) {
        fprintf(stderr, "usage: bench_oracles [ALLOCATOR [REQUESTS]]\n");
        return 2;
    }
    gmd_run_options options = {.subject.allocator = argc > 1 ? argv[1] : "reference",
                               .subject.lib_directory = bench_libraries(argv[0], path, sizeof path),
                               .device.kind = GMD_DEVICE_SIM,
                               .conditions.device_count = 1,
                               .conditions.capacity_bytes = 140 * GMD_GIB,
                               .process.call_budget_s = 20};
    size_t count = list_configurations(list);
    if (!measure_all(&options, list, count, &l)) {
        return 3;
    }
    printf("%s, %d live blocks, %" PRIu64 " requests, median of %d rounds\n\n%-14s  %22s  %22s\n",
           options.subject.allocator, LIVE, l.requests, ROUNDS, "oracles", "alloc, free",
           "with uses");
    print_row(&list[0], &list[1], false);
    print_row(&list[1], &list[1], false);
    puts("\nof it, by leaving it out:");
    for (size_t i = 2; i < count; i++) {
        print_row(&list[i], &list[1], true);
    }
    return 0;
}
