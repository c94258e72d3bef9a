/* soak - a long random run of an allocator with all oracles on:
 *
 *     soak ALLOCATOR REQUESTS|SECONDSs [SEED [SCHEDULE [DEVICES [sim|cuda[:LIMIT]]]]]
 *
 * Blocks of all sizes on several streams (and devices), used on their own streams and on others,
 * waits, synchronising, streams that are destroyed, and a device that is nearly full at times. The
 * requests are made as the run goes, and none is kept. SCHEDULE is as in a trace ("seed 7"). On a
 * real GPU, streams live to the end: a CUDA call with the handle of a destroyed one ends the
 * process there, and a free names the stream of its block. Exit status 0: nothing was found. */
#include "gmd_driver.h"
#include "gmd_random.h"
#include "gmd_session.h"
#include "gmd_size.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LIVE_MAX = 256, STREAMS = 5 };

typedef struct generator {
    uint64_t random, requests, seed; /* requests: 0: as many as `seconds` hold */
    uint64_t seconds;
    gmd_device_kind device;
    uint64_t limit_bytes; /* of a real device; 0: none */
    unsigned devices;
    struct {
        uint32_t block;
        uint8_t device;
    } live[LIVE_MAX];
    uint32_t live_count;
    uint32_t spare[LIVE_MAX]; /* block numbers that are free */
    uint32_t spare_count;
} generator;

static uint64_t next_random(generator *g)
{
    return gmd_random_mix(g->random += GMD_HASH_MULTIPLIER);
}

static uint64_t below(generator *g, uint64_t limit)
{
    return next_random(g) % limit;
}

/* Mostly small, some of a segment's size and above: those make a pool merge and grow. */
static uint64_t choose_size(generator *g)
{
    uint64_t kind = below(g, 100);
    if (kind < 60) {
        return 1 + below(g, 64 * GMD_KIB);
    }
    return kind < 97 ? 1 + below(g, 4 * GMD_MIB) : 1 + below(g, 80 * GMD_MIB);
}

static gmd_request make_alloc(generator *g)
{
    gmd_request r = {.op = GMD_OP_ALLOC,
                     .block = g->spare[--g->spare_count],
                     .stream = (uint32_t)below(g, STREAMS),
                     .device = (uint8_t)below(g, g->devices),
                     .bytes = choose_size(g)};
    g->live[g->live_count].block = r.block;
    g->live[g->live_count++].device = r.device;
    return r;
}

static gmd_request make_free(generator *g)
{
    uint32_t i = (uint32_t)below(g, g->live_count);
    gmd_request r = {.op = GMD_OP_FREE, .block = g->live[i].block, .device = g->live[i].device};
    g->live[i] = g->live[--g->live_count];
    g->spare[g->spare_count++] = r.block;
    return r;
}

static gmd_request make_use(generator *g)
{
    uint32_t i = (uint32_t)below(g, g->live_count);
    return (gmd_request){.op = GMD_OP_USE,
                         .block = g->live[i].block,
                         .device = g->live[i].device,
                         .stream = (uint32_t)below(g, STREAMS),
                         .duration_ns = 1000 + below(g, 100000)};
}

static gmd_request make_other(generator *g)
{
    uint64_t kind = below(g, 1000);
    uint8_t device = (uint8_t)below(g, g->devices);
    uint32_t stream = (uint32_t)below(g, STREAMS);
    if (kind < 400) {
        return (gmd_request){.op = GMD_OP_WAIT,
                             .device = device,
                             .stream = stream,
                             .other_stream = (uint32_t)below(g, STREAMS)};
    }
    if (kind < 750) {
        return (gmd_request){.op = GMD_OP_ADVANCE, .duration_ns = 1 + below(g, 200000)};
    }
    if (kind < 900) {
        return (gmd_request){.op = GMD_OP_SYNC, .device = device, .stream = stream};
    }
    if (kind < 960) {
        return (gmd_request){.op = GMD_OP_DEVICE, .device = device};
    }
    if (kind < 990 && stream > 0 && g->device == GMD_DEVICE_SIM) {
        return (gmd_request){.op = GMD_OP_DESTROY, .device = device, .stream = stream};
    }
    return kind < 998
               ? (gmd_request){.op = GMD_OP_SYNC, .device = device, .stream = GMD_ALL_STREAMS}
               : (gmd_request){.op = GMD_OP_EMPTY_CACHE};
}

/* The number of live blocks swings, so that memory is plenty at times and short at others. */
static gmd_request make_request(generator *g, uint64_t i)
{
    uint64_t phase = i / 1000 % 4;
    uint64_t target = phase == 0 ? LIVE_MAX / 8 : phase == 2 ? LIVE_MAX : LIVE_MAX / 2;
    uint64_t kind = below(g, 100);
    if (kind < 70) {
        bool wants_more = below(g, 100) < (g->live_count < target ? 60 : 40);
        return !g->live_count || (wants_more && g->spare_count) ? make_alloc(g) : make_free(g);
    }
    return kind < 92 && g->live_count ? make_use(g) : make_other(g);
}

