/* torch_find.c - where PyTorch and the CUDA headers are. */
#include "gmd_torch.h"

#include "program.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ALLOCATOR_HEADER "include/c10/cuda/CUDACachingAllocator.h"
#define ALLOCATOR_CODE   "lib/libc10_cuda.so"

/* False: it is not there, or its name is too long. */
static bool has(const char *directory, const char *file)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/%s", directory, file);
    return length > 0 && (size_t)length < sizeof path && access(path, R_OK) == 0;
}

/* --- PyTorch ----------------------------------------------------------------------------- */

/* `origin` says where the name of the folder came from. */
static gmd_status check_package(const char *directory, const char *origin, gmd_error *error)
{
    if (access(directory, R_OK | X_OK) != 0) {
        return gmd_fail(error, GMD_BAD_INPUT, "--allocator torch: %s %.300s: no such folder",
                        origin, directory);
    }
    static const char *const needed[] = {ALLOCATOR_CODE, "lib/libc10.so", ALLOCATOR_HEADER};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        if (!has(directory, needed[i])) {
            return gmd_fail(error, GMD_BAD_INPUT,
                            "--allocator torch: %s %.300s has no %s: expected the folder of a "
                            "PyTorch package built for CUDA, such as .../site-packages/torch",
                            origin, directory, needed[i]);
        }
    }
    return GMD_OK;
}

/* Where the interpreter would import torch from, without importing it: that takes seconds, and
 * needs the libraries that gmd is about to replace. */
static gmd_status ask_python(char directory[PATH_MAX], gmd_error *error)
{
    static const char question[] =
        "import importlib.util as u; s = u.find_spec('torch'); "
        "print(s.submodule_search_locations[0] if s and s.submodule_search_locations else '')";
    const char *named = getenv("GMD_PYTHON");
    const char *python = named && *named ? named : "python3";
    const char *const arguments[] = {python, "-c", question, NULL};
    int exit_status = 0;
    gmd_error reason = {""};
    gmd_status status =
        spawn_program(arguments, STDOUT_FILENO, directory, PATH_MAX, &exit_status, &reason);
    directory[strcspn(directory, "\r\n")] = '\0';
    if (status != GMD_OK || exit_status != 0 || !directory[0]) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "--allocator torch: no PyTorch found (%s%s); name the folder of its "
                        "package with --torch-dir or GMD_TORCH_DIR",
                        status != GMD_OK ? reason.text : python,
                        status != GMD_OK   ? ""
                        : exit_status != 0 ? " could not be asked"
                                           : " has no module torch");
    }
    return check_package(directory, "the module torch of python3 in", error);
}

static gmd_status find_package(gmd_torch *torch, const char *directory, gmd_error *error)
{
    const char *set = getenv("GMD_TORCH_DIR");
    const char *named = directory ? directory : set && *set ? set : NULL;
    if (!named) {
        return ask_python(torch->directory, error);
    }
    gmd_status status = check_package(named, directory ? "--torch-dir" : "GMD_TORCH_DIR", error);
    if (status == GMD_OK && !realpath(named, torch->directory)) {
        status =
            gmd_fail(error, GMD_BAD_INPUT, "--allocator torch: %.300s cannot be resolved", named);
    }
    return status;
}

/* --- the CUDA headers -------------------------------------------------------------------- */

static bool try_include(gmd_torch *torch, const char *folder, const char *rest)
{
    char pattern[PATH_MAX];
    int length = snprintf(pattern, sizeof pattern, "%s%s", folder, rest);
    glob_t matches;
    if (length < 0 || (size_t)length >= sizeof pattern || glob(pattern, 0, NULL, &matches) != 0) {
        return false;
    }
    bool found = false;
    for (size_t i = 0; i < matches.gl_pathc && !found; i++) {
        found = has(matches.gl_pathv[i], "cuda_runtime_api.h") &&
                has(matches.gl_pathv[i], "crt/host_config.h") &&
                strlen(matches.gl_pathv[i]) < PATH_MAX;
        if (found) {
            snprintf(torch->cuda_include, PATH_MAX, "%s", matches.gl_pathv[i]);
        }
    }
    globfree(&matches);
    return found;
}

/* The headers that came with this PyTorch come first: their version is its own. But the pip package
 * of the runtime is not whole without that of nvcc, which has crt/. */
static gmd_status find_cuda_headers(gmd_torch *torch, gmd_error *error)
{
    static const char *const variables[] = {"CUDA_HOME", "CUDA_PATH"};
    bool found = try_include(torch, torch->directory, "/../nvidia/cu1*/include") ||
                 try_include(torch, torch->directory, "/../nvidia/cuda_runtime/include");
    for (size_t i = 0; i < 2 && !found; i++) {
        const char *home = getenv(variables[i]);
        found = home && *home && try_include(torch, home, "/include");
    }
    found = found || try_include(torch, "/usr/local/cuda", "/include") ||
            try_include(torch, "/usr/local", "/cuda-1*/include");
    return found ? GMD_OK
                 : gmd_fail(error, GMD_BAD_INPUT,
                            "--allocator torch: no CUDA headers (cuda_runtime_api.h with "
                            "crt/host_config.h) in the nvidia packages beside %.300s, $CUDA_HOME, "
                            "$CUDA_PATH or /usr/local/cuda*",
                            torch->directory);
}

gmd_status gmd_torch_find(gmd_torch *torch, const char *directory, gmd_error *error)
{
    *torch = (gmd_torch){0};
    gmd_status status = find_package(torch, directory, error);
    return status == GMD_OK ? find_cuda_headers(torch, error) : status;
}
