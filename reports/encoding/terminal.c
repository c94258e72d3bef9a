#include "gmd_terminal.h"

#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TERMINAL_COLUMNS = 80 };

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

gmd_terminal gmd_terminal_for(FILE *out, bool quiet)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    bool wants_color = !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
    bool is_terminal = isatty(fileno(out));
    return (gmd_terminal){.color = wants_color && is_terminal,
                          .utf8 = user_has_utf8(),
                          .quiet = quiet,
                          .columns = is_terminal ? TERMINAL_COLUMNS : 0};
}
