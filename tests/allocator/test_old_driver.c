/* A driver that does not have all functions, as one of CUDA 12.4: what needs them is refused. The
 * linker puts the function below in place of the search for them. */
#include "allocator_test.h"

#include "gmd_cuda_scope.h"

#include <string.h>

static const char *missing; /* of the driver's functions */

void *__real_cuda_driver_function(const char *name, unsigned version);
__attribute__((visibility("default"))) void *__wrap_cuda_driver_function(const char *name,
                                                                         unsigned version);

void *__wrap_cuda_driver_function(const char *name, unsigned version)
{
    return strcmp(name, missing) == 0 ? NULL : __real_cuda_driver_function(name, version);
}

/* As long as one is missing they are all looked for again. */
TEST_F(bench, without_one_of_its_functions_there_are_no_expandable_segments)
{
    static const char *const names[] = {"cuMemAddressReserve", "cuMemAddressFree", "cuMemCreate",
                                        "cuMemRelease",        "cuMemMap",         "cuMemUnmap",
                                        "cuMemSetAccess"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        missing = names[i];
        bench b = open_bench(GMD_GIB, "expandable_segments:True");
        assert_int_equal(take(&b, 512), 0);
        close_bench(&b);
    }
}

/* The driver is asked once in a process: this is the only test that lends memory. */
TEST_F(bench, without_a_look_at_all_work_no_memory_is_lent)
{
    missing = "cuCtxRecordEvent";
    gmd_error error = {""};
    bench b = open_bench(GMD_GIB, "expandable_segments:True");
    take(&b, 512);
    assert_int_equal(gmd_allocator_yield_memory(b.a, 0, &error), GMD_FAILED);
    assert_non_null(strstr(error.text, "CUDA 12.5"));
}
