import { open } from 'node:fs/promises'
import { codeOf } from '../../../wire/errno.ts'
import { keyLength } from '../../kms/methods.ts'
import { UsageError } from '../failure.ts'

/** Reads the key of a server. Throws UsageError for a file of another size, and for one that others can read. */
export async function readKeyFile(path: string): Promise<Uint8Array> {
  const file = await open(path).catch((error: unknown) => {
    throw new UsageError(`read "${path}": ${codeOf(error)}; "talosctl kms new-key ${path}" makes a key`)
  })
  try {
    const { mode, size } = await file.stat()
    if (mode & 0o077)
      throw new UsageError(`key file "${path}" is open to others (mode 0${(mode & 0o777).toString(8)}): run "chmod 600 ${path}"`)
    if (size !== keyLength)
      throw new UsageError(`key file "${path}" must hold ${keyLength} bytes, not ${size}; "talosctl kms new-key" makes one`)
    return new Uint8Array(await file.readFile())
  } finally {
    await file.close()
  }
}
