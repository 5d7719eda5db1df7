import { ptr } from 'bun:ffi'

const headLength = 16 // struct sock_fprog
const instructionLength = 8 // struct sock_filter

/** A classic packet filter as struct sock_fprog, for a socket or for system calls: the head, followed by its instructions. */
export function filterProgram(instructions: readonly (readonly number[])[]): Buffer {
  const program = Buffer.alloc(headLength + instructions.length * instructionLength)
  program.writeUInt16LE(instructions.length, 0)
  program.writeBigUInt64LE(BigInt(ptr(program) + headLength), 8)
  for (const [index, [operation = 0, yes = 0, no = 0, value = 0]] of instructions.entries()) {
    const at = headLength + index * instructionLength
    program.writeUInt16LE(operation, at)
    program.writeUInt8(yes, at + 2)
    program.writeUInt8(no, at + 3)
    program.writeUInt32LE(value, at + 4)
  }
  return program
}
