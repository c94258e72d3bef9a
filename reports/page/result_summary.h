/* result_summary.h - what a result of advise, diff or bench comes to, in a sentence. */
#ifndef GMD_REPORTS_PAGE_RESULT_SUMMARY_H
#define GMD_REPORTS_PAGE_RESULT_SUMMARY_H

#include <jansson.h>
#include <stddef.h>

/* `root`: a result whose rows are of the right types. Others of its values may be of any. */
typedef void result_summary(const json_t *root, char *text, size_t size);

result_summary summary_of_advice, summary_of_diff, summary_of_bench, summary_of_diagnosis;

#endif
