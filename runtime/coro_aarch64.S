/* The stack switch on aarch64 (AAPCS64). Called by coro_native.c only, declared there; the same two functions as in
 * coro_x86_64.S, where the comments on both hold here too.
 *
 * Saved are x19 to x28, the frame pointer and the link register, and the low halves of v8 to v15 which the convention
 * makes the callee keep: 160 bytes. The way back is `br`, not `ret`, for the sake of the predictor of returns. Such a branch
 * lands after a call, where no landing pad is: this object therefore claims no branch target identification, and the linker
 * leaves that off the whole program.
 */
    .text

    .macro save_registers
    sub sp, sp, #160
    .cfi_adjust_cfa_offset 160
    stp x29, x30, [sp]
    .cfi_rel_offset x29, 0
    .cfi_rel_offset x30, 8
    stp x19, x20, [sp, #16]
    .cfi_rel_offset x19, 16
    .cfi_rel_offset x20, 24
    stp x21, x22, [sp, #32]
    .cfi_rel_offset x21, 32
    .cfi_rel_offset x22, 40
    stp x23, x24, [sp, #48]
    .cfi_rel_offset x23, 48
    .cfi_rel_offset x24, 56
    stp x25, x26, [sp, #64]
    .cfi_rel_offset x25, 64
    .cfi_rel_offset x26, 72
    stp x27, x28, [sp, #80]
    .cfi_rel_offset x27, 80
    .cfi_rel_offset x28, 88
    stp d8, d9, [sp, #96]
    .cfi_rel_offset d8, 96
    .cfi_rel_offset d9, 104
    stp d10, d11, [sp, #112]
    .cfi_rel_offset d10, 112
    .cfi_rel_offset d11, 120
    stp d12, d13, [sp, #128]
    .cfi_rel_offset d12, 128
    .cfi_rel_offset d13, 136
    stp d14, d15, [sp, #144]
    .cfi_rel_offset d14, 144
    .cfi_rel_offset d15, 152
    .endm

    .macro restore_registers
    ldp d14, d15, [sp, #144]
    .cfi_restore d14
    .cfi_restore d15
    ldp d12, d13, [sp, #128]
    .cfi_restore d12
    .cfi_restore d13
    ldp d10, d11, [sp, #112]
    .cfi_restore d10
    .cfi_restore d11
    ldp d8, d9, [sp, #96]
    .cfi_restore d8
    .cfi_restore d9
    ldp x27, x28, [sp, #80]
    .cfi_restore x27
    .cfi_restore x28
    ldp x25, x26, [sp, #64]
    .cfi_restore x25
    .cfi_restore x26
    ldp x23, x24, [sp, #48]
    .cfi_restore x23
    .cfi_restore x24
    ldp x21, x22, [sp, #32]
    .cfi_restore x21
    .cfi_restore x22
    ldp x19, x20, [sp, #16]
    .cfi_restore x19
    .cfi_restore x20
    ldp x29, x30, [sp]
    .cfi_restore x29
    .cfi_restore x30
    add sp, sp, #160
    .cfi_adjust_cfa_offset -160
    .endm

/* bool coro_switch(void **save, void *load, bool parked) */
    .globl coro_switch
    .hidden coro_switch
    .type coro_switch, %function
    .balign 16
coro_switch:
    .cfi_startproc
    save_registers
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    mov w0, w2
    restore_registers
    br x30
    .cfi_endproc
    .size coro_switch, . - coro_switch

/* bool coro_enter(void **save, void *top, struct coro *coro) */
    .globl coro_enter
    .hidden coro_enter
    .type coro_enter, %function
    .balign 16
coro_enter:
    .cfi_startproc
    save_registers
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    .cfi_remember_state
    .cfi_undefined x30
    mov x29, xzr
    mov x30, xzr
    mov x0, x2
    bl coro_main
    mov sp, x0
    .cfi_restore_state
    mov w0, wzr
    restore_registers
    ret
    .cfi_endproc
    .size coro_enter, . - coro_enter

    .section .note.GNU-stack, "", %progbits
