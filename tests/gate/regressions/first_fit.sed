# blocks.c: the free block at the lowest address, rather than the smallest one that fits.
/^block \*\*blocks_find/,/^}/ {
    /block \*\*found = free_set_find/ a\
    for (block **other = found; other;\
         other = free_set_find(set, (*other)->size, (*other)->address + 1)) {\
        found = (*other)->address < (*found)->address ? other : found;\
    }
}
