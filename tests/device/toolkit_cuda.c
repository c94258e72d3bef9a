/* The toolkit's side of the comparison: its values, and the signature of each function. */
#include <cuda.h>
#include <cuda_runtime_api.h>

#include "gmd_cuda_lists.h"
#include "toolkit_values.h"

const toolkit_value toolkit_values[] = TOOLKIT_TABLE;

#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* some users call the older ones */
#define SAME_SIGNATURE(result, name, parameters, arguments)                                        \
    _Static_assert(__builtin_types_compatible_p(__typeof__(name), result parameters),              \
                   #name " has another signature in the toolkit");
GMD_CUDART_FUNCTIONS(SAME_SIGNATURE)
GMD_CUDART_FURTHER_FUNCTIONS(SAME_SIGNATURE)
GMD_CUDART_TEXT_FUNCTIONS(SAME_SIGNATURE)
GMD_CUDA_DRIVER_FUNCTIONS(SAME_SIGNATURE)
