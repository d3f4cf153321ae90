/* spin.h — the pause in a loop that polls a word until another thread writes it.
 *
 * The pause saves power and leaves the core to its other hardware thread. On processors without such an instruction it
 * only keeps the compiler from merging two reads in the loop. */
#pragma once

#if defined(__x86_64__)
#include "base/spin_x86.h"
#else
#include <stdatomic.h>

static inline void bs_spin_pause(void) { atomic_signal_fence(memory_order_seq_cst); }
#endif
