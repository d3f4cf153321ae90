/* subprocess.h — runs work that may end its process in a child process. LLVM ends the process when memory runs out, and
 * has no way to return a status instead.
 *
 * Why a child: LLVM's fatal-error handlers are one per process, which may use LLVM itself, and they must not return.
 * Leaving them by longjmp would leave LLVM's locks held.
 *
 * Why fork rather than a separate program: the child has the plans in its memory already. A separate program would need
 * a file format for plans, and an executable installed with the library. LLVM never runs in the parent, so its locks
 * are free at the fork, and glibc's malloc is consistent after a fork. The cost is a millisecond and the memory of the
 * pages that the child writes to. */
#pragma once

#include "codegen/codegen.h"

/* Creates `*out_bytes` with malloc. The options are the caller's, but their callbacks may run in another process.
 * Other side effects may be lost. */
typedef mdot_status (*cg_work)(void *user, const cg_options *options, void **out_bytes, size_t *out_size_bytes,
                               mdot_error *err);

/* Runs the work in a child process and returns its bytes, malloc'ed. The options' callbacks run here, in the calling
 * thread. A child that ends without a result gives TOOLCHAIN, or OUT_OF_MEMORY if its output mentions memory or it
 * was killed. The message has the last line that it wrote to stderr. If the child cannot be started, the status is
 * TOOLCHAIN, or OUT_OF_MEMORY for lack of memory. With options->in_process the work runs in this process and may end
 * it. */
mdot_status cg_run_subprocess(cg_work work, void *user, const cg_options *options, void **out_bytes,
                              size_t *out_size_bytes, mdot_error *err);
