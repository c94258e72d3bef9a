/* retention.h - what lives longer than its iteration: the blocks of one line of requests (one
 * stack; without stacks, one size), and how many bytes of them are there at the end of each
 * iteration. */
#ifndef GMD_DIAGNOSIS_RETENTION_H
#define GMD_DIAGNOSIS_RETENTION_H

#include "gmd_facts.h"

typedef struct retained_group {
    uint32_t stack;        /* 0: no frames were recorded */
    uint64_t requested;    /* of each block, where there is no stack; of the first one, else */
    uint32_t frame;        /* the user's line; GMD_NO_PLACE */
    uint32_t first_born;   /* moment of its first block */
    uint64_t kept;         /* bytes of blocks that outlived the iteration after theirs */
    uint64_t freed;        /* of them, those freed before the job's end */
    uint64_t most;         /* bytes at the end of an iteration, where it was most; with what a line
                              that grows had added before the recording */
    uint64_t added;        /* of it, by a line that grows, in the recording */
    uint64_t blocks;       /* kept and not freed */
    bool is_any_freed;     /* be it at the very end */
    bool is_of_optimizer;  /* allocated by torch.optim; without frames, while it steps */
    bool is_of_other_loop; /* what follows is about the loop that comes after the steps */
    uint64_t grown;        /* bytes by which the last end has more than the first, after warm-up */
    uint32_t compared;     /* pairs of ends that are compared */
    uint32_t rises, falls; /* ends with more, with less than the one before */
    uint64_t risen;        /* bytes, by all rises */
    uint64_t risen_late;   /* likewise, in the second half */
    uint32_t late_rises;   /* how many of the rises are in it */
    uint64_t largest_rise, largest_fall, largest_drop; /* bytes */
    uint32_t drops;       /* times when more goes than an iteration adds */
    uint32_t runs[3];     /* iterations up to the first drop; from one to the next the fewest
                             and the most */
    uint32_t longer_runs; /* drops with more iterations before them than the drop before had */
    uint32_t last_run;    /* after the last drop */
    uint32_t first_rise, last_rise;  /* among those compared */
    bool may_be_slowing;             /* it rises seldom, and what came before the recording, where a
                                        cache would have been filled, is not known */
    uint32_t longest_pause;          /* from a rise to the next one */
    uint32_t last_rise_in;           /* the iteration of the last rise */
    uint64_t replaced;               /* blocks that went after the last rise, as others came */
    uint32_t floors_up, floors_down; /* drops that leave more, or less, than the one before did */
    uint64_t gone;                   /* blocks that went before the job's end */
    uint64_t
        overtaken; /* of them, those that went before a younger one that was not new any more */
    uint64_t oldest_first, youngest_first; /* neighbours of two iterations that went in the same
                                              one, in this order */
    uint32_t freed_in; /* the user's line in which most blocks were freed that had outlived the
                          iteration after theirs; GMD_NO_PLACE */
    uint32_t freed_in_other; /* another line in which some were; GMD_NO_PLACE: there is none */
    uint32_t freed_percent;  /* how many of them were freed there */
    uint32_t freed_inside_percent; /* how many in a library's Python, but an optimizer's */
    bool hides_frees;              /* the stacks of late frees are copies of their allocations' */
    bool is_explained;             /* a class has said what it is */
} retained_group;

typedef struct retention {
    retained_group *groups; /* most kept bytes first */
    size_t count;
    int64_t total_grown[2]; /* bytes of all blocks, of whatever age, by which the last end that is
                               compared has more than the first: of the main loop, of the other */
    int64_t total_grown_late[2]; /* of that, since the one in the middle */
} retention;

/* Whether a group grows from iteration to iteration, to the last, and is not given back. */
bool retained_group_grows(const retained_group *group);

/* Whether a block is among those that it keeps. */
bool retained_group_has(const retained_group *group, const gmd_facts *facts,
                        const gmd_lifetime *lifetime);

/* Whether it rises every so many iterations. */
bool retained_group_is_even(const retained_group *group);

/* `retention` is empty where the iterations are not known. */
gmd_status retention_find(retention *kept, const gmd_facts *facts, gmd_error *error);
void retention_free(retention *kept);

#endif
