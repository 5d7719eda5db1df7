/** Values that the hypervisor VMware has for a machine (`guestinfo`), by the program of the image that speaks to it. */
import { ProgramFailed, runProgram } from '../../supervise/run-program.ts'
import type { Spawn } from '../../supervise/spawn.ts'

const program = '/usr/libexec/ichor/guestinfo'
/** Milliseconds; a value of 1 MiB takes less than two seconds. */
const timeout = 30_000
/** Exit code where the hypervisor has no value. */
const noValue = 1
/** The most that the program prints. */
const longest = 4 << 20

interface Dependencies {
  readonly spawn: Spawn
  readonly files: { readonly exists: (path: string) => boolean }
}

/** Reads the value of a key; empty where there is none. Rejects with one line, which never holds the value: it may be secret. */
export const guestinfoReader =
  ({ spawn, files }: Dependencies) =>
  async (key: string, signal: AbortSignal): Promise<string> => {
    if (!files.exists(program))
      throw new Error(
        'read guestinfo: VMware on this processor is not supported: set talos.config to a URL, or use talos.platform=nocloud with a disk labelled "cidata"',
      )
    const output = await runProgram({ spawn }, [program, key], {
      timeout,
      signal,
      accept: [noValue],
      mostOutput: longest,
      purpose: `read ${key}`,
    }).catch((error) => {
      // One that was killed may have printed a part of the value, which its error repeats.
      if (error instanceof ProgramFailed && error.status.code === null)
        throw new Error(`read ${key}: the program was killed before it had the whole value; it is tried again`)
      throw error
    })
    return output.trimEnd()
  }
