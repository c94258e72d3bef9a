/* One CUDA runtime in the process, and it is the one that gmd has chosen. */
#include "gmd_runtime.h"
#include "gmd_subject.h"
#include "gmd_test.h"
#include "gmd_torch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static gmd_status open_allocator(const char *spec, const char *adapter, gmd_error *error)
{
    static gmd_runtime rt;
    static gmd_subject subject;
    const gmd_subject_source source = {
        .spec = spec, .lib_directory = GMD_TEST_LIB_DIR, .torch_adapter = adapter};
    if (gmd_runtime_open(&rt, GMD_DEVICE_SIM, GMD_TEST_LIB_DIR, error) != GMD_OK) {
        fail_msg("%s", error->text);
    }
    return gmd_subject_open(&subject, &source, error);
}

/* Whatever PyTorch's libraries name as their search path (DT_RPATH), what is mapped is simulated.
 */
TEST(pytorch_gets_the_simulated_runtime)
{
    gmd_torch torch;
    char adapter[PATH_MAX], line[PATH_MAX + 200];
    gmd_error error = {""};
    if (!getenv("GMD_TORCH_DIR")) {
        print_message("skipped, no PyTorch: GMD_TORCH_DIR is not set\n");
        skip();
    }
    if (gmd_torch_find(&torch, NULL, &error) != GMD_OK ||
        gmd_torch_adapter(&torch, GMD_TEST_LIB_DIR, false, adapter, &error) != GMD_OK ||
        open_allocator("torch", adapter, &error) != GMD_OK) {
        fail_msg("%s", error.text);
    }
    FILE *maps = fopen("/proc/self/maps", "re");
    assert_non_null(maps);
    int simulated = 0, pytorch = 0;
    while (fgets(line, sizeof line, maps)) {
        pytorch += strstr(line, "/libc10_cuda.so") != NULL;
        if (strstr(line, "/libcudart") || strstr(line, "/libcuda.so")) {
            assert_non_null(strstr(line, "/sim/lib"));
            simulated++;
        }
    }
    fclose(maps);
    assert_true(simulated > 0 && pytorch > 0);
}

/* Last: what it loads stays in the process. */
TEST(an_allocator_that_brings_a_runtime_of_its_own_is_refused)
{
    gmd_error error = {""};
    assert_int_equal(open_allocator(GMD_TEST_STRANGER, NULL, &error), GMD_BAD_INPUT);
    assert_non_null(strstr(error.text, "libcudart.so.11.0"));
    assert_non_null(strstr(error.text, "past the simulated device"));
}
