/* setting_search.h - the settings that a job needs least memory with, or those that the user wants
 * compared. */
#ifndef GMD_ADVICE_SETTING_SEARCH_H
#define GMD_ADVICE_SETTING_SEARCH_H

#include "crew.h"
#include "setting_choice.h"

typedef struct tried_setting {
    setting_choice choice; /* where it was searched for */
    bool is_given; /* the recorded one, the default, the user's: it is reported in any case */
    trial trial;
} tried_setting;

typedef struct setting_search {
    const crew *crew;
    trial_memory memory; /* that the job has in the trials to come */
    tried_setting *items;
    size_t count, capacity;
    uint32_t replays;
} setting_search;

/* Tries settings that are given. Those that the allocator refuses are GMD_BAD_INPUT. */
gmd_status search_given(setting_search *s, const char *const *confs, size_t count,
                        gmd_error *error);

/* Searches through values and combinations: from the defaults on, those that go well are varied
 * further. */
gmd_status search_all(setting_search *s, gmd_error *error);

/* What was tried, under the memory that is asked about: best first; each that is left has its
 * smallest memory looked for. The simplest of settings that do the same is left, and `most` of
 * those that were not given. */
gmd_status search_settle(setting_search *s, const trial_memory *memory, size_t most,
                         gmd_error *error);
void search_free(setting_search *s);

#endif
