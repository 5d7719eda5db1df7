import { readFileSync } from 'node:fs'
import { failedWith } from '../../../../wire/errno.ts'
import { messageOf } from '../../../../wire/error-message.ts'
import { UsageError } from '../../failure.ts'

/** Patches as texts: each was given as such, or as @file. */
export function readPatches(values: readonly string[], flag: string): string[] {
  return values.map((value) => {
    if (!value.startsWith('@')) return value
    const file = value.slice(1)
    try {
      return readFileSync(file, 'utf8')
    } catch (error) {
      throw new UsageError(`${flag} "${value}": ${failedWith(error, 'ENOENT') ? 'there is no such file' : messageOf(error)}`)
    }
  })
}
