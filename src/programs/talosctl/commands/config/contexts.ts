import type { Io } from '../../io.ts'
import { type OutputFlags, structured } from '../../output/output.ts'
import { table } from '../../output/table.ts'
import { openTalosconfig } from '../../talosconfig/file.ts'
import type { ConfigFlags } from './config.ts'

/** Lists the contexts by name. */
export async function listContexts(io: Io, flags: ConfigFlags, { output }: OutputFlags): Promise<void> {
  const { config } = await openTalosconfig(io, flags.talosconfig)
  const contexts = Object.entries(config.contexts).sort(([a], [b]) => (a < b ? -1 : 1))
  const shown = contexts.map(([name, { endpoints, nodes }]) => ({ name, current: name === config.context, endpoints, nodes }))
  if (structured(io, output, shown)) return
  const rows = contexts.map(([name, { endpoints, nodes }]) => [
    name === config.context ? '*' : '',
    name,
    endpoints.join(','),
    nodes.join(','),
  ])
  io.stdout.write(table([['CURRENT', 'NAME', 'ENDPOINTS', 'NODES'], ...rows]))
}
