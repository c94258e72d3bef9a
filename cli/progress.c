#include "progress.h"

#include <stdio.h>

#define TOO_SOON 0.5 /* seconds: what the first instants promise is not what comes */

const char *cli_time_left(double done, double all, double seconds, char text[CLI_LEFT_BYTES])
{
    text[0] = '\0';
    if (!(all > 0) || !(done > 0) || done > all || seconds < TOO_SOON) {
        return text;
    }
    double left = seconds * (all - done) / done;
    if (left < 100) {
        snprintf(text, CLI_LEFT_BYTES, ", %.0f s left", left);
    } else if (left < 100 * 60) {
        snprintf(text, CLI_LEFT_BYTES, ", %.0f min left", left / 60);
    } else {
        snprintf(text, CLI_LEFT_BYTES, ", %.1f h left", left / 3600);
    }
    return text;
}
