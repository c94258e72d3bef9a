#define _GNU_SOURCE /* dladdr */
#include "kernel_parameters.h"

#include "cupti_calls.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <stdlib.h>
#include <string.h>

#define FRAMES_MOST 32
#define PARAMETERS_MOST                                                                            \
    1024 /* 4 KiB of them, 32 KiB since CUDA 12.1, rarely more than a hundred                      \
          */

void kernel_table_free(kernel_table *t)
{
    while (t->first) {
        kernel_info *next = t->first->next;
        free(t->first->name);
        free(t->first);
        t->first = next;
    }
    handle_table_free(&t->by_handle);
}

/* How many; false in *is_known: neither query knows the handle. */
static uint32_t ask(const kernel_table *t, void *function, kernel_parameter *out, bool *is_known)
{
    const parameter_query queries[] = {t->of_function, t->of_kernel};
    for (size_t i = 0; i < 2; i++) {
        size_t offset, bytes;
        uint32_t count = 0;
        int result = -1;
        while (queries[i] && count < PARAMETERS_MOST &&
               (result = queries[i](function, count, &offset, &bytes)) == 0) {
            out[count++] = (kernel_parameter){(uint32_t)offset, (uint32_t)bytes};
        }
        /* A kernel without parameters: the first index is an invalid value, the handle is not. */
        *is_known = count || result == CUDA_INVALID_VALUE;
        if (*is_known) {
            return count;
        }
    }
    return 0;
}

static bool is_same(const kernel_info *info, const char *name, bool is_known,
                    const kernel_parameter *parameters, uint32_t count)
{
    return info->is_known == is_known && info->count == count && strcmp(info->name, name) == 0 &&
           memcmp(info->parameters, parameters, count * sizeof *parameters) == 0;
}

/* The library that asked for the launch: the first one above CUDA's own and the one we are in. "":
 * the program itself, or code that was made at run time. */
static const char *launching_library(void)
{
    static const char *const passed_on[] = {"libcuda.so", "libcudart.so", "libcupti.so", NULL};
    void *frames[FRAMES_MOST];
    int count = backtrace(frames, FRAMES_MOST);
    Dl_info own, info;
    void *own_base = dladdr(__extension__(void *) launching_library, &own) ? own.dli_fbase : NULL;
    for (int i = 0; i < count; i++) {
        if (!dladdr(frames[i], &info) || !info.dli_fname) {
            return "";
        }
        const char *slash = strrchr(info.dli_fname, '/');
        const char *file = slash ? slash + 1 : info.dli_fname;
        bool is_passed_on = info.dli_fbase == own_base;
        for (size_t k = 0; passed_on[k]; k++) {
            is_passed_on = is_passed_on || strncmp(file, passed_on[k], strlen(passed_on[k])) == 0;
        }
        if (!is_passed_on) {
            return file;
        }
    }
    return "";
}

static kernel_info *create(const char *name, const kernel_parameter *parameters, uint32_t count)
{
    kernel_info *info = malloc(sizeof *info + count * sizeof *parameters);
    if (!info) {
        return NULL;
    }
    *info = (kernel_info){
        .name = strdup(name), .trust = kernel_trust_of(launching_library(), name), .count = count};
    memcpy(info->parameters, parameters, count * sizeof *parameters);
    if (!info->name) {
        free(info);
        return NULL;
    }
    return info;
}

/* Kernels that were there before their handles were forgotten are found again by what they are: a
 * program that loads and unloads code for ever (an autotuner) must not fill the memory. The list is
 * gone through only when a handle is new. */
static const kernel_info *look_up(kernel_table *t, void *function, const char *name)
{
    kernel_parameter parameters[PARAMETERS_MOST];
    bool is_known;
    uint32_t count = ask(t, function, parameters, &is_known);
    kernel_info *info = t->first;
    while (info && !is_same(info, name, is_known, parameters, count)) {
        info = info->next;
    }
    if (!info && (info = create(name, parameters, count)) != NULL) {
        info->is_known = is_known;
        info->next = t->first;
        t->first = info;
    }
    if (info) {
        handle_table_set(&t->by_handle, (uint64_t)(uintptr_t)function, info);
    }
    return info;
}

const kernel_info *kernel_table_get(kernel_table *t, void *function, const char *name)
{
    if (!function) {
        return NULL;
    }
    pthread_mutex_lock(&t->lock);
    const kernel_info *info = handle_table_get(&t->by_handle, (uint64_t)(uintptr_t)function);
    if (!info) {
        info = look_up(t, function, name ? name : "kernel");
    }
    pthread_mutex_unlock(&t->lock);
    return info;
}

void kernel_table_forget(kernel_table *t)
{
    pthread_mutex_lock(&t->lock);
    handle_table_free(&t->by_handle);
    pthread_mutex_unlock(&t->lock);
}
