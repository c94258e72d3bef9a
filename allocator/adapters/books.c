#include "books.h"

#include <pthread.h>
#include <stdio.h>

/* --- statistics -------------------------------------------------------------------------- */

typedef struct books {
    uint64_t bytes, bytes_peak, count, refusals;
} books;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static books of_device[ADAPTER_DEVICES];

static books *books_of(int device)
{
    return device >= 0 && device < ADAPTER_DEVICES ? &of_device[device] : NULL;
}

void books_alloc(int device, size_t size, bool is_served)
{
    books *b = books_of(device);
    if (!b) {
        return;
    }
    pthread_mutex_lock(&lock);
    if (is_served) {
        b->bytes += size;
        b->count++;
        b->bytes_peak = b->bytes > b->bytes_peak ? b->bytes : b->bytes_peak;
    } else {
        b->refusals++;
    }
    pthread_mutex_unlock(&lock);
}

void books_free(int device, size_t size)
{
    books *b = books_of(device);
    if (b) {
        pthread_mutex_lock(&lock);
        b->bytes -= size;
        b->count--;
        pthread_mutex_unlock(&lock);
    }
}

void books_reset_peaks(int device)
{
    books *b = books_of(device);
    if (b) {
        pthread_mutex_lock(&lock);
        b->bytes_peak = b->bytes;
        pthread_mutex_unlock(&lock);
    }
}

bool books_read(int device, gmd_stats *out)
{
    const books *b = books_of(device);
    if (!b || out->struct_size != sizeof *out) {
        return false;
    }
    pthread_mutex_lock(&lock);
    *out = (gmd_stats){.struct_size = sizeof *out,
                       .allocated_bytes = b->bytes,
                       .allocated_bytes_peak = b->bytes_peak,
                       .reserved_bytes = b->bytes,
                       .reserved_bytes_peak = b->bytes_peak,
                       .active_bytes = b->bytes,
                       .active_bytes_peak = b->bytes_peak,
                       .requested_bytes = b->bytes,
                       .allocation_count = b->count,
                       .segment_count = b->count,
                       .num_ooms = b->refusals};
    pthread_mutex_unlock(&lock);
    return true;
}

/* --- errors ------------------------------------------------------------------------------ */

static _Thread_local char error_text[200];

void adapter_begin(void)
{
    error_text[0] = '\0';
}

void adapter_failed(const char *function, cudaError_t result)
{
    snprintf(error_text, sizeof error_text, "%s: %s (%s)", function, cudaGetErrorName(result),
             cudaGetErrorString(result));
}

const char *adapter_error(void)
{
    return error_text[0] ? error_text : NULL;
}

/* --- the current device ------------------------------------------------------------------ */

bool device_enter(int device, int *previous)
{
    adapter_begin();
    cudaError_t result = cudaGetDevice(previous);
    if (result != cudaSuccess) {
        adapter_failed("cudaGetDevice", result);
        return false;
    }
    if (*previous == device) {
        return true;
    }
    result = cudaSetDevice(device);
    if (result != cudaSuccess) {
        adapter_failed("cudaSetDevice", result);
    }
    return result == cudaSuccess;
}

void device_leave(int device, int previous)
{
    if (device == previous) {
        return;
    }
    cudaError_t result = cudaSetDevice(previous);
    if (result != cudaSuccess) {
        adapter_failed("cudaSetDevice", result);
    }
}
