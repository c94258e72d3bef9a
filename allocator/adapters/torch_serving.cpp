#include "torch_serving.h"

#include "torch_symbols.h"

serving_functions serving = {gmd_malloc, gmd_free, gmd_block_size, gmd_empty_cache, nullptr, nullptr};

// --- what the helper calls -----------------------------------------------------------------------

// From now on these serve; before the first request.
TORCH_EXPORT void gmd_torch_serve_by(const serving_functions *by)
{
    serving = *by;
}
