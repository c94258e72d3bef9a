gmd-profile 1
# CNMeM (docs/known-allocators.md)
streams outlive_allocator # no call takes a registered stream back
other_streams ordered
pressure keeps            # nothing goes back before its end
largest 4611686018427387904 # sizes near 2^64 wrap
