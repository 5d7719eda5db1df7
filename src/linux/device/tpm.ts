/** The TPM 2.0 of the machine, behind the kernel's resource manager, which keeps programs apart and frees what they leave. */
import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { within } from '../../timing/within.ts'
import { failedWith } from '../../wire/errno.ts'
import { mostBytes } from '../../wire/tpm2/constants.ts'
import { quoted } from '../libc.ts'
import { SystemError, toSystemError } from '../system-error.ts'

/** The kernel makes it for a TPM 2.0 only. */
const device = '/dev/tpmrm0'

/** Milliseconds for one command. The slowest, making a key, takes seconds on slow chips. */
const commandLimit = 60_000

/** An open TPM. */
export interface TpmDevice {
  /** Sends a command and resolves to its response. Rejects with ETIMEDOUT where there is none in time; the device is of no use then. */
  transmit(command: Uint8Array): Promise<Uint8Array>
  /** Closes it, which frees its objects and sessions. */
  close(): Promise<void>
}

/** Opens the TPM; undefined where the machine has none, or one of version 1.2. */
export async function openTpm(path = device, limit = commandLimit): Promise<TpmDevice | undefined> {
  let handle: FileHandle
  try {
    handle = await open(path, constants.O_RDWR)
  } catch (error) {
    if (failedWith(error, 'ENOENT', 'ENODEV', 'ENXIO')) return undefined
    throw toSystemError('open', path, error)
  }
  let pending: Promise<unknown> = Promise.resolve()
  return {
    transmit(command) {
      const answer = exchange(handle, path, command)
      pending = answer.catch(() => {})
      return within(answer, limit, () => new SystemError('read', 'ETIMEDOUT', quoted(path), `no response within ${limit / 1000} s`))
    },
    // A descriptor in use by a call is closed after it, so that its number does not come to mean another file meanwhile.
    close: () => within(pending, limit, () => new SystemError('close', 'ETIMEDOUT', quoted(path))).then(() => handle.close()),
  }
}

/** Writes a command, which waits on a thread of the pool until the TPM has run it, and reads the response. */
async function exchange(handle: FileHandle, path: string, command: Uint8Array): Promise<Uint8Array> {
  try {
    await handle.write(command)
    const response = new Uint8Array(mostBytes)
    const { bytesRead } = await handle.read(response, 0, response.length)
    return response.slice(0, bytesRead)
  } catch (error) {
    throw toSystemError('write', path, error)
  }
}
