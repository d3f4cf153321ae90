/* remote_code.h — runs generated code for AArch64 in portability/kernel_server.c under an emulator, for cg_harness.c.
 *
 * The environment variable MDOT_TEST_EMULATOR is the shell command that starts the server. If it is set, the tests'
 * targets are those of AArch64 alone. The server is started by the first call, and ends with the program.
 */
#ifndef MDOT_TESTS_REMOTE_CODE_H
#define MDOT_TESTS_REMOTE_CODE_H

#include "tests/support/remote_protocol.h"

#include <stdbool.h>
#include <stddef.h>

/* Is MDOT_TEST_EMULATOR set? */
bool remote_is_used(void);

/* One buffer of a call: the memory of remote_buffer.bytes from `bytes` on, into which a result is received. */
typedef struct remote_memory {
    remote_buffer about;
    void *bytes; /* NULL if it is filled and not returned */
} remote_memory;

/* Fails the running test if the server ends. */
void remote_run(const remote_call *call, const remote_memory *buffers, const remote_step *steps);

#endif
