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
    const child = spawn({ argv: [program, '-f', scriptFile], env: {}, cwd: '/' })
    const timer = setTimeout(() => child.kill('SIGKILL'), timeout)
    const output = await Promise.all(child.output.map((stream) => new Response(stream).text()))
    const { code, signal } = await child.exited
    clearTimeout(timer)
    if (code !== 0) throw new Error(`set packet filter: ${signal ? `nft was killed by ${signal}` : output.join('').trim().split('\n')[0]}`)
  }
