#include "subject.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define REFERENCE_ALIGNMENT 512 /* PyTorch's; the reference promises it */
#define CUDA_ALIGNMENT      256 /* what cudaMalloc promises */
#define NAME_BYTES          128

typedef struct subject_spec {
    char path[4096];
    char malloc_name[NAME_BYTES], free_name[NAME_BYTES]; /* empty: try the usual ones */
    bool is_reference;
} subject_spec;

static gmd_status split_names(const char *names, subject_spec *out, const char *spec,
                              gmd_error *error)
{
    const char *comma = strchr(names, ',');
    if (!comma || comma == names || !comma[1] || strchr(comma + 1, ',') ||
        comma - names >= NAME_BYTES || strlen(comma + 1) >= NAME_BYTES) {
        return gmd_fail(
            error, GMD_BAD_INPUT,
            "--allocator %s: expected PATH.so:MALLOC,FREE with the names of two functions", spec);
    }
    memcpy(out->malloc_name, names, (size_t)(comma - names));
    snprintf(out->free_name, NAME_BYTES, "%s", comma + 1);
    return GMD_OK;
}

static gmd_status parse_spec(const char *spec, const char *lib_directory, subject_spec *out,
                             gmd_error *error)
{
    *out = (subject_spec){0};
    if (strcmp(spec, "reference") == 0) {
        out->is_reference = true;
        snprintf(out->path, sizeof out->path, "%s/libgmd_allocator.so", lib_directory);
        return GMD_OK;
    }
    if (strcmp(spec, "cudamalloc") == 0 || strcmp(spec, "cudamallocasync") == 0 ||
        strcmp(spec, "torch") == 0) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "--allocator %s: this version of gmd has no adapter for it yet; it takes "
                        "'reference' and PATH.so",
                        spec);
    }
    const char *end = strstr(spec, ".so");
    for (const char *later; end && (later = strstr(end + 3, ".so")) != NULL;) {
        end = later;
    }
    const char *colon = end ? strchr(end, ':') : NULL;
    size_t length = colon ? (size_t)(colon - spec) : strlen(spec);
    if (!end || length >= sizeof out->path - 2) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "--allocator %s: expected 'reference', PATH.so or PATH.so:MALLOC,FREE",
                        spec);
    }
    /* dlopen looks for a name without a slash in the system's folders: the user means this one. */
    snprintf(out->path, sizeof out->path, "%s%.*s", memchr(spec, '/', length) ? "" : "./",
             (int)length, spec);
    return colon ? split_names(colon + 1, out, spec, error) : GMD_OK;
}

gmd_status gmd_subject_check(const char *spec, const char *lib_directory, gmd_error *error)
{
    subject_spec parsed;
    gmd_status status = parse_spec(spec, lib_directory, &parsed, error);
    if (status == GMD_OK && access(parsed.path, R_OK) != 0) {
        status =
            gmd_fail(error, GMD_BAD_INPUT, "--allocator %s: cannot read %s", spec, parsed.path);
    }
    return status;
}

/* A function pointer from dlsym, without the cast that ISO C does not have. */
static void bind(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
}

static bool bind_pair(gmd_subject *s, const char *malloc_name, const char *free_name)
{
    bind(s->library, malloc_name, &s->malloc);
    bind(s->library, free_name, &s->free);
    return s->malloc && s->free;
}

static bool bind_usual_pair(gmd_subject *s)
{
    static const char *const pairs[][2] = {
        {"gmd_malloc", "gmd_free"}, {"my_malloc", "my_free"},   {"alloc_fn", "free_fn"},
        {"alloc_fn", "dealloc_fn"}, {"my_alloc", "my_free"},    {"my_allocate", "my_deallocate"},
        {"rmm_alloc", "rmm_free"},  {"allocate", "deallocate"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        if (bind_pair(s, pairs[i][0], pairs[i][1])) {
            return true;
        }
    }
    return false;
}

static void bind_optional(gmd_subject *s)
{
    bind(s->library, "gmd_init", &s->init);
    bind(s->library, "gmd_empty_cache", &s->empty_cache);
    bind(s->library, "gmd_record_stream", &s->record_stream);
    bind(s->library, "gmd_set_memory_fraction", &s->set_memory_fraction);
    bind(s->library, "gmd_get_stats", &s->get_stats);
    bind(s->library, "gmd_memory_stats", &s->memory_stats);
    bind(s->library, "gmd_walk", &s->walk);
    bind(s->library, "gmd_configure", &s->configure);
    bind(s->library, "gmd_reset_peak_stats", &s->reset_peak_stats);
    bind(s->library, "gmd_order_segments", &s->order_segments);
    bind(s->library, "gmd_device_request", &s->device_request);
    bind(s->library, "gmd_last_error", &s->last_error);
}

gmd_status gmd_subject_open(gmd_subject *subject, const char *spec, const char *lib_directory,
                            gmd_error *error)
{
    subject_spec parsed;
    gmd_status status = parse_spec(spec, lib_directory, &parsed, error);
    if (status != GMD_OK) {
        return status;
    }
    *subject = (gmd_subject){.promised_alignment =
                                 parsed.is_reference ? REFERENCE_ALIGNMENT : CUDA_ALIGNMENT};
    snprintf(subject->path, sizeof subject->path, "%s", parsed.path);
    subject->library = dlopen(parsed.path, RTLD_NOW | RTLD_LOCAL);
    if (!subject->library) {
        return gmd_fail(error, GMD_BAD_INPUT, "--allocator %s: cannot be loaded: %s", spec,
                        dlerror());
    }
    if (parsed.malloc_name[0] && !bind_pair(subject, parsed.malloc_name, parsed.free_name)) {
        return gmd_fail(error, GMD_BAD_INPUT, "--allocator %s: the library has no function %s",
                        spec, subject->malloc ? parsed.free_name : parsed.malloc_name);
    }
    if (!parsed.malloc_name[0] && !bind_usual_pair(subject)) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "--allocator %s: the library has neither gmd_malloc and gmd_free nor "
                        "another pair that gmd tries; name them: %s:MALLOC,FREE",
                        spec, parsed.path);
    }
    bind_optional(subject);
    return GMD_OK;
}
