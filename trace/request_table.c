#include "gmd_request_table.h"

/* Lists of less than GMD_REQUEST_FIELDS are filled up with NONE. */
#define FIELDS(...) FIELDS_FILLED(__VA_ARGS__, NONE, NONE, NONE, NONE, NONE)
#define FIELDS_FILLED(a, b, c, d, e, ...)                                                          \
    .fields = {GMD_FIELD_##a, GMD_FIELD_##b, GMD_FIELD_##c, GMD_FIELD_##d, GMD_FIELD_##e},         \
    .field_set = (GMD_FIELD_BIT(GMD_FIELD_##a) | GMD_FIELD_BIT(GMD_FIELD_##b) |                    \
                  GMD_FIELD_BIT(GMD_FIELD_##c) | GMD_FIELD_BIT(GMD_FIELD_##d) |                    \
                  GMD_FIELD_BIT(GMD_FIELD_##e)) &                                                  \
                 ~GMD_FIELD_BIT(GMD_FIELD_NONE)
#define WEIGHTS(in_sequences, left_out, inserted)                                                  \
    .weight = (in_sequences), .rarity = (left_out), .record_weight = (inserted)
#define ROW(op, name, field_list, needed, trait_set, step, weights)                                \
    [GMD_OP_##op] = {.word = (name),                                                               \
                     .needs = (needed),                                                            \
                     .traits = (trait_set),                                                        \
                     .pool_step = GMD_POOL_STEP_##step,                                            \
                     FIELDS field_list,                                                            \
                     WEIGHTS weights},

const gmd_request_row gmd_request_rows[GMD_OP_COUNT] = {GMD_REQUEST_TABLE(ROW)};