static bool is_done(const generator *g, uint64_t made, time_t start)
{
    return g->requests ? made == g->requests
                       : made % 256 == 0 && time(NULL) - start >= (time_t)g->seconds;
}

static gmd_status make_requests(void *context, gmd_session *session, gmd_error *error)
{
    (void)error;
    generator *g = context;
    for (uint32_t i = 0; i < LIVE_MAX; i++) {
        g->spare[g->spare_count++] = i;
    }
    time_t start = time(NULL);
    for (uint64_t i = 0; !is_done(g, i, start); i++) {
        gmd_request r = make_request(g, i);
        if (gmd_session_request(session, &r) == GMD_STOP) {
            break;
        }
    }
    return GMD_OK;
}

static int report(const gmd_outcome *o)
{
    for (uint32_t i = 0; i < o->violation_count; i++) {
        printf("%s, request %" PRIu64 ": %s\n", o->violations[i].oracle, o->violations[i].request,
               o->violations[i].message);
    }
    for (uint32_t i = 0; i < o->oracle_count; i++) {
        if (o->oracles[i].fate == GMD_ORACLE_SKIPPED) {
            printf("skipped: %s (%s)\n", o->oracles[i].name, o->oracles[i].reason);
        }
    }
    printf("%s%s: %" PRIu64 " requests in %.2f s (%.0f requests/s)\n", o->error,
           o->verdict == GMD_PASS ? "pass" : "fail", o->requests, o->seconds,
           (double)o->requests / o->seconds);
    if (o->has_stats) {
        printf("refused %" PRIu64 ", peak %" PRIu64 " MiB allocated, %" PRIu64 " MiB reserved\n",
               o->stats.num_ooms, o->stats.allocated_bytes_peak / GMD_MIB,
               o->stats.reserved_bytes_peak / GMD_MIB);
    }
    return o->verdict == GMD_PASS ? 0 : 1;
}

static bool parse_length(generator *g, const char *text)
{
    char digits[24];
    size_t length = strlen(text);
    if (length < 2 || length > sizeof digits || text[length - 1] != 's') {
        return gmd_parse_u64(text, &g->requests) && g->requests;
    }
    memcpy(digits, text, length - 1);
    digits[length - 1] = '\0';
    return gmd_parse_u64(digits, &g->seconds) && g->seconds;
}

static bool parse_device(generator *g, const char *text)
{
    bool is_cuda = strncmp(text, "cuda", 4) == 0;
    g->device = is_cuda ? GMD_DEVICE_CUDA : GMD_DEVICE_SIM;
    if (is_cuda && text[4] == ':') {
        return gmd_parse_size(text + 5, &g->limit_bytes);
    }
    return strcmp(text, is_cuda ? "cuda" : "sim") == 0;
}

static bool parse(generator *g, gmd_schedule *schedule, int argc, char **argv, gmd_error *error)
{
    uint64_t devices = 1;
    bool is_valid =
        argc > 2 && argc < 8 && parse_length(g, argv[2]) &&
        (argc < 4 || gmd_parse_u64(argv[3], &g->seed)) &&
        (argc < 5 || gmd_schedule_parse(schedule, argv[4], strlen(argv[4]), error) == GMD_OK) &&
        (argc < 6 || (gmd_parse_u64(argv[5], &devices) && devices >= 1 && devices <= 16)) &&
        (argc < 7 || parse_device(g, argv[6]));
    g->random = g->seed;
    g->devices = (unsigned)devices;
    return is_valid;
}

int main(int argc, char **argv)
{
    generator g = {.device = GMD_DEVICE_SIM};
    gmd_schedule schedule = {.kind = GMD_SCHEDULE_TIMED};
    gmd_error error = {""};
    if (!parse(&g, &schedule, argc, argv, &error)) {
        fprintf(stderr,
                "usage: soak ALLOCATOR REQUESTS|SECONDSs [SEED [SCHEDULE [DEVICES "
                "[sim|cuda[:LIMIT]]]]] "
                "%s\n",
                error.text);
        return 2;
    }
    gmd_trace no_requests = {.conditions.device_count = g.devices}; /* so that none is kept */
    gmd_run_options options = {.subject.allocator = argv[1],
                               .subject.lib_directory = GMD_TEST_LIB_DIR,
                               .device.kind = g.device,
                               .conditions.device_count = g.devices,
                               .conditions.capacity_bytes = GMD_GIB,
                               .conditions.limit_bytes = g.limit_bytes,
                               .seed = g.seed,
                               .conditions.schedule = schedule,
                               .process.call_budget_s = 20};
    gmd_workload workload = {.name = "soak",
                             .kind = "scenario",
                             .trace = &no_requests,
                             .body = make_requests,
                             .context = &g};
    gmd_outcome *outcome = calloc(1, sizeof *outcome);
    int result = 3;
    if (outcome && gmd_run_isolated(&options, &workload, outcome, &error) == GMD_OK) {
        result = report(outcome);
    } else {
        fprintf(stderr, "soak: %s\n", error.text);
    }
    free(outcome);
    gmd_schedule_free(&schedule);
    return result;
}
