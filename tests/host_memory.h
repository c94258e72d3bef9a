/* host_memory.h - refuses requests for the host's memory, one after the other. For programs of
 * which their CMakeLists.txt says so (gmd_refuse_host_memory): in them functions that can refuse
 * are in place of the C library's, for what is linked into the program, not for shared libraries.
 */
#ifndef GMD_TEST_HOST_MEMORY_H
#define GMD_TEST_HOST_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* From now on the nth request (1: the next) is refused, and with `every_later` all after it. */
void begin_refusals(uint64_t nth, bool every_later);
bool end_refusals(void); /* true: it came to one */

uint64_t bytes_asked_for(void); /* since refusals began, in all requests together */

/* Begins refusals, ends them, and gives what their end did. */
typedef bool refusal_case(void *context, uint64_t nth, bool every_later);

/* Refuses each request of a case, alone and with all later ones. */
void sweep_refusals(refusal_case *run, void *context);

#endif
