/* gmd_subject.h - the allocator under test: a shared library found by its SPEC and bound by name to
 * the ABI of gmd_abi.h. */
#ifndef GMD_SUBJECT_H
#define GMD_SUBJECT_H

#include "gmd_abi.h"
#include "gmd_cuda.h"
#include "gmd_error.h"

typedef struct gmd_subject {
    void *library;
    char path[4096];
    /* The two that every allocator has. */
    void *(*malloc)(size_t size, int device, cudaStream_t stream);
    void (*free)(void *ptr, size_t size, int device, cudaStream_t stream);
    /* NULL where the library does not have them. */
    void (*init)(int device_count);
    void (*empty_cache)(void);
    void (*record_stream)(void *ptr, cudaStream_t stream);
    void (*forget_stream)(int device, cudaStream_t stream);
    void (*set_memory_fraction)(double fraction, int device);
    int (*get_stats)(int device, gmd_stats *out);
    int (*memory_stats)(int device, gmd_stat_fn *emit, void *context);
    int (*walk)(int device, gmd_walk_fn *visit, void *context);
    int (*configure)(const char *conf, char *message, size_t message_size);
    int (*restart)(const char *conf, char *message, size_t message_size);
    void (*reset_peak_stats)(int device);
    int (*order_segments)(int device, const uint64_t *given, size_t count);
    uint64_t (*place_of)(int device, uint64_t address);
    uint64_t (*device_request)(size_t size);
    int (*set_quirk)(const char *name, int is_on);
    int64_t (*quirk_count)(const char *name);
    int (*begin_pool)(int device, const uint64_t id[2], gmd_stream_filter *accepts, void *context);
    int (*end_pool)(int device, const uint64_t id[2], void **context);
    int (*release_pool)(int device, const uint64_t id[2]);
    unsigned (*promises)(void);
    const char *(*last_error)(void);
    uint64_t promised_alignment; /* bytes */
} gmd_subject;

/* Which allocator, and where it comes from. */
typedef struct gmd_subject_source {
    const char *spec;          /* `reference`, `cudamalloc`, `cudamallocasync`, `torch`, `PATH.so`,
                                  `PATH.so:MALLOC,FREE` */
    const char *lib_directory; /* gmd's own libraries */
    const char *torch_adapter; /* `torch`: the library of gmd_torch_adapter; else NULL */
    const char *conf;          /* settings that will be given to gmd_configure; NULL: none */
} gmd_subject_source;

/* Checks the form of a SPEC and that its file exists, without loading anything: bad usage is told
 * before a child process is made. */
gmd_status gmd_subject_check(const gmd_subject_source *source, gmd_error *error);

/* Loads it. The CUDA runtime that it is to run on must be loaded already (gmd_runtime_open), and is
 * the only one afterwards: an allocator that brings another is refused. */
gmd_status gmd_subject_open(gmd_subject *subject, const gmd_subject_source *source,
                            gmd_error *error);

#endif
