/* The management library of the simulated device: what PyTorch asks it. */
#include "gmd_test.h"

#include <dlfcn.h>
#include <string.h>

enum { NVML_SUCCESS = 0, NVML_ERROR_INVALID_ARGUMENT = 2, NVML_ERROR_NOT_SUPPORTED = 3 };

typedef struct fabric_info { /* nvmlGpuFabricInfoV_t */
    unsigned int version;
    unsigned char cluster[16];
    int status;
    unsigned int clique;
    unsigned char state;
    unsigned int health;
} fabric_info;

static void *library;

static int open_library(void **state)
{
    (void)state;
    library = dlopen(GMD_TEST_LIBRARIES "/sim/libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    int (*init)(void) = NULL;
    if (library) {
        *(void **)&init = dlsym(library, "nvmlInit_v2");
    }
    return !init || init() != NVML_SUCCESS;
}

#define FIND(variable, name)                                                                       \
    do {                                                                                           \
        *(void **)&(variable) = dlsym(library, name);                                              \
        assert_non_null(dlsym(library, name));                                                     \
    } while (0)

static void *any_device(void)
{
    int (*find)(const char *, void **);
    void *device = NULL;
    FIND(find, "nvmlDeviceGetHandleByPciBusId_v2");
    assert_int_equal(find("0000:01:00.0", &device), NVML_SUCCESS);
    return device;
}

TEST(a_device_is_found_by_its_bus_and_only_with_a_place_for_it)
{
    int (*find)(const char *, void **);
    void *device = NULL;
    FIND(find, "nvmlDeviceGetHandleByPciBusId_v2");
    assert_non_null(any_device());
    assert_int_equal(find(NULL, &device), NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(find("0000:01:00.0", NULL), NVML_ERROR_INVALID_ARGUMENT);
    assert_null(device);
}

TEST(its_driver_is_that_of_the_simulated_device)
{
    void *driver = dlopen(GMD_TEST_LIBRARIES "/sim/libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    int (*managed)(int *), (*driven)(int *), here = 0, there = 0;
    FIND(managed, "nvmlSystemGetCudaDriverVersion_v2");
    assert_non_null(driver);
    *(void **)&driven = dlsym(driver, "cuDriverGetVersion");
    assert_int_equal(managed(&here), NVML_SUCCESS);
    assert_int_equal(driven(&there), 0);
    assert_int_equal(here, there);
}

TEST(no_other_process_runs_on_a_device)
{
    int (*processes)(void *, unsigned int *, void *);
    unsigned int count = 7;
    FIND(processes, "nvmlDeviceGetComputeRunningProcesses");
    assert_int_equal(processes(any_device(), &count, NULL), NVML_SUCCESS);
    assert_int_equal(count, 0);
}

TEST(a_device_has_no_links)
{
    int (*type_of)(void *, unsigned int, int *), (*place_of)(void *, unsigned int, void *);
    int type = 0;
    char place[64];
    FIND(type_of, "nvmlDeviceGetNvLinkRemoteDeviceType");
    FIND(place_of, "nvmlDeviceGetNvLinkRemotePciInfo_v2");
    assert_int_equal(type_of(any_device(), 0, &type), NVML_ERROR_NOT_SUPPORTED);
    assert_int_equal(type, 255); /* NVML_NVLINK_DEVICE_TYPE_UNKNOWN */
    assert_int_equal(place_of(any_device(), 0, place), NVML_ERROR_NOT_SUPPORTED);
}

TEST(a_device_is_in_no_fabric)
{
    int (*ask)(void *, fabric_info *);
    fabric_info info;
    memset(&info, 0xAA, sizeof info);
    info.version = 0x02000024;
    FIND(ask, "nvmlDeviceGetGpuFabricInfoV");
    assert_int_equal(ask(any_device(), &info), NVML_SUCCESS);
    assert_int_equal(info.version, 0x02000024);
    assert_int_equal(info.state, 0); /* NVML_GPU_FABRIC_STATE_NOT_SUPPORTED */
    assert_int_equal(info.clique, 0);
}

TEST_GROUP(open_library, NULL);
