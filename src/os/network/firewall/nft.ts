import { runProgram } from '../../../supervise/run-program.ts'
import type { Machine } from '../../area.ts'
import type { PacketFilter } from '../controllers/firewall.ts'
import { tableName } from './nft-script.ts'

const program = '/usr/sbin/nft'
const scriptFile = '/run/nftables-talos.nft'
const timeout = 10_000

/** The kernel's packet filter, set by the nft(8) of the system image. */
export const packetFilter = (
  machine: Pick<Machine, 'spawn'> & { kernel: Pick<Machine['kernel'], 'files' | 'nftables'> },
): PacketFilter => ({
  run: runNft(machine),
  look: () => machine.kernel.nftables.filterTable(tableName),
  watch: (signal) => machine.kernel.nftables.watchFilterTable(tableName, { signal }),
})

/** Runs a script with nft(8). Rejects with its error output, or on timeout. */
const runNft =
  ({ spawn, kernel: { files } }: Pick<Machine, 'spawn'> & { kernel: Pick<Machine['kernel'], 'files'> }) =>
  async (script: string): Promise<void> => {
    await files.writeAtomic(scriptFile, script, { mode: 0o600 })
    await runProgram({ spawn }, [program, '-f', scriptFile], { timeout, purpose: 'set packet filter: nft' })
  }
