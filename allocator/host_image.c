#include "host_image.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>

#define MIB ((uint64_t)1 << 20)

static uint64_t lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* What the kernel thinks that it can give without swapping. */
static uint64_t available_in_system(void)
{
    uint64_t kib = UINT64_MAX;
    char line[128];
    FILE *file = fopen("/proc/meminfo", "re");
    while (file && fgets(line, sizeof line, file) &&
           sscanf(line, "MemAvailable: %" SCNu64, &kib) != 1) {
    }
    if (file) {
        fclose(file);
    }
    return kib > UINT64_MAX / 1024 ? UINT64_MAX : kib * 1024;
}

static bool read_number(const char *path, uint64_t *number)
{
    FILE *file = fopen(path, "re");
    bool is_read = file && fscanf(file, "%" SCNu64, number) == 1; /* "max" is no number */
    if (file) {
        fclose(file);
    }
    return is_read;
}

/* What is left of the container's share. */
static uint64_t available_in_group(void)
{
    uint64_t most, used;
    if (!read_number("/sys/fs/cgroup/memory.max", &most) ||
        !read_number("/sys/fs/cgroup/memory.current", &used)) {
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
    uint64_t available = lesser(available_in_system(), available_in_group());
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
