/* input_tables.c - what the codes of an input stand for. Entries keep their places for good. */
#include "gmd_input_format.h"

const uint64_t gmd_input_capacities[] = {
    0,
    16 * GMD_MIB,
    32 * GMD_MIB,
    40 * GMD_MIB,
    64 * GMD_MIB,
    100 * GMD_MIB,
    128 * GMD_MIB,
    256 * GMD_MIB,
    512 * GMD_MIB,
    1 * GMD_GIB,
    20 * GMD_MIB,
    48 * GMD_MIB,
    80 * GMD_MIB,
    2 * GMD_GIB,
    8 * GMD_GIB,
    80 * GMD_GIB,
};
const uint32_t gmd_input_capacity_count =
    sizeof gmd_input_capacities / sizeof *gmd_input_capacities;

/* Those of gmd_profile_confs and others that change how blocks are chosen and rounded. */
const char *const gmd_input_confs[] = {
    NULL,
    "expandable_segments:True",
    "max_split_size_mb:20",
    "garbage_collection_threshold:0.6",
    "roundup_power2_divisions:4",
    "max_split_size_mb:32,garbage_collection_threshold:0.8",
    "expandable_segments:True,max_split_size_mb:20",
    "expandable_segments:True,garbage_collection_threshold:0.6",
    "max_split_size_mb:64",
    "garbage_collection_threshold:0.2",
    "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]",
    "expandable_segments:True,roundup_power2_divisions:8",
    "max_non_split_rounding_mb:32,max_split_size_mb:24",
    "per_process_memory_fraction:0.5",
};
const uint32_t gmd_input_conf_count = sizeof gmd_input_confs / sizeof *gmd_input_confs;

const uint64_t gmd_input_usual_sizes[] = {512,         4096,         1 * GMD_MIB,
                                          2 * GMD_MIB, 10 * GMD_MIB, 20 * GMD_MIB};
const uint32_t gmd_input_usual_size_count =
    sizeof gmd_input_usual_sizes / sizeof *gmd_input_usual_sizes;

/* Sums with them wrap around, or do not fit what addresses are. */
const uint64_t gmd_input_huge_sizes[] = {
    UINT64_MAX,           UINT64_MAX - 510,
    UINT64_MAX - 511,     UINT64_MAX - 2 * GMD_MIB + 1,
    UINT64_C(1) << 63,    INT64_MAX,
    UINT64_C(1) << 48,    UINT64_C(1) << 40,
    UINT64_MAX - GMD_MIB, UINT64_MAX / 2 - 511,
};
const uint32_t gmd_input_huge_size_count =
    sizeof gmd_input_huge_sizes / sizeof *gmd_input_huge_sizes;

const int64_t gmd_input_steps[16] = {0,
                                     0,
                                     0,
                                     -1,
                                     1,
                                     -512,
                                     512,
                                     0,
                                     -511,
                                     511,
                                     -(int64_t)GMD_MIB,
                                     (int64_t)GMD_MIB,
                                     -2 * (int64_t)GMD_MIB,
                                     2 * (int64_t)GMD_MIB,
                                     -20 * (int64_t)GMD_MIB,
                                     0};
