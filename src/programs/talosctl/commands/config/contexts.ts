import type { Io } from '../../io.ts'
import { table } from '../../table.ts'
import { openTalosconfig } from '../../talosconfig-file.ts'
import type { ConfigFlags } from '../config.ts'

/** Lists the contexts by name. */
export async function listContexts(io: Io, flags: ConfigFlags): Promise<void> {
  const { config } = await openTalosconfig(io, flags.talosconfig)
  const rows = Object.entries(config.contexts)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, { endpoints, nodes }]) => [name === config.context ? '*' : '', name, endpoints.join(','), nodes.join(',')])
  io.stdout.write(table([['CURRENT', 'NAME', 'ENDPOINTS', 'NODES'], ...rows]))
}
