/* Where a real CUDA runtime is looked for, and what is said where there is none that can be used.
 * The runtimes are files of the test's own, which do nothing (foreign_cudart.c). */
#define _GNU_SOURCE
#include "gmd_runtime.h"
#include "gmd_test.h"

#include <dlfcn.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[] = "/tmp/gmd_search_XXXXXX";

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info;
    (void)kind;
    (void)at;
    return remove(path);
}

static int remove_root(void **state)
{
    (void)state;
    return nftw(root, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static int make_root(void **state)
{
    (void)state;
    return mkdtemp(root) ? 0 : -1;
}

void *__real_dlopen(const char *path, int flags);
void *__wrap_dlopen(const char *path, int flags);

/* The machine's own runtimes are not there: neither where the loader looks nor in /usr. */
void *__wrap_dlopen(const char *path, int flags)
{
    char hidden[PATH_MAX];
    if (strncmp(path, root, strlen(root)) != 0) {
        snprintf(hidden, sizeof hidden, "%.500s.hidden", path);
        path = hidden;
    }
    return __real_dlopen(path, flags);
}

/* No place but those below the root that a test names. */
static int clear_environment(void **state)
{
    (void)state;
    static const char *const variables[] = {"GMD_CUDART", "CUDA_HOME", "CUDA_PATH", "VIRTUAL_ENV"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        unsetenv(variables[i]);
    }
    return setenv("PATH", root, 1);
}

FIXTURE(search, clear_environment, NULL);

/* "ROOT/RELATIVE", valid until the fourth call from now. */
static const char *below(const char *relative)
{
    static char paths[4][PATH_MAX];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, PATH_MAX, "%s/%s", root, relative);
    return path;
}

/* A file with the contents of another, in folders that are made for it. */
static void put_file(const char *relative, const void *contents, size_t size)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", below(relative));
    for (char *end = path + strlen(root) + 1; (end = strchr(end, '/')); *end++ = '/') {
        *end = '\0';
        mkdir(path, 0777);
    }
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(contents, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void put_library(const char *relative, const char *library)
{
    static char contents[1 << 20];
    FILE *file = fopen(library, "rb");
    assert_non_null(file);
    size_t size = fread(contents, 1, sizeof contents, file);
    assert_true(size < sizeof contents);
    fclose(file);
    put_file(relative, contents, size);
}

static void put_runtime(const char *relative)
{
    put_library(relative, GMD_TEST_FOREIGN);
}

static void assert_found(const char *relative)
{
    gmd_runtime rt;
    gmd_error error = {""};
    gmd_status status = gmd_runtime_open(&rt, GMD_DEVICE_CUDA, "", &error);
    if (status != GMD_OK) {
        fail_msg("%s", error.text);
    }
    char found[PATH_MAX], expected[PATH_MAX];
    assert_non_null(realpath(rt.path, found));
    assert_non_null(realpath(below(relative), expected));
    assert_string_equal(found, expected);
}

/* --- where it is found ------------------------------------------------------------------- */

TEST_F(search, the_file_that_GMD_CUDART_names_comes_before_all_others)
{
    put_runtime("named/runtime.so");
    put_runtime("named/lib64/libcudart.so.13");
    setenv("CUDA_HOME", below("named"), 1);
    setenv("GMD_CUDART", below("named/runtime.so"), 1);
    assert_found("named/runtime.so");
}

TEST_F(search, a_toolkit_is_found_where_CUDA_HOME_points)
{
    put_runtime("home/lib64/libcudart.so.13");
    setenv("CUDA_HOME", below("home"), 1);
    setenv("CUDA_PATH", below("elsewhere"), 1);
    assert_found("home/lib64/libcudart.so.13");
}

TEST_F(search, a_toolkit_of_CUDA_12_is_found_where_CUDA_PATH_points)
{
    put_runtime("path/lib64/libcudart.so.12");
    setenv("CUDA_HOME", "", 1);
    setenv("CUDA_PATH", below("path"), 1);
    assert_found("path/lib64/libcudart.so.12");
}

TEST_F(search, packages_are_found_in_the_virtual_environment)
{
    const char *file = "venv/lib/python3.12/site-packages/nvidia/cu13/lib/libcudart.so.13";
    put_runtime(file);
    setenv("VIRTUAL_ENV", below("venv"), 1);
    assert_found(file);
}

TEST_F(search, packages_are_found_beside_the_first_python3_of_PATH)
{
    char path[2 * PATH_MAX];
    const char *file = "conda/lib/python3.9/site-packages/nvidia/cuda_runtime/lib/libcudart.so.12";
    put_runtime(file);
    put_file("conda/bin/python3", "", 0);
    snprintf(path, sizeof path, "%s:%s", below("no/such/folder"), below("conda/bin"));
    setenv("VIRTUAL_ENV", "", 1);
    setenv("PATH", path, 1);
    assert_found(file);
}

TEST_F(search, what_cannot_be_loaded_is_passed_over)
{
    put_file("broken/lib64/libcudart.so.13", "no library", 10);
    put_runtime("broken/lib64/libcudart.so.12");
    setenv("CUDA_HOME", below("broken"), 1);
    assert_found("broken/lib64/libcudart.so.12");
}

TEST_F(search, folders_with_names_that_are_too_long_are_passed_over)
{
    static char longest[PATH_MAX + 100], path[2 * PATH_MAX + 200];
    const char *file = "short/lib/python3.11/dist-packages/nvidia/cu13/lib/libcudart.so.13";
    memset(longest, 'x', sizeof longest - 1);
    put_runtime(file);
    put_file("short/bin/python3", "", 0);
    snprintf(path, sizeof path, "%s:%s:%s", longest, below("short/bin"), below("none"));
    setenv("CUDA_HOME", longest, 1);
    setenv("PATH", path, 1);
    assert_found(file);
}

/* --- where it is not --------------------------------------------------------------------- */

TEST_F(search, a_search_in_vain_tells_what_was_tried_and_why_it_failed)
{
    gmd_runtime rt;
    gmd_error error = {""};
    put_file("vain/lib64/libcudart.so.13", "no library", 10);
    setenv("CUDA_HOME", below("vain"), 1);
    unsetenv("PATH");
    assert_int_equal(gmd_runtime_open(&rt, GMD_DEVICE_CUDA, "", &error), GMD_BAD_INPUT);
    assert_non_null(strstr(error.text, "set GMD_CUDART to a libcudart.so file"));
    assert_non_null(strstr(error.text, "libcudart.so.12.hidden: cannot open shared object file"));
    assert_non_null(strstr(error.text, "vain/lib64/libcudart.so.13: "));
}

TEST_F(search, a_runtime_without_a_gpu_is_refused_with_its_own_words)
{
    gmd_runtime rt;
    gmd_error error = {""};
    put_library("bare/libcudart.so", GMD_TEST_FOREIGN_BARE);
    setenv("GMD_CUDART", below("bare/libcudart.so"), 1);
    assert_int_equal(gmd_runtime_open(&rt, GMD_DEVICE_CUDA, "", &error), GMD_BAD_INPUT);
    assert_non_null(strstr(error.text, "no usable GPU"));
    assert_non_null(strstr(error.text, "cudaErrorNoDevice (no CUDA-capable device is detected)"));
}

TEST_F(search, more_reasons_than_a_message_holds_are_cut)
{
    gmd_runtime rt;
    gmd_error error = {""};
    char relative[PATH_MAX];
    char folder[200];
    memset(folder, 'y', sizeof folder - 1);
    folder[sizeof folder - 1] = '\0';
    for (int i = 0; i < 8; i++) {
        snprintf(relative, sizeof relative,
                 "many/lib/python3.%d%s/site-packages/nvidia/cu13/lib/%s", i, folder,
                 "libcudart.so.13");
        put_file(relative, "no library", 10);
    }
    setenv("VIRTUAL_ENV", below("many"), 1);
    unsetenv("PATH");
    assert_int_equal(gmd_runtime_open(&rt, GMD_DEVICE_CUDA, "", &error), GMD_BAD_INPUT);
    assert_non_null(strstr(error.text, "python3.0yyy"));
    assert_null(strstr(error.text, "python3.7yyy"));
}

/* --- in place of the simulated device ---------------------------------------------------- */

TEST_F(search, a_folder_with_a_name_that_is_too_long_holds_no_simulated_device)
{
    gmd_runtime rt;
    gmd_error error = {""};
    static char longest[PATH_MAX];
    memset(longest, 'x', sizeof longest - 1);
    assert_int_equal(gmd_runtime_open(&rt, GMD_DEVICE_SIM, longest, &error), GMD_FAILED);
    assert_non_null(strstr(error.text, "the library folder's name is too long: xxx"));
}

TEST_F(search, libraries_of_the_same_names_are_not_the_simulated_device)
{
    gmd_runtime rt;
    gmd_error error = {""};
    put_runtime("other/sim/libcudart.so.13");
    put_runtime("other/sim/libcudart.so.12");
    put_runtime("other/sim/libcuda.so.1");
    put_runtime("other/sim/libnvidia-ml.so.1");
    assert_int_equal(gmd_runtime_open(&rt, GMD_DEVICE_SIM, below("other"), &error), GMD_FAILED);
    assert_non_null(strstr(error.text, "has no gmd_sim_"));
    assert_non_null(strstr(error.text, "it is not the simulated device of this gmd"));
}

TEST_GROUP(make_root, remove_root);
