/* hide_control.so - preloaded, it hides the control functions of gmd's simulated libcudart, which
 * is then taken for a real one: what gmd does on a real device is tested where there is none. */
#define _GNU_SOURCE
#include "preloaded.h"

__attribute__((visibility("default"))) void *dlsym(void *restrict handle, const char *restrict name)
{
    return is_control(name) ? NULL : real_dlsym(handle, name);
}
