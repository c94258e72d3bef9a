gmd-profile 1
# cumo's memory pool (docs/known-allocators.md)
other_streams ordered     # a free knows no other stream
