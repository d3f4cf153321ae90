/* object.h — an LLVM module as an object file. */
#pragma once

#include "codegen/codegen.h"
#include <llvm-c/Core.h>

/* Adds symbols to a module after optimisation, which need not see them. */
typedef void (*cg_finish)(void *user);

/* Verifies (in MDOT_VERIFY builds), optimises, finishes (unless NULL) and assembles a module of any levels of the
 * machine into one relocatable object, malloc'ed. options may be NULL. Returns TOOLCHAIN with LLVM's own message. */
mdot_status cg_assemble(LLVMModuleRef module, const cg_machine *machine, const cg_options *options, cg_finish finish,
                        void *user, void **out_object, size_t *out_bytes, mdot_error *err);

/* For example "19.1.7". */
const char *cg_llvm_version(void);
