/* stack_frames.c - what a stack means in words. */
#define _GNU_SOURCE /* dladdr */
#include "stacks.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

/* --- text: a line for each frame, FILE:LINE:FUNCTION ------------------------------------- */

/* A file's and a function's name may have colons; what stands between two and is a number is the
 * line. False: there is none. */
static bool split(const char *text, size_t length, stack_frame *frame)
{
    for (size_t i = 0; i < length; i++) {
        size_t end = i + 1;
        uint64_t line = 0;
        while (text[i] == ':' && end < length && isdigit((unsigned char)text[end])) {
            line = line * 10 + (uint64_t)(text[end++] - '0');
        }
        if (end > i + 1 && end < length && text[end] == ':') {
            *frame = (stack_frame){.file = text,
                                   .file_length = i,
                                   .line = line,
                                   .name = text + end + 1,
                                   .name_length = length - end - 1};
            return true;
        }
    }
    return false;
}

void stacks_frames_of_text(const char *text, size_t length, stack_frame_fn *visit, void *context)
{
    for (const char *end = text + length; text < end;) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t line_length = (size_t)((newline ? newline : end) - text);
        stack_frame frame = {.name = text, .name_length = line_length, .file = ""};
        if (line_length) {
            split(text, line_length, &frame);
            visit(context, &frame);
        }
        text += line_length + 1;
    }
}

/* --- return addresses --------------------------------------------------------------------- */

/* The call is before the address that it returns to, which may be another function's already. */
static bool find_code(void *address, Dl_info *info)
{
    return dladdr((void *)((uintptr_t)address - 1), info) && info->dli_fname;
}

/* C++ names are put into words where the process has the means, which libstdc++ brings. */
static char *demangle(const char *symbol)
{
    union {
        void *found;
        char *(*function)(const char *symbol, char *to, size_t *size, int *status);
    } demangler = {dlsym(RTLD_DEFAULT, "__cxa_demangle")};
    int status = 0;
    return demangler.found && strncmp(symbol, "_Z", 2) == 0
               ? demangler.function(symbol, NULL, NULL, &status)
               : NULL;
}

static void visit_code(void *address, stack_frame_fn *visit, void *context)
{
    Dl_info info = {0};
    char offset[64];
    stack_frame frame = {.file = "??", .file_length = 2, .name = offset};
    char *words = NULL;
    uintptr_t base = 0;
    if (find_code(address, &info)) {
        frame.file = info.dli_fname;
        frame.file_length = strlen(info.dli_fname);
        base = (uintptr_t)info.dli_fbase;
    }
    /* A function without a name is told by its offset, which addr2line takes. */
    snprintf(offset, sizeof offset, "%s0x%zx", base ? "+" : "",
             (size_t)((uintptr_t)address - base));
    if (info.dli_sname) {
        words = demangle(info.dli_sname);
        frame.name = words ? words : info.dli_sname;
    }
    frame.name_length = strlen(frame.name);
    visit(context, &frame);
    free(words);
}

/* The library that the allocator is; NULL: it is a part of the program. */
static const void *own_library(void)
{
    Dl_info own = {0}, program = {0};
    return find_code((void *)((uintptr_t)stacks_frames_of_code + 1), &own) &&
                   find_code((void *)(getauxval(AT_ENTRY) + 1), &program) &&
                   own.dli_fbase != program.dli_fbase
               ? own.dli_fbase
               : NULL;
}

/* The innermost frames are the allocator's own, which are of no interest. */
void stacks_frames_of_code(void *const *addresses, size_t count, stack_frame_fn *visit,
                           void *context)
{
    const void *own = own_library();
    Dl_info info;
    size_t i = 0;
    while (own && i < count && find_code(addresses[i], &info) && info.dli_fbase == own) {
        i++;
    }
    for (; i < count; i++) {
        visit_code(addresses[i], visit, context);
    }
}
