/* remote_code.h — runs generated code for AArch64 in portability/kernel_server.c under an emulator, for cg_harness.c.
 *
 * The environment variable MDOT_TEST_EMULATOR is the shell command for the server. If it is set, the tests' targets are
 * AArch64 alone. The first call starts the server, which ends with the program. */
#pragma once

#include "tests/support/remote_protocol.h"

#include <stdbool.h>
#include <stddef.h>

/* Is MDOT_TEST_EMULATOR set? */
bool remote_is_used(void);

/* One call buffer: the memory for remote_buffer.bytes from `bytes` on, which receives a result. */
typedef struct remote_memory {
    remote_buffer about;
    void *bytes; /* NULL if it is filled and not returned */
} remote_memory;

/* Fails the running test if the server ends. */
void remote_run(const remote_call *call, const remote_memory *buffers, const remote_step *steps);
