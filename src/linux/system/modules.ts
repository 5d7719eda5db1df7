import { closeSync, constants, openSync } from 'node:fs'
import { failedWith } from '../../wire/errno.ts'
import { systemCallNumber } from '../../wire/seccomp/system-calls.ts'
import { check, cString, libc, quoted } from '../libc.ts'
import { translated } from '../system-error.ts'

const c = libc({ syscall: { args: ['i64', 'i32', 'ptr', 'i32'], returns: 'i64' } })

/** Loads a module from its file, unless it is loaded already. Returns whether it was loaded now. */
export function loadModule(path: string, parameters: readonly string[] = []): boolean {
  const fd = translated('open', path, () => openSync(path, constants.O_RDONLY))
  try {
    check('finit_module', c().syscall(systemCallNumber('finit_module'), fd, cString(parameters.join(' ')), 0), quoted(path))
    return true
  } catch (error) {
    if (failedWith(error, 'EEXIST')) return false
    throw error
  } finally {
    closeSync(fd)
  }
}
