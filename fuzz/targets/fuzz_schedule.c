/* A few sequences in which streams and threads meet; the bytes are the order in which the device's
 * work completes and the host's threads run. Whatever the order, all oracles must be content.
 *
 * Byte 0: which sequence. Byte 1: how many of the others, in 256 parts, are choices of the device;
 * the rest are those of the threads. */
#include "fuzz.h"

#include "fuzz_run.h"

#include <string.h>

static const char *const sequences[] = {
    /* a block that two other streams use is freed under their work, and asked for again */
    "gmd-trace 1\ncapacity 64MiB\n"
    "alloc a 3MiB s1\nuse a s2 10us\nuse a s3 20us\nrecord a s2\nrecord a s3\nfree a\n"
    "alloc b 3MiB s1\nuse b s1 5us\nadvance 5us\nalloc c 3MiB s2\nuse c s2 10us\nfree b\nfree c\n"
    "alloc d 3MiB s1\nsync s2\nalloc e 3MiB s1\nfree d\nfree e\nempty_cache\nsync\n",
    /* the device is full while frees wait for other streams */
    "gmd-trace 1\ncapacity 64MiB\n"
    "alloc a 20MiB s1\nuse a s2 100us\nrecord a s2\nalloc b 20MiB s2\nuse b s1 100us\nrecord b s1\n"
    "free a\nfree b\nalloc c 40MiB s1\nadvance 50us\nalloc d 20MiB s2\nwait s1 s2\n"
    "alloc e 60MiB s3\nfree c\nsync\nalloc f 60MiB s3\nfree d\nfree e\nfree f\n",
    /* two threads take and give back blocks of one stream, a third empties the cache */
    "gmd-trace 1\ncapacity 64MiB\n"
    "alloc a 2MiB s0\nthread t1\nalloc b 2MiB s0\nthread main\nfree a\nthread t2\nempty_cache\n"
    "thread t1\nfree b\nthread main\nalloc c 4MiB s0\nthread t1\nalloc d 1MiB s0\nthread t2\n"
    "empty_cache\nthread main\nfree c\nthread t1\nfree d\n",
    /* threads with streams of their own; each frees what the other uses */
    "gmd-trace 1\ncapacity 128MiB\n"
    "alloc a 12MiB s1\nthread t1\nalloc b 12MiB s2\nthread main\nuse b s1 10us\nrecord b s1\n"
    "thread t1\nuse a s2 10us\nrecord a s2\nthread main\nfree b\nthread t1\nfree a\nthread main\n"
    "alloc c 12MiB s2\nthread t1\nalloc d 12MiB s1\nuse d s1 5us\nthread main\nwait s1 s2\n"
    "fault cudaMalloc 1 2\nalloc e 30MiB s1\nfree c\nthread t1\nfree d\nthread main\nsync\n",
};
enum { SEQUENCES = sizeof sequences / sizeof *sequences, CHOICES_MAX = 2048 };

static void parse_all(gmd_trace *traces)
{
    for (size_t i = 0; i < SEQUENCES; i++) {
        gmd_error error = {""};
        gmd_status status =
            gmd_trace_parse(&traces[i], sequences[i], strlen(sequences[i]), "sequence", &error);
        if (status != GMD_OK) {
            fprintf(stderr, "%s\n", error.text);
            abort();
        }
    }
}

/* Borrows the choices. */
static gmd_schedule explicit_choices(uint8_t *choices, size_t count)
{
    return (gmd_schedule){.kind = GMD_SCHEDULE_EXPLICIT, .choices = choices, .choice_count = count};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static gmd_trace traces[SEQUENCES];
    static uint8_t choices[CHOICES_MAX + 2]; /* at least one for each */
    if (!traces[0].count) {
        parse_all(traces);
    }
    if (size < 2) {
        return 0;
    }
    size_t count = size - 2 < CHOICES_MAX ? size - 2 : CHOICES_MAX, first = count * data[1] / 255;
    memset(choices, 0, sizeof choices);
    memcpy(choices, data + 2, first);
    memcpy(choices + first + 1, data + 2 + first, count - first);
    gmd_trace trace = traces[data[0] % SEQUENCES];
    trace.conditions.schedule = explicit_choices(choices, first + 1);
    if (trace.threads.count > 1) {
        trace.conditions.interleave = explicit_choices(choices + first + 1, count - first + 1);
    }
    fuzz_run(&trace);
    return 0;
}
