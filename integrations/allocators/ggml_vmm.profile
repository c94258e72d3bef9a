gmd-profile 1
# The pool of virtual memory of ggml's CUDA backend (docs/known-allocators.md)
alignment 128
zero_bytes outside        # the first request of a pool is not for 0 bytes, says an assertion
largest 30GiB             # a pool has 32 GiB of addresses
streams outlive_allocator # a pool belongs to a stream of a context
other_streams ordered     # a pool knows its own stream only
pool fixed
pressure keeps            # a pool grows, and gives back nothing
failing_calls outside     # what was created and could not be mapped is lost
