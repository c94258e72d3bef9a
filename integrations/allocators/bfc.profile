gmd-profile 1
# BFCAllocator of XLA and TensorFlow (docs/known-allocators.md)
# It knows no streams: the adapter waits for them before a block goes back.
largest 4GiB              # a region takes 8 bytes of the host for each 256 of it
