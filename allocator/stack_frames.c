#define _GNU_SOURCE /* dladdr, dl_iterate_phdr */
#include "stack_frames.h"

#include "gmd_demangle.h"

#include <ctype.h>
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- text: a line for each frame, FILE:LINE:FUNCTION or @ADDRESS -------------------------- */

/* A file's and a function's name may have colons; what stands between two and is a number is the
 * line. False: there is none. */
static bool split(const char *text, size_t length, stack_frame *frame)
{
    for (size_t i = 0; i < length; i++) {
        size_t end = i + 1;
        uint64_t line = 0;
        while (text[i] == ':' && end < length && isdigit((unsigned char)text[end]) &&
               line < UINT32_MAX) {
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

/* @ and hexadecimal digits; NULL: something else. */
static void *code_of_line(const char *text, size_t length)
{
    uintptr_t code = 0;
    for (size_t i = 1; i < length; i++) {
        int digit = isdigit((unsigned char)text[i])    ? text[i] - '0'
                    : text[i] >= 'a' && text[i] <= 'f' ? text[i] - 'a' + 10
                                                       : -1;
        if (digit < 0 || length > 1 + 2 * sizeof code) {
            return NULL;
        }
        code = code << 4 | (uintptr_t)digit;
    }
    return text[0] == '@' ? (void *)code : NULL;
}

void stacks_frames_of_text(const char *text, size_t length, stack_frame_fn *visit, void *context)
{
    for (const char *end = text + length; text < end;) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t line_length = (size_t)((newline ? newline : end) - text);
        stack_frame frame = {.name = text, .name_length = line_length, .file = ""};
        void *code = line_length ? code_of_line(text, line_length) : NULL;
        if (code) {
            visit(context, &(stack_frame){.code = code});
        } else if (line_length) {
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

void stacks_name_code(void *code, stack_frame_fn *visit, void *context)
{
    Dl_info info = {0};
    char offset[64];
    stack_frame frame = {.file = "??", .file_length = 2, .name = offset};
    char *words = NULL;
    uintptr_t base = 0;
    if (find_code(code, &info)) {
        frame.file = info.dli_fname;
        frame.file_length = strlen(info.dli_fname);
        base = (uintptr_t)info.dli_fbase;
    }
    /* A function without a name is printed as its offset, which addr2line takes. */
    snprintf(offset, sizeof offset, "%s0x%zx", base ? "+" : "", (size_t)((uintptr_t)code - base));
    if (info.dli_sname) {
        words = gmd_demangle(info.dli_sname);
        frame.name = words ? words : info.dli_sname;
    }
    frame.name_length = strlen(frame.name);
    visit(context, &frame);
    free(words);
}

/* Where the library that the allocator is lies; empty: it is a part of the program. */
static struct {
    uintptr_t start, end;
} own;

static int find_own(struct dl_phdr_info *info, size_t size, void *is_library)
{
    uintptr_t here = (uintptr_t)stacks_frames_of_code, start = UINTPTR_MAX, end = 0;
    (void)size;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        uintptr_t to = from + info->dlpi_phdr[i].p_memsz;
        bool is_loaded = info->dlpi_phdr[i].p_type == PT_LOAD;
        start = is_loaded && from < start ? from : start;
        end = is_loaded && to > end ? to : end;
    }
    bool is_own = here >= start && here < end;
    if (is_own && *(bool *)is_library) {
        own.start = start;
        own.end = end;
    }
    *(bool *)is_library = true; /* the program comes first */
    return is_own;
}

static void find_own_library(void)
{
    bool is_library = false;
    dl_iterate_phdr(find_own, &is_library);
}

/* The innermost frames are the allocator's own, which are of no interest. */
void stacks_frames_of_code(void *const *addresses, size_t count, stack_frame_fn *visit,
                           void *context)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_own_library);
    size_t i = 0;
    while (i < count && (uintptr_t)addresses[i] >= own.start && (uintptr_t)addresses[i] < own.end) {
        i++;
    }
    for (; i < count; i++) {
        visit(context, &(stack_frame){.code = addresses[i]});
    }
}
