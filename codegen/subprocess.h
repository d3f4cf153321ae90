/* subprocess.h — work that may end its process, done in a child: LLVM ends the process when memory runs out, and has no way
 * to be asked for a status instead.
 *
 * Why a child: the handlers that LLVM calls first are one for the process, which may use LLVM itself, and must not
 * return; leaving them by longjmp would leave LLVM's locks held. Why by fork, and not a program of its own: plans need
 * not be written and read again, and nothing has to be found on disk. LLVM never runs in the parent, so that no thread
 * holds a lock of it at the fork, and glibc's own malloc is whole after one. It costs a millisecond, and memory for
 * what the child writes to.
 */
#ifndef CG_SUBPROCESS_H
#define CG_SUBPROCESS_H

#include "codegen/codegen.h"

/* Makes `*out_bytes`, malloc'ed. The options are the caller's, but their callbacks may lead to another process. What
 * else it writes to may be lost. */
typedef mdot_status (*cg_work)(void *user, const cg_options *options, void **out_bytes, size_t *out_size_bytes,
                               mdot_error *err);

/* Does the work in a child process and hands out its bytes, malloc'ed; callbacks of the options are called here, in the
 * calling thread. A child that ends without an answer is TOOLCHAIN, or OUT_OF_MEMORY where it said so or was killed,
 * with the last line that it wrote to stderr; so is a child that cannot be started, OUT_OF_MEMORY for want of memory.
 * With options->in_process the work is done in this process, which it may then end. */
mdot_status cg_run_subprocess(cg_work work, void *user, const cg_options *options, void **out_bytes,
                              size_t *out_size_bytes, mdot_error *err);

#endif
