/* gmd_cuda.h agrees with the CUDA toolkit of this machine: values and layouts here, signatures when
 * toolkit_cuda.c is compiled; functions and texts with the toolkit's library, which needs no GPU.
 */
#include "gmd_cuda.h"
#include "gmd_test.h"
#include "toolkit_values.h"

#include <dlfcn.h>

TEST(values_and_layouts_agree)
{
    size_t i = 0;
    for (; gmd_values[i].name && toolkit_values[i].name; i++) {
        assert_string_equal(gmd_values[i].name, toolkit_values[i].name);
        if (gmd_values[i].value != toolkit_values[i].value) {
            fail_msg("%s is %lld in gmd_cuda.h and %lld in the toolkit", gmd_values[i].name,
                     gmd_values[i].value, toolkit_values[i].value);
        }
    }
    assert_true(i > 100);
    assert_null(gmd_values[i].name);
    assert_null(toolkit_values[i].name);
}

static void *toolkit_library(void)
{
    void *library = dlopen(GMD_TOOLKIT_CUDART, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        print_message("SKIPPED: %s\n", dlerror());
        skip();
    }
    return library;
}

TEST(the_real_library_has_every_function)
{
    void *library = toolkit_library();
#define IS_THERE(result, name, parameters, arguments) assert_non_null(dlsym(library, #name));
    GMD_CUDART_FUNCTIONS(IS_THERE)
    GMD_CUDART_TEXT_FUNCTIONS(IS_THERE)
}

TEST(error_names_and_texts_agree)
{
    void *library = toolkit_library();
    const char *(*name_of)(cudaError_t), *(*text_of)(cudaError_t);
    *(void **)&name_of = dlsym(library, "cudaGetErrorName");
    *(void **)&text_of = dlsym(library, "cudaGetErrorString");
#define SAME_TEXT(name, value, text)                                                               \
    assert_string_equal(#name, name_of(name));                                                     \
    assert_string_equal(text, text_of(name));
    GMD_CUDA_ERRORS(SAME_TEXT)
    assert_string_equal(name_of((cudaError_t)123456), "unrecognized error code");
    assert_string_equal(text_of((cudaError_t)123456), "unrecognized error code");
}
