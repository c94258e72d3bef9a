#include "form.h"

#include <inttypes.h>

static void put_operand(char which, const step *s, const form_names *names, FILE *out)
{
    char text[80];
    switch (which) {
    case 'b':
        fputs(names->block(names->context, s->allocation, text), out);
        break;
    case 's':
        fputs(names->stream(names->context, s->device, s->stream, text), out);
        break;
    case 'o':
        fputs(names->stream(names->context, s->device, s->other, text), out);
        break;
    case 'g':
        fprintf(out, "%" PRIu32, s->other);
        break;
    case 'd':
        fprintf(out, "%u", s->device);
        break;
    case 'n':
        fprintf(out, "%" PRId64, s->number);
        break;
    case 'm':
        fprintf(out, "%d", (int)((s->number + 2) & 255));
        break;
    case 'l':
        fprintf(out, "%" PRIu32, s->life);
        break;
    case 'p':
        fprintf(out, "%" PRIu32, s->pool);
        break;
    case 'f':
        fprintf(out, "%.17g", s->fraction);
        break;
    default:
        fputc(which, out);
    }
}

void form_put(const char *form, const step *s, const form_names *names, FILE *out)
{
    for (const char *c = form; *c; c++) {
        if (*c == '%' && c[1]) {
            put_operand(*++c, s, names, out);
        } else {
            fputc(*c, out);
        }
    }
}
