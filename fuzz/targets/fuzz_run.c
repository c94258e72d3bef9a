#include "fuzz_run.h"

#include "gmd_search.h"
#include "gmd_space.h"

#include "gmd_in_process.h"
#include "gmd_size.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *fuzz_lib_directory(void)
{
    static char path[PATH_MAX + 16];
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX);
    char *end = length > 0 ? strrchr(path, '/') : NULL; /* it ends with zeros */
    if (!end) {
        return GMD_FUZZ_LIB_DIR;
    }
    memcpy(end, "/lib/gmd", sizeof "/lib/gmd");
    return access(path, F_OK) == 0 ? path : GMD_FUZZ_LIB_DIR;
}

static void require(gmd_status status, const gmd_error *error)
{
    if (status != GMD_OK) {
        fprintf(stderr, "%s\n", error->text);
        exit(3);
    }
}

static const gmd_run_options *run_options(void)
{
    static gmd_run_options options;
    const char *spec = getenv("GMD_FUZZ_ALLOCATOR");
    options = (gmd_run_options){.subject.allocator = spec && *spec ? spec : "reference",
                                .subject.lib_directory = fuzz_lib_directory(),
                                .device.kind = GMD_DEVICE_SIM,
                                .conditions.device_count = 1,
                                .conditions.capacity_bytes = GMD_GIB,
                                .process.call_budget_s = 120};
    return &options;
}

static gmd_in_process *process(void)
{
    static gmd_in_process *open;
    gmd_error error = {""};
    if (!open) {
        require(gmd_in_process_open(&open, run_options(), &error), &error);
    }
    return open;
}

/* Found out by asking it, in processes of its own: before this one has opened it. */
static const gmd_profile_space *space_of_foreign(void)
{
    static gmd_profile_space space;
    const gmd_run_options *options = run_options();
    gmd_error error = {""};
    if (!space.device_max && strcmp(options->subject.allocator, "reference") != 0) {
        space.device_max = 1;
        space.capacity_bytes = options->conditions.capacity_bytes;
        require(gmd_search_find_space(&space, options, &error), &error);
    }
    return space.device_max ? &space : NULL;
}

void fuzz_fit(gmd_trace *trace)
{
    const gmd_profile_space *space = space_of_foreign();
    if (!space) {
        return;
    }
    gmd_error error = {""};
    const gmd_conditions header = {.device_count = 1, .capacity_bytes = space->capacity_bytes};
    gmd_space_fit(space, trace);
    require(gmd_space_take_header(space, trace, &header, &error), &error);
}

void fuzz_run(const gmd_trace *trace)
{
    const gmd_outcome *outcome = NULL;
    gmd_error error = {""};
    gmd_status status = gmd_in_process_run(process(), trace, &outcome, &error);
    if (status == GMD_BAD_INPUT || (status == GMD_OK && outcome->verdict != GMD_FAIL)) {
        return;
    }
    for (uint32_t i = 0; status == GMD_OK && i < outcome->violation_count; i++) {
        const gmd_violation *v = &outcome->violations[i];
        fprintf(stderr, "violation of %s after request %llu: %s\n", v->oracle,
                (unsigned long long)v->request, v->message);
    }
    if (status != GMD_OK) {
        fprintf(stderr, "the run failed: %s\n", error.text);
    }
    gmd_trace_write(trace, stderr, NULL);
    abort();
}
