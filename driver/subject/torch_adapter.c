/* torch_adapter.c - compiles the adapter for PyTorch's allocator, once, into a cache. */
#include "gmd_torch.h"

#include "gmd_file.h"
#include "gmd_hash.h"
#include "program.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Adapters compiled by versions of gmd that call the compiler in another way do not count. */
#define RECIPE "1"

static uint64_t hash_text(uint64_t h, const char *text)
{
    return gmd_hash_bytes(h, text, strlen(text) + 1);
}

/* --- what the adapter is made from ------------------------------------------------------- */

typedef struct recipe {
    const gmd_torch *torch;
    char source[PATH_MAX], include[PATH_MAX]; /* of gmd: the adapter, gmd_abi.h */
    char compiler[256];
    uint64_t key;
} recipe;

static gmd_status add_library(recipe *r, const char *name, gmd_error *error)
{
    char path[PATH_MAX + 64];
    struct stat s;
    snprintf(path, sizeof path, "%s/lib/%s", r->torch->directory, name);
    if (stat(path, &s) != 0) {
        return gmd_fail(error, GMD_BAD_INPUT, "--allocator torch: %.300s: %s", path,
                        strerror(errno));
    }
    int64_t figures[] = {s.st_size, s.st_mtim.tv_sec, s.st_mtim.tv_nsec};
    r->key = gmd_hash_bytes(hash_text(r->key, path), figures, sizeof figures);
    return GMD_OK;
}

static gmd_status add_source(recipe *r, const char *path, gmd_error *error)
{
    uint8_t *text = NULL;
    size_t size = 0;
    gmd_status status = gmd_file_read(path, &text, &size, error);
    if (status == GMD_OK) {
        r->key = gmd_hash_bytes(r->key, text, size);
    }
    free(text);
    return status == GMD_BAD_INPUT ? GMD_FAILED : status; /* it is a part of gmd */
}

static gmd_status write_recipe(recipe *r, const gmd_torch *torch, const char *lib_directory,
                               gmd_error *error)
{
    const char *compiler = getenv("CXX");
    *r = (recipe){.torch = torch, .key = GMD_HASH_OF_NOTHING};
    char header[PATH_MAX + 16];
    int length = snprintf(r->include, sizeof r->include, "%s/adapters", lib_directory);
    snprintf(r->source, sizeof r->source, "%s/adapters/torch.cpp", lib_directory);
    if (length < 0 || (size_t)length + 16 >= sizeof r->include) {
        return gmd_fail(error, GMD_FAILED, "the library folder's name is too long");
    }
    snprintf(header, sizeof header, "%s/gmd_abi.h", r->include);
    snprintf(r->compiler, sizeof r->compiler, "%s", compiler && *compiler ? compiler : "c++");
    r->key = hash_text(hash_text(hash_text(r->key, RECIPE), r->compiler), torch->cuda_include);
    gmd_status status = add_source(r, r->source, error);
    if (status == GMD_OK) {
        status = add_source(r, header, error);
    }
    if (status == GMD_OK) {
        status = add_library(r, "libc10.so", error);
    }
    return status == GMD_OK ? add_library(r, "libc10_cuda.so", error) : status;
}

/* --- the cache --------------------------------------------------------------------------- */

/* Makes `path` and the folders above it. */
static bool make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        bool made = mkdir(path, 0777) == 0 || errno == EEXIST;
        *slash = '/';
        if (!made) {
            return false;
        }
    }
    return mkdir(path, 0777) == 0 || errno == EEXIST;
}

static gmd_status open_cache(char directory[PATH_MAX], gmd_error *error)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    bool has_cache = cache && cache[0] == '/';
    if (!has_cache && !(home && *home)) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "--allocator torch: neither XDG_CACHE_HOME nor HOME is set: no folder for "
                        "the adapter that is compiled");
    }
    int length = snprintf(directory, PATH_MAX, "%s%s/gmd", has_cache ? cache : home,
                          has_cache ? "" : "/.cache");
    if (length < 0 || length > PATH_MAX - 80) {
        return gmd_fail(error, GMD_BAD_INPUT, "the cache folder's name is too long");
    }
    if (!make_folders(directory)) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "--allocator torch: %.300s, the folder for the adapter that is compiled, "
                        "cannot be made: %s; set XDG_CACHE_HOME",
                        directory, strerror(errno));
    }
    return GMD_OK;
}

/* The end of a file in the cache. It shows that a file was cut off or damaged before the loader
 * crashes on it. What follows an ELF file's sections is nobody's. */
typedef struct seal {
    char magic[8];
    uint64_t hash;
} seal;

static const char seal_magic[8] = "gmdseal1";

static bool is_whole(const char *path)
{
    uint8_t *data = NULL;
    size_t size = 0;
    seal end;
    if (access(path, F_OK) != 0 || gmd_file_read(path, &data, &size, NULL) != GMD_OK) {
        return false;
    }
    bool whole = size > sizeof end;
    if (whole) {
        memcpy(&end, data + size - sizeof end, sizeof end);
        whole = memcmp(end.magic, seal_magic, sizeof end.magic) == 0 &&
                end.hash == gmd_hash_bytes(GMD_HASH_OF_NOTHING, data, size - sizeof end);
    }
    free(data);
    return whole;
}

