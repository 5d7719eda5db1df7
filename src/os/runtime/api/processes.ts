import { readers, unary } from '../../../rpc/server/method.ts'
import { parseCommandLine, parseProcessStat } from '../../../wire/proc/process.ts'
import type { Kernel } from '../../kernel.ts'

/** Page size in bytes on the supported machines. */
const pageSize = 4096

/** Every process of the node. One that exits while it is read is left out. */
export const processes = ({ files }: Pick<Kernel, 'files'>) =>
  unary('machine.MachineService/Processes', readers, () => ({
    messages: [
      {
        processes: files
          .list('/proc')
          .filter((name) => /^\d+$/.test(name))
          .flatMap((pid) => {
            const stat = files.readTextIfThere(`/proc/${pid}/stat`)
            return stat ? [describe(files, pid, stat)] : []
          }),
      },
    ],
  }))

function describe(files: Kernel['files'], pid: string, text: string) {
  const stat = parseProcessStat(text)
  const maybe = (read: () => string) => {
    try {
      return read()
    } catch {
      return '' // kernel threads have no executable, and the process may be gone
    }
  }
  return {
    pid: stat.pid,
    ppid: stat.ppid,
    state: stat.state,
    threads: stat.threads,
    cpuTime: stat.cpuTime,
    virtualMemory: stat.virtualMemory,
    residentMemory: stat.residentPages * pageSize,
    command: stat.command,
    executable: maybe(() => files.readlink(`/proc/${pid}/exe`)),
    args: maybe(() => parseCommandLine(files.readText(`/proc/${pid}/cmdline`)).join(' ')),
    label: maybe(() => files.readText(`/proc/${pid}/attr/current`).replaceAll('\0', '').trim()),
  }
}
