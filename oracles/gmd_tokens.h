/* gmd_tokens.h - parties of a verdict out of what others say or number: the part of it that is the
 * same from run to run. Thread safety: pure functions. */
#ifndef GMD_TOKENS_H
#define GMD_TOKENS_H

#include "gmd_kind.h"

#include <stdint.h>

/* What identifies an allocator's own words (gmd_last_error): their first line with its numbers as
 * '*', of an assertion of PyTorch's the condition. */
void gmd_error_token(const char *text, char token[GMD_PARTY_VALUE]);

/* "SIGSEGV"; the number of a signal that it does not know. */
enum { GMD_SIGNAL_TOKEN = 12 };
void gmd_signal_token(int number, char token[GMD_SIGNAL_TOKEN]);

/* "alloc": the first word of a request as a line of a .gmd file. */
enum { GMD_REQUEST_TOKEN = 24 };
void gmd_request_token(const char *request, char token[GMD_REQUEST_TOKEN]);

/* A call as a message names it: "cudaFree(0x1000)", "cudaMemset(0x1000, 5 B)"; by its name alone
 * where neither an address nor a size is known of it. */
enum { GMD_CALL_TEXT = 128 };
const char *gmd_call_text(const char *function, uint64_t address, uint64_t size,
                          char text[GMD_CALL_TEXT]);

#endif
