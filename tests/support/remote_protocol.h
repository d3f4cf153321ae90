/* remote_protocol.h — calls of generated code in another process, which may run under an emulator of another processor.
 *
 * The client (remote_code.c) writes a call to the server's standard input: remote_call; for each buffer, remote_buffer
 * and, unless it is fresh, its bytes; then the steps. The server (portability/kernel_server.c) answers with the bytes
 * of the returned buffers. Both are 64-bit and little-endian.
 */
#pragma once

#include <stdint.h>

enum { REMOTE_MOST_BUFFERS = 256 };

typedef struct remote_call {
    char library[128]; /* path of a shared object */
    char function[64]; /* a function of the buffers' addresses and the length; "": the artefact's first function */
    int64_t buffer_count, length;
    int64_t input_count, output_count; /* of an artefact's call, whose buffers are inputs, outputs, weights, scratch */
    int64_t step_count;
} remote_call;

typedef struct remote_buffer {
    int64_t bytes;       /* a multiple of a page, if data_at may be behind it */
    int64_t data_at;     /* offset of the address passed to the code */
    int64_t is_returned; /* 1: the server sends its bytes after the call */
    int64_t fill;        /* -1: the client sends the bytes; otherwise, the value of each byte */
} remote_buffer;

typedef struct remote_step { /* fields of mdot_abi_call */
    int64_t kernel_begin, kernel_end, share_begin, share_end, worker;
} remote_step;
