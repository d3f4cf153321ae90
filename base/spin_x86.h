/* spin_x86.h — the x86 variant of spin.h. */
#ifndef BS_SPIN_X86_H
#define BS_SPIN_X86_H

static inline void bs_spin_pause(void) { __builtin_ia32_pause(); }

#endif
