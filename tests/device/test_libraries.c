/* The libraries as loaded: names, versions, one shared state; and the loader's messages. Links
 * neither the simulator nor its fronts. */
#define _GNU_SOURCE /* dlvsym */
#include "gmd_runtime.h"
#include "gmd_test.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static gmd_runtime rt;

static int open_simulated(void **state)
{
    (void)state;
    gmd_error error;
    gmd_status status = gmd_runtime_open(&rt, GMD_DEVICE_SIM, GMD_TEST_LIBRARIES, &error);
    if (status != GMD_OK) {
        print_error("%s\n", error.text);
    }
    return status != GMD_OK;
}

static void *library(const char *soname)
{
    void *handle = dlopen(soname, RTLD_NOW | RTLD_NOLOAD);
    if (!handle) {
        fail_msg("%s is not loaded under its soname: %s", soname, dlerror());
    }
    if (handle) { /* fail_msg does not return, but the analyser does not know */
        dlclose(handle);
    }
    return handle;
}

TEST(the_runtime_is_there_with_its_control)
{
    assert_int_equal(rt.kind, GMD_DEVICE_SIM);
    assert_non_null(strstr(rt.path, "/sim/libcudart.so.13"));
    int count = 0;
    assert_int_equal(rt.cudaGetDeviceCount(&count), cudaSuccess);
    assert_int_equal(count, 1);
    assert_string_equal(gmd_runtime_error_text(&rt, cudaErrorMemoryAllocation),
                        "cudaErrorMemoryAllocation (out of memory)");
}

TEST(symbols_carry_the_version_of_their_library)
{
    void *thirteen = library("libcudart.so.13"), *twelve = library("libcudart.so.12");
    assert_non_null(dlvsym(thirteen, "cudaMalloc", "libcudart.so.13"));
    assert_null(dlvsym(thirteen, "cudaMalloc", "libcudart.so.12"));
    assert_non_null(dlvsym(twelve, "cudaMalloc", "libcudart.so.12"));
    assert_null(dlvsym(twelve, "cudaMalloc", "libcudart.so.13"));
    assert_non_null(dlsym(library("libcuda.so.1"), "cuMemAlloc_v2"));
}

TEST(each_library_has_every_function)
{
    void *thirteen = library("libcudart.so.13"), *twelve = library("libcudart.so.12");
    void *driver = library("libcuda.so.1");
#define CHECK_RUNTIME(result, name, parameters, arguments)                                         \
    assert_non_null(dlvsym(thirteen, #name, "libcudart.so.13"));                                   \
    assert_non_null(dlvsym(twelve, #name, "libcudart.so.12"));
#define CHECK_DRIVER(result, name, parameters, arguments) assert_non_null(dlsym(driver, #name));
    GMD_CUDART_FUNCTIONS(CHECK_RUNTIME)
    GMD_CUDART_TEXT_FUNCTIONS(CHECK_RUNTIME)
    GMD_CUDA_DRIVER_FUNCTIONS(CHECK_DRIVER)
}

TEST(the_control_api_is_found_through_any_of_them)
{
    static const char *const names[] = {"libcudart.so.13", "libcudart.so.12", "libcuda.so.1"};
    for (int i = 0; i < 3; i++) {
        assert_ptr_equal(dlsym(library(names[i]), "gmd_sim_reset"),
                         *(void *const *)&rt.sim->gmd_sim_reset);
    }
}

TEST(all_libraries_share_one_device)
{
    gmd_sim_config config;
    rt.sim->gmd_sim_default_config(&config);
    assert_int_equal(rt.sim->gmd_sim_reset(&config), 0);
    __typeof__(&cudaMalloc) malloc_12;
    __typeof__(&cuMemFree_v2) free_driver;
    *(void **)&malloc_12 = dlvsym(library("libcudart.so.12"), "cudaMalloc", "libcudart.so.12");
    *(void **)&free_driver = dlsym(library("libcuda.so.1"), "cuMemFree_v2");
    void *first, *second;
    assert_int_equal(rt.cudaMalloc(&first, 512), cudaSuccess);
    assert_int_equal(malloc_12(&second, 512), cudaSuccess);
    assert_ptr_equal(second, (char *)first + 512);
    assert_int_equal(free_driver((uintptr_t)first), CUDA_SUCCESS);
    assert_int_equal(rt.cudaFree(first), cudaErrorInvalidValue);
    assert_int_equal(rt.cudaFree(second), cudaSuccess);
}

TEST(each_runtime_tells_its_version)
{
    __typeof__(&cudaRuntimeGetVersion) version_12;
    *(void **)&version_12 = dlsym(library("libcudart.so.12"), "cudaRuntimeGetVersion");
    int twelve = 0, thirteen = 0;
    assert_int_equal(version_12(&twelve), cudaSuccess);
    assert_int_equal(rt.cudaRuntimeGetVersion(&thirteen), cudaSuccess);
    assert_int_equal(twelve / 1000, 12);
    assert_int_equal(thirteen / 1000, 13);
}

TEST(a_missing_simulator_is_named)
{
    gmd_runtime other;
    gmd_error error;
    assert_int_not_equal(gmd_runtime_open(&other, GMD_DEVICE_SIM, "/no/such/folder", &error),
                         GMD_OK);
    assert_non_null(strstr(error.text, "/no/such/folder/sim/libcudart.so.13"));
}

TEST(the_simulator_is_not_taken_for_a_gpu)
{
    gmd_runtime other;
    gmd_error error;
    setenv("GMD_CUDART", GMD_TEST_LIBRARIES "/sim/libcudart.so.13", 1);
    assert_int_equal(gmd_runtime_open(&other, GMD_DEVICE_CUDA, "", &error), GMD_BAD_INPUT);
    assert_non_null(strstr(error.text, "simulated device"));
    setenv("GMD_CUDART", "/no/such/libcudart.so", 1);
    assert_int_equal(gmd_runtime_open(&other, GMD_DEVICE_CUDA, "", &error), GMD_BAD_INPUT);
    assert_non_null(strstr(error.text, "/no/such/libcudart.so"));
    unsetenv("GMD_CUDART");
}

TEST(a_library_without_a_function_is_refused_by_that_name)
{
    gmd_runtime other;
    gmd_error error;
    setenv("GMD_CUDART", "libm.so.6", 1);
    assert_int_equal(gmd_runtime_open(&other, GMD_DEVICE_CUDA, "", &error), GMD_BAD_INPUT);
    assert_non_null(strstr(error.text, "has no function cudaMalloc"));
    unsetenv("GMD_CUDART");
}

TEST_GROUP(open_simulated, NULL);
