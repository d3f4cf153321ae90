/* spin_x86.h — the x86 variant of spin.h. */
#pragma once

static inline void bs_spin_pause(void) { __builtin_ia32_pause(); }
