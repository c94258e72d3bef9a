gmd-profile 1
# ONNX Runtime's StreamAwareBFCArena (docs/known-allocators.md)
largest 4GiB              # a region takes 8 bytes of the host for each 256 of it
streams outlive_blocks    # memory of a stream that is gone is anybody's
other_streams ordered     # an arena knows the stream of the allocation only
pressure keeps            # Shrink is for the caller to call; free memory stays with its stream
