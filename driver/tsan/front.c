/* front.c - libtsan.so.N: a name only. gcc links ThreadSanitizer's library to what it compiles with
 * -fsanitize=thread; the loader takes this one, which is there already, and the functions come from
 * libgmd_tsan.so. */
#include "gmd_tsan.h"

typedef int front_is_a_name_only; /* ISO C: a file is not empty */
