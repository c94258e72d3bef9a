gmd-profile 1
# thrust::mr::disjoint_synchronized_pool_resource (docs/known-allocators.md)
# It knows no streams: the adapter waits for them before a block goes back.