static gmd_status put_seal(const char *path, gmd_error *error)
{
    uint8_t *data = NULL;
    size_t size = 0;
    gmd_status status = gmd_file_read(path, &data, &size, error);
    if (status != GMD_OK) {
        return status;
    }
    seal end = {.hash = gmd_hash_bytes(GMD_HASH_OF_NOTHING, data, size)};
    memcpy(end.magic, seal_magic, sizeof end.magic);
    free(data);
    FILE *file = fopen(path, "ab");
    bool written = file && fwrite(&end, sizeof end, 1, file) == 1;
    written = file && fclose(file) == 0 && written;
    return written
               ? GMD_OK
               : gmd_fail(error, GMD_FAILED, "%.300s: writing failed: %s", path, strerror(errno));
}

/* --- the compiler ------------------------------------------------------------------------ */

enum { COMPILER_WORDS = 8, ARGUMENT_MAX = 40 };

/* $CXX may hold options ("ccache g++", "g++ -m64"): its words, apart. */
static size_t split_compiler(char *text, const char *words[COMPILER_WORDS])
{
    size_t count = 0;
    char *rest = text;
    for (char *word; count < COMPILER_WORDS && (word = strtok_r(rest, " ", &rest));) {
        words[count++] = word;
    }
    return count;
}

/* The first lines that name an error, or the first lines: what a user can act on. */
static const char *first_error(const char *text)
{
    const char *found = strstr(text, "error:");
    while (found && found > text && found[-1] != '\n') {
        found--;
    }
    return found ? found : text;
}

static gmd_status compile(recipe *r, const char *output, gmd_error *error)
{
    char text[8192], libraries[PATH_MAX + 8], headers[PATH_MAX + 16];
    snprintf(libraries, sizeof libraries, "%s/lib", r->torch->directory);
    snprintf(headers, sizeof headers, "%s/include", r->torch->directory);
    const char *words[COMPILER_WORDS];
    size_t count = split_compiler(r->compiler, words);
    const char *const options[] = {
        "-std=c++17", "-O2",      "-fPIC",    "-shared",  "-w",       "-fvisibility=hidden",
        "-I",         r->include, "-isystem", headers,    "-isystem", r->torch->cuda_include,
        "-o",         output,     r->source,  "-L",       libraries,  "-lc10_cuda",
        "-lc10",      "-Xlinker", "-rpath",   "-Xlinker", libraries};
    const char *arguments[COMPILER_WORDS + ARGUMENT_MAX + 1] = {NULL};
    if (count == 0) {
        return gmd_fail(error, GMD_BAD_INPUT, "--allocator torch: CXX is set and names nothing");
    }
    memcpy(arguments, words, count * sizeof *words);
    memcpy(arguments + count, options, sizeof options);
    int exit_status = 0;
    gmd_error reason = {""};
    if (spawn_program(arguments, STDERR_FILENO, text, sizeof text, &exit_status, &reason) !=
        GMD_OK) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "--allocator torch: a C++ compiler is needed once, to compile the adapter: "
                        "%s; set CXX",
                        reason.text);
    }
    if (exit_status != 0) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "--allocator torch: %s could not compile the adapter against %.200s "
                        "(status %d): %.300s",
                        arguments[0], r->torch->directory, exit_status, first_error(text));
    }
    return GMD_OK;
}

/* Under a name of its own until it is whole: another gmd may be at the same. */
static gmd_status build(recipe *r, const char *path, gmd_error *error)
{
    char draft[PATH_MAX + 32];
    snprintf(draft, sizeof draft, "%s.%ld", path, (long)getpid());
    gmd_status status = compile(r, draft, error);
    if (status == GMD_OK) {
        status = put_seal(draft, error);
    }
    if (status == GMD_OK && rename(draft, path) != 0) {
        status =
            gmd_fail(error, GMD_FAILED, "%.300s cannot be put in place: %s", path, strerror(errno));
    }
    if (status != GMD_OK) {
        unlink(draft);
    }
    return status;
}

gmd_status gmd_torch_adapter(const gmd_torch *torch, const char *lib_directory, bool tells_progress,
                             char path[PATH_MAX], gmd_error *error)
{
    recipe r;
    char directory[PATH_MAX];
    gmd_status status = write_recipe(&r, torch, lib_directory, error);
    if (status == GMD_OK) {
        status = open_cache(directory, error);
    }
    if (status != GMD_OK) {
        return status;
    }
    int length = snprintf(path, PATH_MAX, "%s/torch-%016" PRIx64 ".so", directory, r.key);
    if (length < 0 || length >= PATH_MAX) {
        return gmd_fail(error, GMD_BAD_INPUT, "the cache folder's name is too long");
    }
    if (is_whole(path)) {
        return GMD_OK;
    }
    if (tells_progress) {
        fprintf(stderr, "gmd: compiling the adapter for %s (once)\n", torch->directory);
    }
    return build(&r, path, error);
}

/* --- the environment --------------------------------------------------------------------- */

gmd_status torch_prepare(const char *conf, gmd_error *error)
{
    static const char *const read_by_torch[] = {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF",
                                                "PYTORCH_HIP_ALLOC_CONF",
                                                "PYTORCH_NO_CUDA_MEMORY_CACHING"};
    for (size_t i = 0; i < sizeof read_by_torch / sizeof *read_by_torch; i++) {
        unsetenv(read_by_torch[i]);
    }
    const char *backend = conf ? strstr(conf, "backend:") : NULL;
    if (!backend) {
        return GMD_OK;
    }
    char setting[64];
    snprintf(setting, sizeof setting, "%.*s", (int)strcspn(backend, ", "), backend);
    return setenv("PYTORCH_CUDA_ALLOC_CONF", setting, 1) == 0
               ? GMD_OK
               : gmd_fail(error, GMD_NO_MEMORY, "no host memory for the environment");
}
