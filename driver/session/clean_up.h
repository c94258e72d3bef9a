/* clean_up.h - what is live is freed. */
#ifndef GMD_CLEAN_UP_H
#define GMD_CLEAN_UP_H

#include "gmd_session_state.h"

/* Frees what is live, as its owners would, each free judged. */
void free_everything(gmd_session *session);

#endif
