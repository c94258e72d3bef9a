#define _GNU_SOURCE /* dl_iterate_phdr */
#include "gmd_subject.h"

#include "candidates.h"
#include "elf_file.h"
#include "gmd_log.h"
#include "gmd_spelling.h"
#include "gmd_text.h"
#include "gmd_torch.h"
#include "instrumented.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PYTORCH_ALIGNMENT 512
#define CUDA_ALIGNMENT    256 /* what cudaMalloc promises */
#define NAME_BYTES        128

/* The allocators that gmd brings along. */
typedef struct builtin {
    const char *spec, *file; /* file NULL: compiled on this machine (gmd_torch.h) */
    uint64_t alignment;
} builtin;

static const builtin builtins[] = {
    {"reference", "libgmd_allocator.so", PYTORCH_ALIGNMENT},
    {"cudamalloc", "libgmd_cudamalloc.so", CUDA_ALIGNMENT},
    {"cudamallocasync", "libgmd_cudamallocasync.so", CUDA_ALIGNMENT},
    {"torch", NULL, PYTORCH_ALIGNMENT},
};

typedef struct subject_spec {
    char path[4096];
    char malloc_name[NAME_BYTES], free_name[NAME_BYTES]; /* empty: try the usual ones */
    const builtin *builtin;                              /* NULL: somebody else's */
} subject_spec;

static bool is_torch(const subject_spec *spec)
{
    return spec->builtin && !spec->builtin->file;
}

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

static gmd_status name_builtin(const gmd_subject_source *source, subject_spec *out,
                               gmd_error *error)
{
    if (!is_torch(out)) {
        snprintf(out->path, sizeof out->path, "%s/%s", source->lib_directory, out->builtin->file);
        return GMD_OK;
    }
    if (!source->torch_adapter) {
        return gmd_fail(error, GMD_FAILED, "--allocator torch: no adapter was built");
    }
    snprintf(out->path, sizeof out->path, "%s", source->torch_adapter);
    return GMD_OK;
}

static gmd_status refuse_spec(const char *spec, gmd_error *error)
{
    gmd_near near;
    char library[GMD_SPELLING_MAX + 8];
    if (*spec == '-') {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "--allocator has no value: the option %s follows it; expected PATH.so, for "
                        "example",
                        spec);
    }
    if (access(spec, F_OK) == 0) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "--allocator %s: is not the name of a shared library; expected PATH.so or "
                        "PATH.so:MALLOC,FREE",
                        spec);
    }
    gmd_near_begin(&near, spec);
    snprintf(library, sizeof library, "%s%.60s.so", strchr(spec, '/') ? "" : "./", spec);
    if (access(library, F_OK) == 0) {
        return gmd_fail(error, GMD_BAD_INPUT, "--allocator %s: did you mean %s?", spec, library);
    }
    for (size_t i = 0; i < sizeof builtins / sizeof *builtins; i++) {
        gmd_near_offer(&near, builtins[i].spec);
    }
    return gmd_fail(error, GMD_BAD_INPUT,
                    "--allocator %s: expected reference, cudamalloc, cudamallocasync, torch, "
                    "PATH.so or PATH.so:MALLOC,FREE%s",
                    spec, gmd_near_text(&near));
}

static gmd_status parse_spec(const gmd_subject_source *source, subject_spec *out, gmd_error *error)
{
    const char *spec = source->spec;
    *out = (subject_spec){0};
    for (size_t i = 0; i < sizeof builtins / sizeof *builtins; i++) {
        if (strcmp(spec, builtins[i].spec) == 0) {
            out->builtin = &builtins[i];
            return name_builtin(source, out, error);
        }
    }
    const char *end = strstr(spec, ".so");
    for (const char *later; end && (later = strstr(end + 3, ".so")) != NULL;) {
        end = later;
    }
    const char *colon = end ? strchr(end, ':') : NULL;
    size_t length = colon ? (size_t)(colon - spec) : strlen(spec);
    if (!end || length >= sizeof out->path - 2) {
        return refuse_spec(spec, error);
    }
    /* dlopen looks for a name without a slash in the system's folders: the user means this one. */
    snprintf(out->path, sizeof out->path, "%s%.*s", memchr(spec, '/', length) ? "" : "./",
             (int)length, spec);
    return colon ? split_names(colon + 1, out, spec, error) : GMD_OK;
}

gmd_status gmd_subject_check(const gmd_subject_source *source, gmd_error *error)
{
    subject_spec parsed;
    gmd_status status = parse_spec(source, &parsed, error);
    if (status == GMD_OK && access(parsed.path, R_OK) != 0) {
        status = gmd_fail(error, GMD_BAD_INPUT, "--allocator %s: cannot read %s: %s", source->spec,
                          parsed.path, strerror(errno));
    }
    return status;
}

