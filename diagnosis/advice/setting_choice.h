/* setting_choice.h - settings of PyTorch's allocator as they are searched through: one value for
 * each option that matters, and which values are worth a trial for a job. */
#ifndef GMD_ADVICE_SETTING_CHOICE_H
#define GMD_ADVICE_SETTING_CHOICE_H

#include "gmd_error.h"
#include "job_steps.h"
#include "replay_trial.h"

typedef enum setting_option {
    OPTION_EXPANDABLE,    /* 1: on */
    OPTION_MAX_SPLIT,     /* MiB */
    OPTION_GC,            /* per cent of the limit */
    OPTION_ROUNDUP,       /* divisions */
    OPTION_LARGE_SEGMENT, /* MiB */
    OPTION_KINDS
} setting_option;

typedef struct setting_choice {
    uint32_t values[OPTION_KINDS]; /* 0: PyTorch's default */
} setting_choice;

enum { VALUES_MAX = 12 };

/* Values of each option that the job can tell apart. */
typedef struct setting_values {
    uint32_t items[OPTION_KINDS][VALUES_MAX];
    size_t counts[OPTION_KINDS];
    uint32_t *sizes; /* of requests that max_split_size_mb concerns, in MiB, ascending, each once */
    size_t size_count;
} setting_values;

/* `has_limit`: there is a memory fraction, without which no garbage is collected. */
gmd_status setting_values_make(setting_values *values, const job_steps *steps, bool has_limit,
                               gmd_error *error);
void setting_values_free(setting_values *values);

/* As PYTORCH_CUDA_ALLOC_CONF has it; "" for the defaults. */
void setting_choice_text(const setting_choice *choice, char conf[TRIAL_CONF]);
unsigned setting_choice_options(const setting_choice *choice); /* that are not the default */

/* Whether an option does anything beside the others: expandable segments are not split by size, and
 * no garbage is collected of them. */
bool setting_choice_is_sensible(const setting_choice *choice);

#endif
