# free_set.c: each free walks over all that is free.
/^void free_set_insert/,/^}/ {
    /set->block_count++;/ i\
    volatile uint64_t walked = 0;\
    for (block *f = free_set_lower_bound(set, 512, 0); f; f = free_set_after(set, f)) {\
        walked++;\
    }
}
