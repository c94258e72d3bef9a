/* reference - an allocator that promises PyTorch's algorithm gives the places, the refusals and the
 * statistics of the reference allocator for the same requests. The driver runs them on that one,
 * too, and speaks in this oracle's name (driver/process/second_run.c). */
#include "list.h"

static const char *blind_spot(const gmd_view *view)
{
    if (!(view->allocator.promises & GMD_PROMISE_PYTORCH)) {
        return "the allocator does not promise PyTorch's algorithm (gmd_promises, --promise "
               "pytorch)";
    }
    if (view->workload.has_pool_requests && !view->allocator.is_reference) {
        return "requests go to private pools: PyTorch keeps the memory of any held one, the "
               "reference allocator of captured ones only (pytorch#175015)";
    }
    return view->allocator.is_reference ? "this is the reference allocator"
                                        : view->workload.no_second_run;
}

const gmd_oracle oracle_reference = {
    .entry = ORACLE_ENTRY(reference),
    .blind_spot = blind_spot,
};
