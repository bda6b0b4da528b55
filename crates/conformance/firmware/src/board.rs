//! The board: how it starts, and how it speaks to the debugger.

#![expect(unsafe_code, reason = "registers, and addresses that the linker knows")]

use core::arch::{asm, global_asm};
use core::fmt;

/// Operations of the debugger: Arm, *Semihosting for AArch32 and AArch64*, section 7.
const SYS_WRITE0: usize = 0x04;
const SYS_EXIT_EXTENDED: usize = 0x20;

/// Reason of an exit: the application ended.
const APPLICATION_EXIT: usize = 0x2_0026;

// The table that the processor reads when it starts (ARMv7-M, B1.5.3): the first stack, the first instruction, and the other
// 14 exceptions of the system. Then memory as the program expects it: zeros, and the variables that begin otherwise.
global_asm!(
    ".section .vectors, \"a\"",
    ".word __stack_top",
    ".word reset",
    ".rept 14",
    ".word fault",
    ".endr",
    ".section .text.reset, \"ax\"",
    ".global reset",
    ".thumb_func",
    "reset:",
    "ldr r0, =__bss_start",
    "ldr r1, =__bss_end",
    "movs r2, #0",
    "1: cmp r0, r1",
    "bhs 2f",
    "str r2, [r0], #4",
    "b 1b",
    "2: ldr r0, =__data_start",
    "ldr r1, =__data_end",
    "ldr r2, =__data_load",
    "3: cmp r0, r1",
    "bhs 4f",
    "ldr r3, [r2], #4",
    "str r3, [r0], #4",
    "b 3b",
    "4: bl start",
    ".thumb_func",
    "fault:",
    "bl faulted",
    ".ltorg",
);

#[unsafe(no_mangle)]
extern "C" fn start() -> ! {
    crate::main()
}

#[unsafe(no_mangle)]
extern "C" fn faulted() -> ! {
    print!("fault\n");
    exit(3)
}

unsafe extern "C" {
    static __flash_end: u8;
}

/// Bytes of flash that the program takes, its models among them.
pub(crate) fn flash_len() -> usize {
    // Of this symbol of the linker only the address means something; the flash begins at 0.
    (&raw const __flash_end).addr()
}

fn call(operation: usize, argument: usize) {
    // SAFETY: the debugger reads what the argument points to and changes the first register only.
    unsafe {
        asm!("bkpt 0xAB", inout("r0") operation => _, in("r1") argument, options(nostack));
    }
}

/// Ends the emulator with this status.
pub(crate) fn exit(status: usize) -> ! {
    let block = [APPLICATION_EXIT, status];
    call(SYS_EXIT_EXTENDED, block.as_ptr().addr());
    loop {}
}

/// Writes to the debugger, 63 bytes at a time.
pub(crate) struct Debugger;

impl fmt::Write for Debugger {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for piece in text.as_bytes().chunks(63) {
            // A zero ends the text.
            let mut line = [0; 64];
            line[..piece.len()].copy_from_slice(piece);
            call(SYS_WRITE0, line.as_ptr().addr());
        }
        Ok(())
    }
}

/// Prints to the debugger.
macro_rules! print {
    ($($part:tt)*) => {{
        // The debugger takes everything.
        let _ = core::fmt::Write::write_fmt(&mut $crate::board::Debugger, format_args!($($part)*));
    }};
}

pub(crate) use print;
