gmd-profile 1
# The legacy pool of ggml's CUDA backend (docs/known-allocators.md)
streams outlive_allocator # a pool belongs to a stream of a context
other_streams ordered     # a pool knows its own stream only
pressure keeps            # a pool gives back its own buffers only, and not another's
