/* gmd_store.h - runs kept in a SQLite file, to be compared over time (`--store FILE`, `gmd report
 * --history FILE`).
 *
 * The tables are a contract with whoever queries the file: docs/reports.md. Several processes may
 * add to one file. */
#ifndef GMD_REPORTS_STORE_H
#define GMD_REPORTS_STORE_H

#include "gmd_report.h"

#include <time.h>

/* Adds the report as one run, or nothing. Makes the file if there is none. GMD_BAD_INPUT: it is
 * there and is no store. */
gmd_status gmd_store_add(const char *path, const gmd_report *report, time_t when, gmd_error *error);

/* Whether gmd_store_add() would find a store at `path`, or no file, or an empty one. Changes
 * nothing, but for what an interrupted writer left, which is taken back. */
gmd_status gmd_store_check(const char *path, gmd_error *error);

/* The history of each workload on each allocator and device: its last `most` runs, the newest at
 * the end, with what changed from one to the next. GMD_BAD_INPUT: there is no such store. */
gmd_status gmd_store_history(const char *path, size_t most, FILE *out, gmd_error *error);

#endif
