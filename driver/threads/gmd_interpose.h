/* gmd_interpose.h - the C library's own locks, for code of gmd that must not come to a yield point.
 */
#ifndef GMD_INTERPOSE_H
#define GMD_INTERPOSE_H

#include <stdbool.h>

/* False in a build under ThreadSanitizer, whose own versions of these functions must stay in front:
 * there the scheduler's watchdog sees to threads that block. */
bool interpose_is_on(void);

#endif
