import { DecodeError } from '../decode-error.ts'
import { decimal, fields, lines } from './lines.ts'

/** A module as listed by the kernel. */
export interface LoadedModule {
  name: string
  /** Bytes. */
  size: number
  referenceCount: number
  /** Modules that use it. */
  dependencies: string[]
  /** Live, Loading or Unloading. */
  state: string
  address: string
}

/** Parses /proc/modules: name, size, uses, users, state and address; taint flags are ignored. */
export function parseModules(text: string): LoadedModule[] {
  return lines('modules', text, 65536).map(({ text: line, offset }) => {
    const [name, size, uses, users, state, address] = fields(line)
    if (name === undefined || users === undefined || state === undefined || address === undefined)
      throw new DecodeError('modules', offset, 'too few fields')
    return {
      name,
      size: decimal('modules', size, offset),
      referenceCount: uses === '-' ? 0 : decimal('modules', uses, offset),
      dependencies: users === '-' ? [] : users.split(',').filter(Boolean),
      state,
      address,
    }
  })
}
