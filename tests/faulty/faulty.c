#include "faulty.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t faulty_active;

static bool switch_on(const char *name, size_t length)
{
    for (int i = 0; faulty_defects[i]; i++) {
        if (strlen(faulty_defects[i]) == length && strncmp(faulty_defects[i], name, length) == 0) {
            faulty_active |= UINT64_C(1) << i;
            return true;
        }
    }
    return false;
}

__attribute__((constructor)) static void read_environment(void)
{
    const char *name = getenv("GMD_DEFECT");
    if (name && *name && !switch_on(name, strlen(name))) {
        fprintf(stderr, "GMD_DEFECT: this allocator has no defect '%s'\n", name);
        abort();
    }
}

/* defect:NAME[,defect:NAME...] */
int gmd_configure(const char *conf, char *message, size_t message_size)
{
    static const char key[] = "defect:";
    while (*conf) {
        size_t length = strcspn(conf, ",");
        if (strncmp(conf, key, strlen(key)) != 0 ||
            !switch_on(conf + strlen(key), length - strlen(key))) {
            snprintf(message, message_size, "expected defect:NAME with a defect that there is");
            return -1;
        }
        conf += length + (conf[length] == ',');
    }
    return 0;
}

faulty_guard faulty_enter_device(int device)
{
    faulty_guard guard = {.previous = device};
    cudaGetDevice(&guard.previous);
    guard.is_other = guard.previous != device;
    if (guard.is_other) {
        cudaSetDevice(device);
    }
    return guard;
}

void faulty_leave_device(faulty_guard guard)
{
    if (guard.is_other) {
        cudaSetDevice(guard.previous);
    }
}

void *faulty_take(size_t size)
{
    void *memory = NULL;
    if (cudaMalloc(&memory, size) != cudaSuccess) {
        cudaGetLastError();
        return NULL;
    }
    return memory;
}

void faulty_wait(cudaEvent_t event)
{
    if (cudaEventSynchronize(event) != cudaSuccess) {
        cudaGetLastError();
        if (cudaDeviceSynchronize() != cudaSuccess) {
            cudaGetLastError();
        }
    }
}

bool faulty_limit(double fraction, int device, uint64_t *limit)
{
    size_t unused, total = 0;
    faulty_guard guard = faulty_enter_device(device);
    bool is_known = cudaMemGetInfo(&unused, &total) == cudaSuccess;
    if (is_known) {
        *limit = (uint64_t)(fraction * (double)total);
    } else {
        cudaGetLastError();
    }
    faulty_leave_device(guard);
    return is_known;
}

static void raise_peak(uint64_t *peak, uint64_t value)
{
    *peak = value > *peak ? value : *peak;
}

void faulty_count_alloc(gmd_stats *s, uint64_t bytes, uint64_t requested)
{
    s->allocation_count++;
    s->allocated_bytes += bytes;
    s->requested_bytes += requested;
    raise_peak(&s->allocated_bytes_peak, s->allocated_bytes);
}

void faulty_count_free(gmd_stats *s, uint64_t bytes, uint64_t requested)
{
    s->allocation_count--;
    s->allocated_bytes -= bytes;
    s->requested_bytes -= requested;
}

void faulty_count_segment(gmd_stats *s, uint64_t bytes)
{
    s->segment_count++;
    s->reserved_bytes += bytes;
    raise_peak(&s->reserved_bytes_peak, s->reserved_bytes);
}

void faulty_count_segment_freed(gmd_stats *s, uint64_t bytes)
{
    s->segment_count--;
    s->reserved_bytes -= bytes;
}

int faulty_give_stats(const gmd_stats *s, gmd_stats *out)
{
    if (out->struct_size != sizeof *out) {
        return -1;
    }
    *out = *s;
    out->struct_size = sizeof *out;
    out->active_bytes = s->allocated_bytes;
    out->active_bytes_peak = s->allocated_bytes_peak;
    out->inactive_split_bytes = GMD_STAT_UNKNOWN;
    out->num_alloc_retries = GMD_STAT_UNKNOWN;
    return 0;
}
