/** Values that the hypervisor VMware has for a machine (`guestinfo`), by the program of the image that speaks to it. */
import { runProgram } from '../../supervise/run-program.ts'
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
    })
    return output.trimEnd()
  }
