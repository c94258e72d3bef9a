#define _GNU_SOURCE /* dladdr, RTLD_NOLOAD */
#include "gmd_runtime.h"

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What was tried and why it failed, for the message when nothing is left to try. */
typedef struct attempts {
    char text[600];
    size_t length;
} attempts;

__attribute__((format(printf, 2, 3))) static void note(attempts *tried, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    size_t room = sizeof tried->text - tried->length;
    int written = vsnprintf(tried->text + tried->length, room, format, arguments);
    va_end(arguments);
    if (written > 0) {
        tried->length += (size_t)written < room ? (size_t)written : room - 1;
    }
}

typedef struct place { /* of a function in a table of pointers */
    const char *name;
    size_t offset;
} place;

/* Fills in every function, or gives the name of the first that the library lacks. */
static const char *resolve(void *table, const place *places, size_t count, void *library)
{
    for (size_t i = 0; i < count; i++) {
        void *function = dlsym(library, places[i].name);
        if (!function) {
            return places[i].name;
        }
        memcpy((char *)table + places[i].offset, &function, sizeof function);
    }
    return NULL;
}

static const char *resolve_runtime(gmd_runtime *rt, void *library)
{
#define PLACE(result, name, parameters, arguments) {#name, offsetof(gmd_runtime, name)},
    static const place places[] = {GMD_CUDART_FUNCTIONS(PLACE) GMD_CUDART_TEXT_FUNCTIONS(PLACE)};
#undef PLACE
    return resolve(rt, places, sizeof places / sizeof *places, library);
}

static const char *resolve_graphs(gmd_runtime *rt, void *library)
{
#define PLACE(name) {#name, offsetof(gmd_runtime, name)},
    static const place places[] = {GMD_GRAPH_FUNCTIONS(PLACE)};
#undef PLACE
    return resolve(rt, places, sizeof places / sizeof *places, library);
}

static const char *resolve_control(gmd_sim_api *api, void *library)
{
#define PLACE(name) {#name, offsetof(gmd_sim_api, name)},
    static const place places[] = {GMD_SIM_FUNCTIONS(PLACE)};
#undef PLACE
    return resolve(api, places, sizeof places / sizeof *places, library);
}

static void keep_path(gmd_runtime *rt, const char *fallback)
{
    Dl_info info;
    const char *path = fallback;
    if (dladdr(*(void **)&rt->cudaMalloc, &info) && info.dli_fname) {
        path = info.dli_fname;
    }
    snprintf(rt->path, sizeof rt->path, "%s", path);
}

/* --- the simulated device ---------------------------------------------------------------- */

static gmd_status load_simulated(const char *lib_directory, const char *name, int scope,
                                 void **library, gmd_error *error)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/sim/%s", lib_directory, name);
    if (length < 0 || (size_t)length >= sizeof path) {
        return gmd_fail(error, GMD_FAILED, "the library folder's name is too long: %s",
                        lib_directory);
    }
    *library = dlopen(path, RTLD_NOW | scope);
    return *library ? GMD_OK
                    : gmd_fail(error, GMD_FAILED, "the simulated device cannot be loaded: %s",
                               dlerror());
}

static gmd_status open_simulated(gmd_runtime *rt, const char *lib_directory, gmd_error *error)
{
    static gmd_sim_api api;
    static const char *const names[] = {"libcudart.so.13", "libcudart.so.12", "libcuda.so.1",
                                        "libnvidia-ml.so.1"};
    void *cudart = NULL, *library = NULL;
    /* All of them need it, and would look for it in every folder that a processor of this kind may
     * have libraries of its own in. They make it global in their turn, and say it if it is not
     * there. */
    (void)load_simulated(lib_directory, "libgmd_sim.so", RTLD_LOCAL, &library, error);
    gmd_status status = GMD_OK;
    for (size_t i = 0; i < sizeof names / sizeof *names && status == GMD_OK; i++) {
        status = load_simulated(lib_directory, names[i], RTLD_GLOBAL, &library, error);
        cudart = cudart ? cudart : library;
    }
    if (status != GMD_OK) {
        return status;
    }
    const char *missing = resolve_runtime(rt, cudart);
    if (!missing) {
        missing = resolve_control(&api, cudart);
    }
    if (!missing) {
        missing = resolve_graphs(rt, cudart);
    }
    if (missing) {
        return gmd_fail(error, GMD_FAILED,
                        "%s/sim/%s has no %s: it is not the simulated device of this gmd",
                        lib_directory, names[0], missing);
    }
    keep_path(rt, names[0]);
    rt->sim = &api;
    return GMD_OK;
}

/* --- a real device ----------------------------------------------------------------------- */

static bool try_library(gmd_runtime *rt, const char *path, attempts *tried)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!library) {
        const char *reason = dlerror();
        note(tried, "; %s%s%s", strstr(reason, path) ? "" : path, strstr(reason, path) ? "" : ": ",
             reason);
        return false;
    }
    if (dlsym(library, "gmd_sim_reset")) {
        note(tried, "; %s: this is gmd's simulated device", path);
        return false;
    }
    const char *missing = resolve_runtime(rt, library);
    if (missing) {
        note(tried, "; %s: has no function %s", path, missing);
        return false;
    }
    if (resolve_graphs(rt, library)) {
        rt->cudaStreamBeginCapture = NULL; /* all or none */
    }
    keep_path(rt, path);
    return true;
}

