/* interruption.h - what signals do to gmd.
 *
 * Ctrl-C, SIGTERM and SIGHUP end a command that awaits them in good order: with what was found
 * until then. The second one ends it at once, a quarter of a second later or more, as the first
 * does with other commands. Either way no temporary file is left. A file that has grown too large
 * is a write that fails. */
#ifndef GMD_CLI_INTERRUPTION_H
#define GMD_CLI_INTERRUPTION_H

#include <signal.h>

/* Before anything else. A SIGHUP that is ignored (nohup) stays so. */
void cli_signals_begin(void);

/* From now on the first signal only changes what is pointed to. */
const volatile sig_atomic_t *cli_interruption_awaited(void);

#endif
