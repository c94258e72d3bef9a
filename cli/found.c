#include "found.h"

#include "gmd_clock.h"
#include "gmd_report_text.h"
#include "gmd_status_line.h"
#include "gmd_terminal.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* In one piece, for several processes of a campaign may tell at the same time. */
static void write_line(FILE *out, const cli_found *to, const gmd_finding *finding)
{
    char *line = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&line, &size);
    if (!memory) {
        return;
    }
    if (finding->unwritten[0]) {
        fprintf(memory, "gmd %s: a case of %s could not be written: ", to->command,
                finding->violation.oracle);
        gmd_utf8_put_line(finding->unwritten, memory);
    } else {
        char moment[GMD_MOMENT_TEXT];
        int at =
            fprintf(memory, "found after %.1f s: %s, %s: ", gmd_clock_s() - to->start,
                    finding->violation.oracle, gmd_violation_moment(&finding->violation, moment));
        gmd_put_flowing(memory, gmd_terminal_for(out, false), 2, &at, finding->violation.message);
    }
    putc('\n', memory);
    if (fclose(memory) == 0) {
        fwrite(line, 1, size, out);
        fflush(out);
    }
    free(line);
}

void cli_tell_found(void *listener, const gmd_finding *finding)
{
    const cli_found *to = listener;
    bool is_error = finding->unwritten[0];
    if (to->options->quiet && !is_error) {
        return;
    }
    if (to->options->run.process.shows_progress && isatty(STDERR_FILENO)) {
        fputs(GMD_STATUS_CLEAR, stderr);
    }
    write_line(is_error || cli_stdout_reports(to->options) ? stderr : stdout, to, finding);
}