static bool try_pattern(gmd_runtime *rt, const char *folder, const char *rest, attempts *tried)
{
    static const char *const names[] = {"libcudart.so.13", "libcudart.so.12"};
    bool found = false;
    for (size_t n = 0; n < 2 && !found; n++) {
        char pattern[PATH_MAX];
        int length = snprintf(pattern, sizeof pattern, "%s%s/%s", folder, rest, names[n]);
        glob_t matches;
        if (length < 0 || (size_t)length >= sizeof pattern ||
            glob(pattern, 0, NULL, &matches) != 0) {
            continue;
        }
        for (size_t i = 0; i < matches.gl_pathc && !found; i++) {
            found = try_library(rt, matches.gl_pathv[i], tried);
        }
        globfree(&matches);
    }
    return found;
}

/* The toolkits: where the environment points, then the usual place. */
static bool try_toolkits(gmd_runtime *rt, attempts *tried)
{
    static const char *const variables[] = {"CUDA_HOME", "CUDA_PATH"};
    for (size_t i = 0; i < 2; i++) {
        const char *home = getenv(variables[i]);
        if (home && *home && try_pattern(rt, home, "/lib64", tried)) {
            return true;
        }
    }
    return try_pattern(rt, "/usr/local", "/cuda/lib64", tried) ||
           try_pattern(rt, "/usr/local", "/cuda-1*/lib64", tried);
}

/* The packages that a pip-installed PyTorch brings: nvidia/cu13 for CUDA 13, cuda_runtime before.
 */
static bool try_packages(gmd_runtime *rt, const char *prefix, attempts *tried)
{
    static const char *const places[] = {
        "/lib/python3*/site-packages/nvidia/cu13/lib",
        "/lib/python3*/site-packages/nvidia/cuda_runtime/lib",
        "/lib/python3*/dist-packages/nvidia/cu13/lib",
        "/lib/python3*/dist-packages/nvidia/cuda_runtime/lib",
    };
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (try_pattern(rt, prefix, places[i], tried)) {
            return true;
        }
    }
    return false;
}

/* The prefix of the first python3 in $PATH, links followed as given: /opt/venv for
 * /opt/venv/bin/python3. False when there is none. */
static bool python_prefix(char prefix[PATH_MAX])
{
    const char *path = getenv("PATH");
    while (path && *path) {
        size_t length = strcspn(path, ":");
        char file[PATH_MAX];
        int written = snprintf(file, sizeof file, "%.*s/python3", (int)length, path);
        FILE *exists = written > 0 && (size_t)written < sizeof file ? fopen(file, "re") : NULL;
        if (exists) {
            fclose(exists);
            snprintf(prefix, PATH_MAX, "%.*s/..", (int)length, path);
            return true;
        }
        path += length + (path[length] == ':');
    }
    return false;
}

static bool try_python(gmd_runtime *rt, attempts *tried)
{
    const char *venv = getenv("VIRTUAL_ENV");
    char prefix[PATH_MAX];
    return (venv && *venv && try_packages(rt, venv, tried)) ||
           (python_prefix(prefix) && try_packages(rt, prefix, tried)) ||
           try_packages(rt, "/usr/local", tried) || try_packages(rt, "/usr", tried);
}

static gmd_status open_real(gmd_runtime *rt, gmd_error *error)
{
    attempts tried = {.length = 0};
    const char *named = getenv("GMD_CUDART");
    bool found = named && *named ? try_library(rt, named, &tried)
                                 : try_library(rt, "libcudart.so.13", &tried) ||
                                       try_library(rt, "libcudart.so.12", &tried) ||
                                       try_toolkits(rt, &tried) || try_python(rt, &tried);
    if (!found) {
        bool is_named = named && *named;
        return gmd_fail(error, GMD_BAD_INPUT,
                        "no CUDA runtime for --device cuda (set GMD_CUDART to a libcudart.so file, "
                        "or use --device sim); tried %s%s",
                        is_named ? "$GMD_CUDART only, as it is set"
                                 : "the loader's path, $CUDA_HOME, $CUDA_PATH, /usr/local/cuda* "
                                   "and the nvidia packages of python3",
                        tried.text);
    }
    int count = 0;
    cudaError_t result = rt->cudaGetDeviceCount(&count);
    if (result != cudaSuccess || count < 1) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "no usable GPU for --device cuda (%s says %s); check nvidia-smi, or use "
                        "--device sim",
                        rt->path, gmd_runtime_error_text(rt, result));
    }
    return GMD_OK;
}

gmd_status gmd_runtime_open(gmd_runtime *rt, gmd_device_kind kind, const char *lib_directory,
                            gmd_error *error)
{
    memset(rt, 0, sizeof *rt);
    rt->kind = kind;
    return kind == GMD_DEVICE_SIM ? open_simulated(rt, lib_directory, error) : open_real(rt, error);
}

const char *gmd_runtime_error_text(const gmd_runtime *rt, cudaError_t error)
{
    static _Thread_local char text[160];
    snprintf(text, sizeof text, "%s (%s)", rt->cudaGetErrorName(error),
             rt->cudaGetErrorString(error));
    return text;
}
