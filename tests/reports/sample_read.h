/* sample_read.h - a report's JSON that is read back, or refused. */
#ifndef SAMPLE_READ_H
#define SAMPLE_READ_H

#include "gmd_result_file.h"
#include "sample.h"

/* Reads the report's JSON: what each writer makes of it is the same to the byte. For the caller to
 * free. */
gmd_result_file *sample_read_back(const gmd_report *report);

/* The report's JSON, "r.json", in which `what` is replaced once, is refused with the message. */
void sample_refuse(const gmd_report *report, const char *what, const char *with,
                   const char *message);

#endif
