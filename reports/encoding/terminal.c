#include "gmd_terminal.h"

#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { UNKNOWN_COLUMNS = 80, LEAST_COLUMNS = 40 };

static bool user_has_utf8(void)
{
    locale_t users = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    if (!users) {
        return false;
    }
    bool is_utf8 = strcmp(nl_langinfo_l(CODESET, users), "UTF-8") == 0;
    freelocale(users);
    return is_utf8;
}

/* A terminal that tells none, or hardly any, is taken for one of the usual width. */
static int columns_of(FILE *out)
{
    struct winsize size;
    if (!isatty(fileno(out))) {
        return 0;
    }
    bool is_told = ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col >= LEAST_COLUMNS;
    return is_told ? size.ws_col : UNKNOWN_COLUMNS;
}

gmd_terminal gmd_terminal_for(FILE *out, bool quiet)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    bool wants_color = !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
    bool is_terminal = isatty(fileno(out));
    return (gmd_terminal){.color = wants_color && is_terminal,
                          .utf8 = user_has_utf8(),
                          .quiet = quiet,
                          .columns = columns_of(out)};
}
