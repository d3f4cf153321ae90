/* fiber.c — one stack for each CUDA thread, and the switch between two of them. On x86-64 the six registers that the
 * System V ABI preserves across calls are pushed onto the old stack. Other machines use ucontext, which also saves
 * the signal mask and is slower by a system call. */
#include "tests/cuda_host/machine.h"

#include <stdlib.h>
#ifdef __x86_64__

__asm__(".text\n"
        ".globl ch_switch\n"
        ".type ch_switch, @function\n"
        "ch_switch:\n"
        "    push %rbx\n"
        "    push %rbp\n"
        "    push %r12\n"
        "    push %r13\n"
        "    push %r14\n"
        "    push %r15\n"
        "    mov %rsp, (%rdi)\n"
        "    mov %rsi, %rsp\n"
        "    pop %r15\n"
        "    pop %r14\n"
        "    pop %r13\n"
        "    pop %r12\n"
        "    pop %rbp\n"
        "    pop %rbx\n"
        "    ret\n"
        ".size ch_switch, .-ch_switch\n");

void *ch_prepare_stack(char *stack)
{
    enum { SAVED_REGISTERS = 6 };
    void **top = (void **)(stack + CH_STACK_BYTES - 64);
    *--top = NULL; /* the return address for ch_enter, which never returns; it also aligns the stack as for a call */
    *--top = (void *)ch_enter;
    for (int k = 0; k < SAVED_REGISTERS; k++) *--top = NULL;
    return top;
}

#else
#include <ucontext.h>

/* A fiber's stack "pointer" is the context stored at the low end of the stack. */
void *ch_prepare_stack(char *stack)
{
    ucontext_t *context = (ucontext_t *)stack;
    getcontext(context);
    context->uc_stack.ss_sp = stack + sizeof *context;
    context->uc_stack.ss_size = CH_STACK_BYTES - sizeof *context;
    context->uc_link = NULL;
    makecontext(context, ch_enter, 0);
    return context;
}

void ch_switch(void **save, void *to)
{
    static ucontext_t main_context;
    if (!*save) *save = &main_context;
    swapcontext(*save, to);
}

#endif
