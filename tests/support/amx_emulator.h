/* amx_emulator.h — runs AMX instructions on processors without AMX. Each instruction raises SIGILL, and the handler
 * performs the operation from Intel's manual. It is slow and supports one thread at a time. */
#pragma once

#include <stdbool.h>

/* Whether the processor and the operating system run AMX-BF16 themselves. Requests the permission. */
bool amx_is_native(void);

/* Installs the handler. Illegal instructions outside AMX still end the program. */
void amx_emulator_install(void);
/* Whether a configuration is loaded, that is, still unreleased. */
bool amx_emulator_is_configured(void);
/* Tile multiplications since the last call. */
long amx_emulator_take_multiplications(void);
