#include "gmd_cuda.h"

#include "toolkit_values.h"

const toolkit_value gmd_values[] = TOOLKIT_TABLE;
