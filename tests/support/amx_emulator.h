/* amx_emulator.h — runs the very instructions of AMX kernels where the processor lacks them: each raises SIGILL, and
 * the handler does what Intel's manual says of it. Slow, and for one thread at a time. */
#ifndef AMX_EMULATOR_H
#define AMX_EMULATOR_H

#include <stdbool.h>

/* Whether the processor and the operating system run AMX-BF16 themselves; asks for the permission. */
bool amx_is_native(void);

/* From here on. Instructions that are none of AMX's end the program as they would have. */
void amx_emulator_install(void);
/* Whether a configuration is loaded and not released. */
bool amx_emulator_is_configured(void);
/* Tile products since the last call. */
long amx_emulator_take_products(void);

#endif
