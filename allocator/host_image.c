#include "host_image.h"
#include "gmd_min.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MIB ((uint64_t)1 << 20)

/* The number after `name` at the beginning of a line of the file. */
static bool read_number(const char *path, const char *name, uint64_t *number)
{
    char line[128];
    bool is_read = false;
    FILE *file = fopen(path, "re");
    while (file && !is_read && fgets(line, sizeof line, file)) {
        if (strncmp(line, name, strlen(name)) == 0) {
            const char *digits = line + strlen(name);
            char *end = line;
            *number = strtoull(digits, &end, 10);
            is_read = end != digits; /* a limit of "max" is no number */
        }
    }
    if (file) {
        fclose(file);
    }
    return is_read;
}

/* What the kernel thinks that it can give without swapping. */
static uint64_t available_in_system(void)
{
    uint64_t kib;
    bool is_read = read_number("/proc/meminfo", "MemAvailable:", &kib);
    return is_read && kib <= UINT64_MAX / 1024 ? kib * 1024 : UINT64_MAX;
}

/* What is left of the container's share. */
static uint64_t available_in_group(void)
{
    uint64_t most, used;
    if (!read_number("/sys/fs/cgroup/memory.max", "", &most) ||
        !read_number("/sys/fs/cgroup/memory.current", "", &used)) {
        return UINT64_MAX;
    }
    return most > used ? most - used : 0;
}

gmd_status host_image_open(host_image *image, uint64_t bytes, gmd_error *error)
{
    *image = (host_image){.bytes = bytes};
    if (!bytes) {
        return GMD_OK;
    }
    uint64_t available = gmd_min(available_in_system(), available_in_group());
    void *data = bytes > available ? MAP_FAILED
                                   : mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) {
        return gmd_fail(error, GMD_NO_MEMORY,
                        "%" PRIu64 " MiB of host memory are needed for the live blocks and %" PRIu64
                        " MiB are available",
                        (bytes + MIB - 1) / MIB, available / MIB);
    }
    (void)madvise(data, bytes, MADV_HUGEPAGE); /* fewer page faults; without it, it is slower */
    image->data = data;
    return GMD_OK;
}

void host_image_close(host_image *image)
{
    if (image->data) {
        munmap(image->data, image->bytes);
    }
    *image = (host_image){0};
}