bool gmd_subject_is_instrumented(const gmd_subject_source *source)
{
    subject_spec parsed;
    gmd_error ignored;
    return parse_spec(source, &parsed, &ignored) == GMD_OK && instrumented_is(parsed.path);
}

/* --- the CUDA libraries of the process ---------------------------------------------------- */

typedef struct runtimes {
    const char *lib_directory;
    bool has_simulated;
    uint32_t real_count;
    char real[512]; /* the last one */
} runtimes;

static int note_runtime(struct dl_phdr_info *object, size_t size, void *context)
{
    (void)size;
    runtimes *r = context;
    if (strncmp(gmd_file_name(object->dlpi_name), "libcudart.so", 12) != 0) {
        return 0;
    }
    size_t length = strlen(r->lib_directory);
    if (strncmp(object->dlpi_name, r->lib_directory, length) == 0 &&
        strncmp(object->dlpi_name + length, "/sim/", 5) == 0) {
        r->has_simulated = true;
    } else {
        r->real_count++;
        snprintf(r->real, sizeof r->real, "%s", object->dlpi_name);
    }
    return 0;
}

/* An allocator built to look for its own CUDA libraries first (DT_RPATH) still gets the ones that
 * are loaded already, which have the same soname; of another major version it would get its own,
 * and would work past the simulated device. PyTorch's streams and gmd's must be of one runtime,
 * too.
 */
static gmd_status check_runtimes(const gmd_subject_source *source, const subject_spec *spec,
                                 gmd_error *error)
{
    runtimes r = {.lib_directory = source->lib_directory};
    dl_iterate_phdr(note_runtime, &r);
    if (r.has_simulated && r.real_count) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "--allocator %s: brings a CUDA runtime of its own, %s, past the simulated "
                        "device: gmd simulates libcudart.so.12 and .13",
                        source->spec, r.real);
    }
    if (is_torch(spec) && r.real_count > 1) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "--allocator torch: uses another CUDA runtime (%s) than the one that was "
                        "found for --device cuda; set GMD_CUDART to PyTorch's",
                        r.real);
    }
    return GMD_OK;
}

/* --- binding ------------------------------------------------------------------------------ */

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

/* One of the two is there, and the other is not. */
typedef struct half_pair {
    const char *has, *lacks;
    const char *declaration; /* of what it lacks */
} half_pair;

static bool bind_usual_pair(gmd_subject *s, half_pair *half)
{
    static const char *const pairs[][2] = {
        {"gmd_malloc", "gmd_free"}, {"my_malloc", "my_free"},   {"alloc_fn", "free_fn"},
        {"alloc_fn", "dealloc_fn"}, {"my_alloc", "my_free"},    {"my_allocate", "my_deallocate"},
        {"rmm_alloc", "rmm_free"},  {"allocate", "deallocate"},
    };
    *half = (half_pair){0};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const char *const *pair = pairs[i];
        if (bind_pair(s, pair[0], pair[1])) {
            return true;
        }
        if (!half->has && (s->malloc || s->free)) {
            *half = s->malloc
                        ? (half_pair){pair[0], pair[1],
                                      "(void *ptr, size_t size, int device, cudaStream_t stream)"}
                        : (half_pair){pair[1], pair[0],
                                      "(size_t size, int device, cudaStream_t stream)"};
        }
    }
    return false;
}

static gmd_status refuse_usual_pair(const gmd_subject_source *source, const subject_spec *spec,
                                    const half_pair *half, gmd_error *error)
{
    char candidates[CANDIDATES_TEXT];
    candidates_tell(spec->path, half->lacks ? half->lacks : "gmd_malloc",
                    half->lacks ? half->lacks : "gmd_free", candidates, sizeof candidates);
    if (half->has) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "--allocator %s: the library has %s and lacks %s%s, which gmd needs as "
                        "well%s",
                        source->spec, half->has, half->lacks, half->declaration, candidates);
    }
    return gmd_fail(error, GMD_BAD_INPUT,
                    "--allocator %s: the library has neither gmd_malloc and gmd_free nor "
                    "another pair that gmd tries; name them: %s:MALLOC,FREE%s",
                    source->spec, spec->path, candidates);
}

static gmd_status bind_functions(gmd_subject *s, const gmd_subject_source *source,
                                 const subject_spec *spec, gmd_error *error)
{
    half_pair half;
    char candidates[CANDIDATES_TEXT];
    if (!spec->malloc_name[0]) {
        return bind_usual_pair(s, &half) ? GMD_OK : refuse_usual_pair(source, spec, &half, error);
    }
    if (bind_pair(s, spec->malloc_name, spec->free_name)) {
        return GMD_OK;
    }
    candidates_tell(spec->path, spec->malloc_name, spec->free_name, candidates, sizeof candidates);
    return gmd_fail(error, GMD_BAD_INPUT, "--allocator %s: the library has no function %s%s",
                    source->spec, s->malloc ? spec->free_name : spec->malloc_name, candidates);
}

