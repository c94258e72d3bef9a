#include "gmd_memory_bound.h"

#include "gmd_min.h"
#include "gmd_size.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* --- what there is ------------------------------------------------------------------------- */

/* "max", or no such file, is no limit. */
static uint64_t control_group_limit(void)
{
    uint64_t bytes = UINT64_MAX;
    FILE *file = fopen("/sys/fs/cgroup/memory.max", "re");
    if (file) {
        if (fscanf(file, "%" SCNu64, &bytes) != 1) { /* NOLINT(cert-err34-c): the kernel's number */
            bytes = UINT64_MAX;
        }
        fclose(file);
    }
    return bytes;
}

uint64_t gmd_memory_bound_default(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t there = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 8 * GMD_GIB;
    return gmd_min(there, control_group_limit()) / 2;
}

/* What RLIMIT_DATA counts, of this process. */
static bool read_taken(uint64_t *bytes)
{
    uint64_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    bool ok = file && fscanf(file, "%*u %*u %*u %*u %*u %" SCNu64, &pages) == 1; /* NOLINT */
    if (file) {
        fclose(file);
    }
    *bytes = pages * (uint64_t)sysconf(_SC_PAGESIZE);
    return ok;
}

/* --- the bound ------------------------------------------------------------------------------ */

void gmd_memory_bound_begin(gmd_memory_bound *bound, uint64_t bytes)
{
    struct rlimit limit;
    uint64_t taken;
    *bound = (gmd_memory_bound){.bytes = bytes ? bytes : gmd_memory_bound_default()};
    if (!read_taken(&taken) || getrlimit(RLIMIT_DATA, &limit) != 0 ||
        bound->bytes > UINT64_MAX - taken || limit.rlim_cur <= taken + bound->bytes) {
        return;
    }
    bound->limit_before = limit.rlim_cur;
    limit.rlim_cur = taken + bound->bytes;
    bound->is_set = setrlimit(RLIMIT_DATA, &limit) == 0;
}

gmd_status gmd_memory_bound_end(const gmd_memory_bound *bound, const char *path, gmd_status status,
                                gmd_error *error)
{
    struct rlimit limit;
    if (!bound->is_set) {
        return status;
    }
    if (getrlimit(RLIMIT_DATA, &limit) == 0) {
        limit.rlim_cur = bound->limit_before;
        setrlimit(RLIMIT_DATA, &limit);
    }
    if (status != GMD_NO_MEMORY) {
        return status;
    }
    char size[24];
    gmd_error cause = {""};
    if (error) {
        cause = *error;
    }
    return gmd_fail(error, GMD_BAD_INPUT,
                    "%.300s: needs more memory than reading may take, %s: --max-memory SIZE allows "
                    "more (%.300s)",
                    path, gmd_format_size(bound->bytes, size), cause.text);
}
