/* object.c — LLVM module → relocatable object: the last step of CPU code generation.
 *
 * The emitters' IR is final except for cheap optimisations: common sub-expressions, loop invariants, strength
 * reduction of addresses. Therefore O1 runs, with the vectorisers and the unroller off. It was measured to be as
 * fast as O3 on every kernel, at a quarter of the compile time. Instruction selection stays at its default level,
 * because a lower level halves the kernels' speed.
 */

#include "codegen/cpu/object.h"

#include <llvm-c/Analysis.h> // LLVMVerifyModule, with MDOT_VERIFY
#include <llvm-c/Error.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Copies LLVM's message into the error and frees it. */
static mdot_status toolchain_failure(const char *step, char *message, mdot_error *err)
{
    mdot_status status =
        mdot_fail(err, MDOT_TOOLCHAIN, "LLVM, %s: %s", step, message != NULL ? message : "no reason given");
    LLVMDisposeMessage(message);
    return status;
}

static mdot_status create_machine(const cg_machine *machine, LLVMTargetMachineRef *out_machine, mdot_error *err)
{
    machine->prepare_llvm();
    LLVMTargetRef llvm_target = NULL;
    char *message = NULL;
    if (LLVMGetTargetFromTriple(machine->triple, &llvm_target, &message))
        return toolchain_failure(machine->triple, message, err);
    *out_machine = LLVMCreateTargetMachine(llvm_target, machine->triple, machine->baseline_cpu, "",
                                           LLVMCodeGenLevelDefault, LLVMRelocPIC, LLVMCodeModelSmall);
    if (*out_machine == NULL)
        return mdot_fail(err, MDOT_TOOLCHAIN, "LLVM does not support the target %s", machine->triple);
    return MDOT_OK;
}

static mdot_status optimise(LLVMModuleRef module, LLVMTargetMachineRef machine, mdot_error *err)
{
    LLVMPassBuilderOptionsRef passes = LLVMCreatePassBuilderOptions();
    LLVMPassBuilderOptionsSetLoopVectorization(passes, false);
    LLVMPassBuilderOptionsSetSLPVectorization(passes, false);
    LLVMPassBuilderOptionsSetLoopInterleaving(passes, false);
    LLVMPassBuilderOptionsSetLoopUnrolling(passes, false);
    LLVMErrorRef failure = LLVMRunPasses(module, "default<O1>", machine, passes);
    LLVMDisposePassBuilderOptions(passes);
    if (failure == NULL) return MDOT_OK;
    char *message = LLVMGetErrorMessage(failure);
    mdot_status status = mdot_fail(err, MDOT_TOOLCHAIN, "LLVM, optimising: %s", message);
    LLVMDisposeErrorMessage(message);
    return status;
}

/* Emits machine code or assembly. */
static mdot_status emit(LLVMModuleRef module, LLVMTargetMachineRef machine, LLVMCodeGenFileType type,
                        LLVMMemoryBufferRef *out_buffer, mdot_error *err)
{
    char *message = NULL;
    if (LLVMTargetMachineEmitToMemoryBuffer(machine, module, type, &message, out_buffer))
        return toolchain_failure("assembling", message, err);
    return MDOT_OK;
}

static mdot_status dump(LLVMModuleRef module, LLVMTargetMachineRef machine, const cg_options *options, mdot_error *err)
{
    if (options == NULL || options->dump == NULL || options->dump_text == NULL) return MDOT_OK;
    if (strcmp(options->dump, "llvm") == 0) {
        char *text = LLVMPrintModuleToString(module);
        options->dump_text(options->user, text);
        LLVMDisposeMessage(text);
    } else if (strcmp(options->dump, "asm") == 0) {
        LLVMModuleRef copy = LLVMCloneModule(module); /* instruction selection changes the module that it translates */
        LLVMMemoryBufferRef text = NULL;
        mdot_status status = emit(copy, machine, LLVMAssemblyFile, &text, err);
        LLVMDisposeModule(copy);
        if (status != MDOT_OK) return status;
        options->dump_text(options->user, LLVMGetBufferStart(text));
        LLVMDisposeMemoryBuffer(text);
    }
    return MDOT_OK;
}

static mdot_status verify(LLVMModuleRef module, mdot_error *err)
{
#ifdef MDOT_VERIFY
    char *message = NULL;
    if (LLVMVerifyModule(module, LLVMReturnStatusAction, &message))
        return toolchain_failure("verifying the module", message, err);
    LLVMDisposeMessage(message);
#else
#endif
    return MDOT_OK;
}

static mdot_status copy_buffer(LLVMMemoryBufferRef buffer, void **out_object, size_t *out_bytes, mdot_error *err)
{
    size_t bytes = LLVMGetBufferSize(buffer);
    void *object = malloc(bytes);
    if (object == NULL) return BS_OUT_OF_MEMORY(err, "an object of %zu bytes", bytes);
    memcpy(object, LLVMGetBufferStart(buffer), bytes);
    *out_object = object;
    *out_bytes = bytes;
    return MDOT_OK;
}

typedef struct diagnostics {
    bool failed;
    char first[512];
} diagnostics;

static void keep_first_error(LLVMDiagnosticInfoRef info, void *user)
{
    diagnostics *diag = user;
    if (LLVMGetDiagInfoSeverity(info) != LLVMDSError || diag->failed) return;
    char *text = LLVMGetDiagInfoDescription(info);
    snprintf(diag->first, sizeof diag->first, "%s", text);
    LLVMDisposeMessage(text);
    diag->failed = true;
}

static mdot_status translate(LLVMModuleRef module, LLVMTargetMachineRef machine, const cg_options *options,
                             cg_finish finish, void *user, LLVMMemoryBufferRef *out_buffer, mdot_error *err)
{
    BS_TRY(verify(module, err));
    BS_TRY(optimise(module, machine, err));
    if (finish != NULL) finish(user);
    BS_TRY(dump(module, machine, options, err));
    return emit(module, machine, LLVMObjectFile, out_buffer, err);
}

mdot_status cg_assemble(LLVMModuleRef module, const cg_machine *machine, const cg_options *options, cg_finish finish,
                        void *user, void **out_object, size_t *out_bytes, mdot_error *err)
{
    LLVMTargetMachineRef llvm_machine = NULL;
    BS_TRY(create_machine(machine, &llvm_machine, err));
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(llvm_machine);
    LLVMSetTarget(module, machine->triple);
    LLVMSetModuleDataLayout(module, layout);
    LLVMDisposeTargetData(layout);

    LLVMContextRef context = LLVMGetModuleContext(module);
    LLVMMemoryBufferRef buffer = NULL;
    diagnostics diag = {.failed = false};
    LLVMContextSetDiagnosticHandler(context, keep_first_error, &diag);
    mdot_status status = translate(module, llvm_machine, options, finish, user, &buffer, err);
    LLVMContextSetDiagnosticHandler(context, NULL, NULL);
    if (status == MDOT_OK && diag.failed) status = mdot_fail(err, MDOT_TOOLCHAIN, "LLVM: %s", diag.first);
    if (status == MDOT_OK) status = copy_buffer(buffer, out_object, out_bytes, err);
    if (buffer != NULL) LLVMDisposeMemoryBuffer(buffer);
    LLVMDisposeTargetMachine(llvm_machine);
    return status;
}

static char version_text[32];

static void print_version(void)
{
    unsigned major = 0, minor = 0, patch = 0;
    LLVMGetVersion(&major, &minor, &patch);
    snprintf(version_text, sizeof version_text, "%u.%u.%u", major, minor, patch);
}

const char *cg_llvm_version(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, print_version);
    return version_text;
}