static void bind_optional(gmd_subject *s)
{
#define BIND(returns, name, parameters, unlocks, meaning) bind(s->library, "gmd_" #name, &s->name);
    GMD_ABI_OPTIONAL(BIND)
    GMD_ABI_HOSTED(BIND)
#undef BIND
    if (!s->begin_pool || !s->end_pool || !s->release_pool) {
        s->begin_pool = NULL;
        s->end_pool = NULL;
        s->release_pool = NULL;
    }
    if (!s->begin_pool || !s->checkpoint_pool || !s->restore_pool || !s->drop_checkpoint) {
        s->checkpoint_pool = NULL;
        s->restore_pool = NULL;
        s->drop_checkpoint = NULL;
    }
    if (!s->begin_pool) {
        s->set_pool_option = NULL;
        s->set_pool_memory = NULL;
    }
}

gmd_abilities gmd_subject_abilities(const gmd_subject *subject)
{
#define HAS(returns, name, parameters, unlocks, meaning) .name = subject->name != NULL,
    return (gmd_abilities){GMD_ABI_OPTIONAL(HAS)};
#undef HAS
}

static void log_functions(const gmd_subject *s)
{
    char names[600] = "malloc free";
    size_t used = strlen(names);
#define LOG_NAME(returns, name, parameters, unlocks, meaning)                                      \
    if (s->name && used < sizeof names) {                                                          \
        used += (size_t)snprintf(names + used, sizeof names - used, " " #name);                    \
    }
    GMD_ABI_OPTIONAL(LOG_NAME)
    GMD_ABI_HOSTED(LOG_NAME)
#undef LOG_NAME
    GMD_LOG(SUBJECT, "%s has %s", s->path, names);
}

/* What it needs in turn may be compiled so, too: the loader then says what it did not find. */
static gmd_status open_library(gmd_subject *subject, const gmd_subject_source *source,
                               const subject_spec *spec, gmd_error *error)
{
    gmd_status status =
        instrumented_is(spec->path) ? instrumented_prepare(source->lib_directory, error) : GMD_OK;
    if (status != GMD_OK) {
        return status;
    }
    const char *why = NULL;
    subject->library = dlopen(spec->path, RTLD_NOW | RTLD_LOCAL);
    if (!subject->library && instrumented_is_told(why = dlerror())) {
        status = instrumented_prepare(source->lib_directory, error);
        subject->library = status == GMD_OK ? dlopen(spec->path, RTLD_NOW | RTLD_LOCAL) : NULL;
        why = status == GMD_OK && !subject->library ? dlerror() : NULL;
    }
    GMD_LOG(SUBJECT, "--allocator %s: %s %s", source->spec, spec->path,
            subject->library ? "is loaded" : "cannot be loaded");
    if (subject->library || status != GMD_OK) {
        return status;
    }
    return gmd_fail(error, GMD_BAD_INPUT,
                    "--allocator %s: cannot be loaded: %s ('ldd -r %s' lists all that it needs and "
                    "does not find)%s",
                    source->spec, why, spec->path,
                    instrumented_is_told(why)
                        ? "; gmd has what compilers call for -fsanitize=thread, not what asks "
                          "ThreadSanitizer itself"
                        : "");
}

static gmd_status load(gmd_subject *subject, const gmd_subject_source *source,
                       const subject_spec *spec, gmd_error *error)
{
    gmd_status status = is_torch(spec) ? torch_prepare(source->conf, error) : GMD_OK;
    if (status != GMD_OK) {
        return status;
    }
    snprintf(subject->path, sizeof subject->path, "%s", spec->path);
    const char *unfit = elf_file_unfit(spec->path);
    if (unfit) {
        return gmd_fail(error, GMD_BAD_INPUT, "--allocator %s: cannot be loaded: %s %s",
                        source->spec, spec->path, unfit);
    }
    if (!elf_file_is_whole(spec->path)) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "--allocator %s: cannot be loaded: the file is cut short", source->spec);
    }
    status = open_library(subject, source, spec, error);
    return status == GMD_OK ? check_runtimes(source, spec, error) : status;
}

gmd_status gmd_subject_open(gmd_subject *subject, const gmd_subject_source *source,
                            gmd_error *error)
{
    subject_spec parsed;
    gmd_status status = parse_spec(source, &parsed, error);
    *subject = (gmd_subject){.promised_alignment =
                                 parsed.builtin ? parsed.builtin->alignment : CUDA_ALIGNMENT};
    if (status == GMD_OK) {
        status = load(subject, source, &parsed, error);
    }
    if (status != GMD_OK) {
        return status;
    }
    status = bind_functions(subject, source, &parsed, error);
    if (status != GMD_OK) {
        return status;
    }
    bind_optional(subject);
    if (GMD_LOG_IS_ON(SUBJECT)) {
        log_functions(subject);
    }
    return GMD_OK;
}
