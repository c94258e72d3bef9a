/* Finding PyTorch, compiling the adapter and keeping it: what is missing is named, and a cache that
 * is damaged is made anew. No PyTorch is needed: an empty package and a stand-in for the compiler
 * are enough. */
#include "gmd_test.h"
#include "gmd_torch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct place { /* a folder with a package, a cache, and a list of compilations */
    char root[64], package[80], cache[80], calls[80];
} place;

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[400];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    for (char *slash = strchr(path + strlen(folder) + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static int open_place(void **state)
{
    place *p = calloc(1, sizeof *p);
    snprintf(p->root, sizeof p->root, "gmd-torch-test-XXXXXX");
    if (!p || !mkdtemp(p->root)) {
        return -1;
    }
    char here[PATH_MAX], cache[PATH_MAX + 100];
    if (!getcwd(here, sizeof here)) {
        return -1;
    }
    snprintf(p->package, sizeof p->package, "%s/torch", p->root);
    snprintf(p->cache, sizeof p->cache, "%s/cache", p->root);
    snprintf(p->calls, sizeof p->calls, "%s/calls", p->root);
    mkdir(p->package, 0700);
    write_file(p->package, "lib/libc10.so", "");
    write_file(p->package, "lib/libc10_cuda.so", "");
    write_file(p->package, "include/c10/cuda/CUDACachingAllocator.h", "");
    write_file(p->root, "nvidia/cu13/include/cuda_runtime_api.h", "");
    write_file(p->root, "nvidia/cu13/include/crt/host_config.h", "");
    snprintf(cache, sizeof cache, "%s/%s", here, p->cache);
    setenv("XDG_CACHE_HOME", cache, 1);
    setenv("CXX", GMD_TEST_COMPILER, 1);
    setenv("GMD_TEST_COMPILED", p->calls, 1);
    unsetenv("GMD_TORCH_DIR");
    *state = p;
    return 0;
}

static int close_place(void **state)
{
    place *p = *state;
    char command[200];
    snprintf(command, sizeof command, "rm -rf '%s'", p->root);
    int status = system(command); /* NOLINT(cert-env33-c): a fixed command of a test */
    free(p);
    return status;
}

FIXTURE(place, open_place, close_place);

static void expect_refusal(const char *directory, const char *part)
{
    gmd_torch torch;
    gmd_error error = {""};
    assert_int_equal(gmd_torch_find(&torch, directory, &error), GMD_BAD_INPUT);
    if (!strstr(error.text, part)) {
        fail_msg("'%s' does not contain '%s'", error.text, part);
    }
}

static int compilations(const place *p)
{
    FILE *file = fopen(p->calls, "re");
    char line[32];
    int count = 0;
    while (file && fgets(line, sizeof line, file)) {
        count++;
    }
    if (file) {
        fclose(file);
    }
    return count;
}

static gmd_status make_adapter(const place *p, char path[PATH_MAX], gmd_error *error)
{
    gmd_torch torch;
    gmd_status status = gmd_torch_find(&torch, p->package, error);
    return status == GMD_OK ? gmd_torch_adapter(&torch, GMD_TEST_LIB_DIR, false, path, error)
                            : status;
}

static void expect_adapter(const place *p, char path[PATH_MAX])
{
    gmd_error error = {""};
    if (make_adapter(p, path, &error) != GMD_OK) {
        fail_msg("%s", error.text);
    }
    assert_int_equal(access(path, R_OK), 0);
}

static void expect_failure(const place *p, const char *part)
{
    char path[PATH_MAX];
    gmd_error error = {""};
    assert_int_equal(make_adapter(p, path, &error), GMD_BAD_INPUT);
    if (!strstr(error.text, part)) {
        fail_msg("'%s' does not contain '%s'", error.text, part);
    }
}

/* --- finding ----------------------------------------------------------------------------- */

TEST_F(place, a_folder_that_is_not_there_is_named)
{
    expect_refusal("/no/such/folder", "--torch-dir /no/such/folder: no such folder");
}

TEST_F(place, the_environment_names_the_folder_where_the_option_does_not)
{
    setenv("GMD_TORCH_DIR", "/nowhere", 1);
    expect_refusal(NULL, "GMD_TORCH_DIR /nowhere: no such folder");
    unsetenv("GMD_TORCH_DIR");
}

TEST_F(place, a_package_without_headers_is_told_by_the_first_that_is_missing)
{
    const place *p = *state;
    char header[200];
    snprintf(header, sizeof header, "%s/include/c10/cuda/CUDACachingAllocator.h", p->package);
    unlink(header);
    expect_refusal(p->package, "has no include/c10/cuda/CUDACachingAllocator.h");
}

TEST_F(place, a_package_without_cuda_is_told_by_the_library_that_is_missing)
{
    const place *p = *state;
    char library[200];
    snprintf(library, sizeof library, "%s/lib/libc10_cuda.so", p->package);
    unlink(library);
    expect_refusal(p->package, "has no lib/libc10_cuda.so: expected the folder of a PyTorch");
}

TEST_F(place, python_without_torch_is_no_pytorch)
{
    setenv("GMD_PYTHON", "true", 1); /* answers nothing */
    expect_refusal(NULL, "true has no module torch); name the folder of its package");
    unsetenv("GMD_PYTHON");
}

TEST_F(place, no_python_is_no_pytorch)
{
    setenv("GMD_PYTHON", "/no/such/python", 1);
    expect_refusal(NULL, "/no/such/python cannot be started");
    unsetenv("GMD_PYTHON");
}

TEST_F(place, headers_of_the_packages_beside_pytorch_come_first)
{
    const place *p = *state;
    gmd_torch torch;
    gmd_error error = {""};
    assert_int_equal(gmd_torch_find(&torch, p->package, &error), GMD_OK);
    assert_non_null(strstr(torch.cuda_include, "/nvidia/cu13/include"));
}

/* The pip package of the CUDA runtime alone: its headers include others that it has not. */
TEST_F(place, headers_that_are_not_whole_are_left_out)
{
    const place *p = *state;
    char header[200];
    snprintf(header, sizeof header, "%s/nvidia/cu13/include/crt/host_config.h", p->root);
    unlink(header);
    write_file(p->root, "cuda/include/cuda_runtime_api.h", "");
    write_file(p->root, "cuda/include/crt/host_config.h", "");
    snprintf(header, sizeof header, "%s/cuda", p->root);
    setenv("CUDA_HOME", header, 1);
    gmd_torch torch;
    gmd_error error = {""};
    assert_int_equal(gmd_torch_find(&torch, p->package, &error), GMD_OK);
    assert_non_null(strstr(torch.cuda_include, "/cuda/include"));
    unsetenv("CUDA_HOME");
}

/* --- compiling --------------------------------------------------------------------------- */

TEST_F(place, an_adapter_is_compiled_once)
{
    const place *p = *state;
    char first[PATH_MAX], second[PATH_MAX];
    expect_adapter(p, first);
    expect_adapter(p, second);
    assert_string_equal(first, second);
    assert_int_equal(compilations(p), 1);
}

TEST_F(place, another_pytorch_in_the_same_folder_gets_an_adapter_of_its_own)
{
    const place *p = *state;
    char first[PATH_MAX], second[PATH_MAX];
    expect_adapter(p, first);
    write_file(p->package, "lib/libc10_cuda.so", "another version");
    expect_adapter(p, second);
    assert_string_not_equal(first, second);
    assert_int_equal(compilations(p), 2);
}

TEST_F(place, a_damaged_adapter_in_the_cache_is_compiled_anew)
{
    const place *p = *state;
    char path[PATH_MAX];
    expect_adapter(p, path);
    FILE *file = fopen(path, "r+e");
    assert_non_null(file);
    fputc('A', file);
    assert_int_equal(fclose(file), 0);
    expect_adapter(p, path);
    assert_int_equal(compilations(p), 2);
}

TEST_F(place, an_adapter_that_was_cut_off_is_compiled_anew)
{
    const place *p = *state;
    char path[PATH_MAX];
    expect_adapter(p, path);
    assert_int_equal(truncate(path, 7), 0);
    expect_adapter(p, path);
    assert_int_equal(compilations(p), 2);
}

TEST_F(place, a_machine_without_a_compiler_is_told_what_to_set)
{
    setenv("CXX", "/no/such/compiler", 1);
    expect_failure(*state,
                   "/no/such/compiler cannot be started: No such file or directory; set CXX");
}

TEST_F(place, a_compiler_that_fails_leaves_nothing_in_the_cache)
{
    const place *p = *state;
    setenv("CXX", "false", 1);
    expect_failure(p, "false could not compile the adapter");
    char folder[200];
    snprintf(folder, sizeof folder, "%s/gmd", p->cache);
    assert_int_equal(rmdir(folder), 0); /* it is empty */
}

TEST_F(place, options_of_the_compiler_are_not_part_of_its_name)
{
    const place *p = *state;
    char path[PATH_MAX];
    setenv("CXX", GMD_TEST_COMPILER " --some-option", 1);
    expect_adapter(p, path);
    assert_int_equal(compilations(p), 1);
}

TEST_F(place, a_cache_that_cannot_be_made_is_named)
{
    setenv("XDG_CACHE_HOME", "/proc/no-folder-here", 1);
    expect_failure(*state, "/proc/no-folder-here/gmd");
}
