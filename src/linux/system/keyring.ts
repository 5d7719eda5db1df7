/** Keys in the kernel (keyrings(7)). */
import { systemCallNumber } from '../../wire/seccomp/system-calls.ts'
import { check, cString, libc, quoted } from '../libc.ts'

const threadKeyring = -1
const unlinkOperation = 9

const adding = libc({ syscall: { args: ['i64', 'ptr', 'ptr', 'ptr', 'u64', 'i32'], returns: 'i64' } })
const controlling = libc({ syscall: { args: ['i64', 'i32', 'i32', 'i32'], returns: 'i64' } })

/**
 * Runs `use` while the keyring of this thread holds a key of type "logon", which the kernel can use and no process can read. The
 * name has a prefix with a colon.
 */
export function withKey<T>(name: string, key: Uint8Array, use: () => T): T {
  const type = cString('logon')
  const description = cString(name)
  const number = systemCallNumber('add_key')
  const id = check('add_key', adding().syscall(number, type, description, key, BigInt(key.length), threadKeyring), quoted(name))
  try {
    return use()
  } finally {
    check('keyctl', controlling().syscall(systemCallNumber('keyctl'), unlinkOperation, id, threadKeyring), quoted(name))
  }
}
