/* check_end.h - the state in which a history ends. */
#ifndef GMD_CHECK_END_H
#define GMD_CHECK_END_H

#include "checker.h"

/* Compares what each device holds at the end. */
gmd_status check_end_state(checker *c, gmd_error *error);

#endif
