/* The stack switch on x86-64 (System V). Called by coro_native.c only, declared there.
 *
 * Both functions push the same six registers on the stack they leave, so either is woken by coro_switch, and the unwind
 * tables hold on both sides of the exchange of %rsp.
 *
 * coro_switch goes back by an indirect jump: the processor predicts a `ret` from the calls it has seen, and those belong to
 * the other stack. coro_enter goes back by `ret`: when the coroutine ran to its end at once, as most do, calls and returns
 * pair up. (A processor that checks returns or jump targets in hardware would object to both ways; this object claims
 * support for neither, and the linker then leaves both off the whole program.)
 *
 * MXCSR and the x87 control word stay with the thread: saving and loading them takes as long as all the rest.
 */
    .text

    .macro save_registers
    pushq %rbp
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbp, 0
    pushq %rbx
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbx, 0
    pushq %r12
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %r12, 0
    pushq %r13
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %r13, 0
    pushq %r14
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %r14, 0
    pushq %r15
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %r15, 0
    .endm

    .macro restore_registers
    popq %r15
    .cfi_adjust_cfa_offset -8
    .cfi_restore %r15
    popq %r14
    .cfi_adjust_cfa_offset -8
    .cfi_restore %r14
    popq %r13
    .cfi_adjust_cfa_offset -8
    .cfi_restore %r13
    popq %r12
    .cfi_adjust_cfa_offset -8
    .cfi_restore %r12
    popq %rbx
    .cfi_adjust_cfa_offset -8
    .cfi_restore %rbx
    popq %rbp
    .cfi_adjust_cfa_offset -8
    .cfi_restore %rbp
    .endm

/* bool coro_switch(void **save, void *load, bool parked)
 * Leaves this stack (its pointer goes to *save), goes on where `load` was saved, and answers `parked` there. */
    .globl coro_switch
    .hidden coro_switch
    .type coro_switch, @function
    .balign 16
coro_switch:
    .cfi_startproc
    endbr64
    save_registers
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    movl %edx, %eax
    restore_registers
    popq %rcx
    .cfi_adjust_cfa_offset -8
    .cfi_register %rip, %rcx
    jmp *%rcx
    .cfi_endproc
    .size coro_switch, . - coro_switch

/* bool coro_enter(void **save, void *top, struct coro *coro)
 * Leaves this stack and calls coro_main(coro) on the fresh one below `top` (16-byte aligned). coro_main answers the stack
 * pointer to go back to; false is answered there. The frame here is the bottom of the new stack: there is no caller, which
 * the unwind table says to gdb and backtrace(), and a zero frame pointer says to whoever walks frames. */
    .globl coro_enter
    .hidden coro_enter
    .type coro_enter, @function
    .balign 16
coro_enter:
    .cfi_startproc
    endbr64
    save_registers
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    .cfi_remember_state
    .cfi_undefined %rip
    xorl %ebp, %ebp
    movq %rdx, %rdi
    call coro_main
    movq %rax, %rsp
    .cfi_restore_state
    xorl %eax, %eax
    restore_registers
    ret
    .cfi_endproc
    .size coro_enter, . - coro_enter

    .section .note.GNU-stack, "", @progbits
