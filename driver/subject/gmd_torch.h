/* gmd_torch.h - the library behind `--allocator torch`: PyTorch's own allocator with the ABI of
 * gmd_abi.h, compiled on this machine from the installed source adapters/torch.cpp against the
 * headers and libraries of the user's PyTorch, and kept in a cache.
 *
 * No shell is involved, and PyTorch is not imported. Thread safety: none of these keeps any state;
 * two processes that build at once do not disturb each other. */
#ifndef GMD_TORCH_H
#define GMD_TORCH_H

#include "gmd_error.h"

#include <limits.h>
#include <stdbool.h>

/* What was found of PyTorch on this machine. */
typedef struct gmd_torch {
    char directory[PATH_MAX];    /* the package, which has include/ and lib/ */
    char cuda_include[PATH_MAX]; /* the CUDA headers */
} gmd_torch;

/* Looks in `directory` where it is not NULL, else in $GMD_TORCH_DIR, else asks python3 (or
 * $GMD_PYTHON) where its torch is. The CUDA headers are those of the pip packages beside it, of
 * $CUDA_HOME, $CUDA_PATH or /usr/local/cuda*. GMD_BAD_INPUT: what is missing, and where it was
 * looked for. */
gmd_status gmd_torch_find(gmd_torch *torch, const char *directory, gmd_error *error);

/* Gives the path of the adapter for this PyTorch, from the cache ($XDG_CACHE_HOME/gmd, else
 * ~/.cache/gmd) or compiled with $CXX (c++ where it is not set). `lib_directory` is gmd's own. The
 * cache knows PyTorch's libraries by path, size and time, and the adapter by its source: a new
 * version of either is compiled anew. */
gmd_status gmd_torch_adapter(const gmd_torch *torch, const char *lib_directory, bool tells_progress,
                             char path[PATH_MAX], gmd_error *error);

/* Before the adapter is loaded: PyTorch reads settings from the environment, and the backend only
 * there. What the environment has is taken out, so that a run depends only on its options, and the
 * backend that `conf` names, if any, is put in. */
gmd_status torch_prepare(const char *conf, gmd_error *error);

#endif
