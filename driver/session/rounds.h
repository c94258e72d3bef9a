/* rounds.h - for the oracle `progress`: freed blocks become reusable. The same requests
 * are made again and again, in a child of fork, each round from where everything is freed and all
 * streams are idle. What an allocator holds may grow in the first rounds, and for longer where it
 * gives memory back late; but not in every round until a request is refused that earlier rounds
 * were served, with more memory at hand than several rounds take, all waited for and its cache
 * emptied: what it holds then is lost. */
#ifndef GMD_ROUNDS_H
#define GMD_ROUNDS_H

#include "gmd_session_state.h"

/* The workload is over and nothing was found: once more, many times. */
void session_repeat(gmd_session *session);

#endif
