/* bench_load - what reading a snapshot costs: CPU time and memory.
 *
 *     bench_load FILE [ROUNDS]
 *
 * One line: events, bytes of the (uncompressed) pickle, the median of the rounds' seconds in
 * gmd_snapshot_parse, and the most memory that the process had, in bytes. bench/load_compare.py
 * runs it beside other readers. */
#include "gmd_file.h"
#include "gmd_snapshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

enum { ROUNDS_MAX = 99 };

static double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Gives the number of events. */
static size_t measure(const char *path, const uint8_t *data, size_t size, double *seconds)
{
    gmd_snapshot snapshot;
    gmd_error error = {""};
    double start = cpu_seconds();
    if (gmd_snapshot_parse(&snapshot, data, size, path, &error) != GMD_OK) {
        fprintf(stderr, "bench_load: %s\n", error.text);
        exit(2);
    }
    *seconds = cpu_seconds() - start;
    size_t events = snapshot.event_count;
    gmd_snapshot_free(&snapshot);
    return events;
}

int main(int argc, char **argv)
{
    long rounds = argc == 3 ? strtol(argv[2], NULL, 10) : 1;
    if (argc < 2 || argc > 3 || rounds < 1 || rounds > ROUNDS_MAX) {
        fprintf(stderr, "usage: bench_load FILE [ROUNDS]\n");
        return 2;
    }
    uint8_t *data;
    size_t size, events = 0;
    gmd_error error = {""};
    if (gmd_file_read_any_size(argv[1], &data, &size, &error) != GMD_OK) {
        fprintf(stderr, "bench_load: %s\n", error.text);
        return 2;
    }
    double seconds[ROUNDS_MAX];
    for (long i = 0; i < rounds; i++) {
        events = measure(argv[1], data, size, &seconds[i]);
    }
    free(data);
    qsort(seconds, (size_t)rounds, sizeof *seconds, by_size);
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    printf("%zu %zu %.6f %ld\n", events, size, seconds[rounds / 2], used.ru_maxrss * 1024);
    return 0;
}
