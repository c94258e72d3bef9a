#define _DEFAULT_SOURCE /* getloadavg */
#include "machine.h"

#include "catalogue.h"
#include "cores.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(GMD_BENCH_CORE_MAX == BENCH_THREAD_MAX,
               "each thread has a core where there are enough");

#define WIDE_INTERVAL 0.1 /* of the median, from one end to the other */
#define FINEST_NS     0.5 /* finer differences matter to nobody */
#define CALM_LOAD     0.5 /* runnable processes for each core */

static double load_now(void)
{
    double load = 0;
    return getloadavg(&load, 1) == 1 ? load : 0;
}

/* The value of the first line that starts with `key`; "unknown". */
static void read_processor(char *out, size_t size)
{
    char line[512];
    FILE *file = fopen("/proc/cpuinfo", "r");
    snprintf(out, size, "unknown");
    while (file && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (colon && strncmp(line, "model name", strlen("model name")) == 0) {
            colon += 1 + strspn(colon + 1, " \t");
            colon[strcspn(colon, "\n")] = '\0';
            snprintf(out, size, "%s", colon);
            break;
        }
    }
    if (file) {
        fclose(file);
    }
}

static void read_governor(int core, char *out, size_t size)
{
    char path[96];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor", core);
    FILE *file = fopen(path, "r");
    snprintf(out, size, "unknown");
    if (file) {
        char line[32];
        if (fgets(line, sizeof line, file)) {
            line[strcspn(line, "\n")] = '\0';
            snprintf(out, size, "%s", line);
        }
        fclose(file);
    }
}

void bench_machine_describe(gmd_bench_machine *machine)
{
    machine->core_count = bench_cores_choose(machine->cores, GMD_BENCH_CORE_MAX);
    read_processor(machine->processor, sizeof machine->processor);
    read_governor(machine->core_count ? machine->cores[0] : 0, machine->governor,
                  sizeof machine->governor);
    machine->load_before = load_now();
}

__attribute__((format(printf, 2, 3))) static void note(gmd_bench_report *report, const char *format,
                                                       ...)
{
    if (report->note_count < GMD_BENCH_NOTE_MAX) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(report->notes[report->note_count++], sizeof report->notes[0], format, arguments);
        va_end(arguments);
    }
}

/* Threads take turns on the cores that there are; what they do is then not what they would do at
 * the same time. */
static void note_cores(gmd_bench_report *report)
{
    uint32_t most = 0;
    for (size_t i = 0; i < report->row_count; i++) {
        if (strncmp(report->rows[i].name, "threads_", strlen("threads_")) == 0) {
            uint32_t threads = (uint32_t)strtoul(report->rows[i].name + 8, NULL, 10);
            most = threads > most ? threads : most;
        }
    }
    if (most > report->machine.core_count) {
        note(report, "%u threads shared %u cores", most, report->machine.core_count);
    }
}

static bool is_wide(const gmd_bench_interval *i)
{
    return i->high - i->low > WIDE_INTERVAL * fabs(i->median) + FINEST_NS;
}

static void note_spread(gmd_bench_report *report)
{
    uint32_t wide = 0, disturbed = 0, rounds = 0, measured = 0;
    for (size_t i = 0; i < report->row_count; i++) {
        for (uint32_t n = 0; n < report->options->allocator_count; n++) {
            const gmd_bench_result *r = &report->rows[i].results[n];
            if (r->state == GMD_BENCH_MEASURED) {
                measured++;
                wide += is_wide(&r->ns_per_op);
                disturbed += r->disturbed;
                rounds += r->rounds;
            }
        }
    }
    if (disturbed) {
        note(report,
             "%u of %u rounds lost the core to something else; they are left out where enough "
             "others are there",
             disturbed, rounds);
    }
    if (wide) {
        note(report,
             "%u of %u medians are known to no better than 10 %%: more --seconds, or a calmer "
             "machine",
             wide, measured);
    }
}

void bench_machine_conclude(gmd_bench_report *report)
{
    gmd_bench_machine *m = &report->machine;
    m->load_after = load_now();
    if (m->core_count && m->load_before > CALM_LOAD * m->core_count) {
        note(report, "the machine was busy before (load %.1f on %u cores)", m->load_before,
             m->core_count);
    }
    if (strcmp(m->governor, "unknown") != 0 && strcmp(m->governor, "performance") != 0) {
        note(report, "the frequency of the core follows its load (governor %s)", m->governor);
    }
    note_cores(report);
    note_spread(report);
}
